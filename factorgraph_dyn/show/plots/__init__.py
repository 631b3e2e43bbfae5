"""Plots over time and of results, by Matplotlib."""
