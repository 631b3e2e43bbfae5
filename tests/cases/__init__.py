"""Mechanisms that once broke something, as data: see ``case``."""
