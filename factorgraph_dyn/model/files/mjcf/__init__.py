"""MJCF: a reader, and what it reads of scenes, constraints, inertias and limits."""
