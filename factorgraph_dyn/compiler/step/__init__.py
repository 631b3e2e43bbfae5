"""One integration step with its derivatives, in machine code."""
