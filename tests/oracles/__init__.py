"""Answers by code that the package does not share."""
