"""Model files become mechanisms: one file a format, pure Python, for files nobody vouches for."""
