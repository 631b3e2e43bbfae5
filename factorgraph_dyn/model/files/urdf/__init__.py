"""URDF: a reader and a writer."""
