"""Derivatives of what kernels compute."""
