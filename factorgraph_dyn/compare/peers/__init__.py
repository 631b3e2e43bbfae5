"""Rival engines, fed with our mechanisms and answering in our conventions: one adapter an engine."""
