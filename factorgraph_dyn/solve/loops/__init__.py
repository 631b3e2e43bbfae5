"""Mechanisms with loops: layers of equations, what closure leaves free, and why a problem has no answer."""
