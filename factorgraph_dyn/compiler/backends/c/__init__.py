"""C source."""
