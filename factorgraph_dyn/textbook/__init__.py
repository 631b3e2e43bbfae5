"""The methods of the papers, for readers and comparisons; the solvers do not need them."""
