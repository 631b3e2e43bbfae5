"""Matrices of a mechanism without any wrench: M, its inverse, M^-1 B, and regressors."""
