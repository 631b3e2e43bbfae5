"""Compiled estimators: which readings determine the motion, the others as corrections, and a proof in plain numbers.

plain     what sensors read at many states, in plain floats (``proof.newton_euler``), by code of its own
basis     which readings determine everything, at all states alike
tracer    the graph with these readings, eliminated on a tape; then again with corrections from all others
trial     a kernel's answers beside least squares in plain floats
"""
