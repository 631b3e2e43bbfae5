"""Mechanisms with loops: the graph of independent rows, forces that move nothing, and why a problem has no answer.

Closed mechanisms are solved in as many ways as there are kinds of questions, all of them on one J a = gamma:

- ``closed``: the graph with the independent rows of closure (``motion/independence``), square and regular, eliminated
  in any ordering as a tree's is. ``force_freedoms`` are the forces that change no motion, the null space of [1 J^T] of
  each group of loops, and ``choice`` takes what objectives want of them, and then the least.
- ``response``: a for many right-hand sides, as M^-1 B is, and no wrenches. The tree's O(n) sweeps, with the
  independent closure forces as more inputs; dense only in those. One dense system where the tree alone is singular.
- ``singularity``: no answer but the reason why there is none, or several. The same dense system, decomposed into
  directions that have names; run only on suspicion.

``closure_rows`` gives J, gamma, names and units to all that is dense; the graph writes the same closure as the
acceleration factors of the loop joints. The projectors of the textbook are for readers; the compiler eliminates the
graph symbolically.
"""
