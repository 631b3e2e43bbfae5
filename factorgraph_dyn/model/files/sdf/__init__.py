"""SDF: a reader, and the scopes its names live in."""
