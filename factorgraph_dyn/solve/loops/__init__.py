"""Mechanisms with loops: layers of equations, what closure leaves free, and why a problem has no answer.

Closed mechanisms are solved in as many ways as there are kinds of questions, all of them on one J a = gamma:

- ``layers`` (through ``closed``): the graph with loops, eliminated in any ordering. Every wrench is asked for, rows may
  repeat each other, objectives choose: soft ties instead of a rank decision, linear in the number of loops.
- ``response``: a for many right-hand sides, as M^-1 B is, and no wrenches. The tree's O(n) sweeps, with the
  independent closure forces as more inputs; dense only in those. One dense system where the tree alone is singular.
- ``singularity``: no answer but the reason why there is none, or several. The same dense system, decomposed into
  directions that have names; run only on suspicion.

``closure_rows`` gives J, gamma, names, units and rank to all that is dense; the graph writes the same closure as the
acceleration factors of the loop joints. The projectors of the textbook are for readers; the compiler eliminates the
graph symbolically.
"""
