"""Machine code against plain Newton-Euler of the mechanism as it was given."""
