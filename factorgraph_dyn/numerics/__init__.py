"""Numerical linear algebra that decides: rank, null space, independent rows, condition."""
