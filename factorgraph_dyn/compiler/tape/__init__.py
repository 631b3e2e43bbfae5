"""Straight-line arithmetic: nodes, residues that tell equal values, samples that tell rounding, numbers."""
