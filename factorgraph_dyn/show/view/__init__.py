"""A mechanism to look at and to move, as one page for any browser."""
