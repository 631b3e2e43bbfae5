"""The 3R figures of the paper, drawn from the same graph that is solved.

Xie & Dellaert (2019), "A unified method for solving inverse, forward, and hybrid manipulator dynamics
using factor graphs", draw a 3R arm's graph, its matrices, its elimination step by step, and the Bayes
nets of several orderings. The pictures are written to the folder given as an argument, by default here.
"""

import sys
from pathlib import Path

import factorgraph_dyn as fgd

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
arm = fgd.robots.rrr()

# The paper eliminates torques from the tip, wrenches from the base, accelerations from the tip.
newton_euler = fgd.Ordering(
    "paper's",
    (*(f"tau[joint{i}]" for i in (3, 2, 1)), *(f"F[joint{i}]" for i in (1, 2, 3)), *(f"A[link{i}]" for i in (3, 2, 1))),
)

FIGURES = {
    "fig3_graph": ("graph", "inverse", None),
    "fig4_inverse_matrix": ("matrix", "inverse", newton_euler),
    "fig5_elimination_steps": ("steps", "inverse", newton_euler),
    "fig6_forward_graph": ("graph", "forward", None),
    "fig6_forward_matrix": ("matrix", "forward", "natural"),
    "fig7_crba_dag": ("dag", "forward", "crba"),
    "fig7_aba_dag": ("dag", "forward", "aba"),
    "fig8_hybrid_graph": ("graph", "hybrid", None),
    "fig9_hybrid_matrix": ("matrix", "hybrid", "colamd"),
}
try:
    for name, (what, problem, ordering) in FIGURES.items():
        # In the paper's hybrid problem the first joint's acceleration is given, and the other two torques.
        given = ["joint1"] if problem == "hybrid" else None
        fgd.draw(arm, what, folder / f"{name}.svg", problem=problem, ordering=ordering, known_accelerations=given)
        print(f"{name}.svg: {what} of {problem} dynamics")
except fgd.FactorGraphDynError as error:  # without matplotlib
    print(error)

# What figure 5 ends in is the recursive Newton-Euler algorithm: read the net from its last line up.
solution = fgd.inverse_dynamics(arm, [0.3, -0.5, 0.8], [1.0, 0.5, -0.2], [0.1, 0.2, 0.3], ordering=newton_euler)
print(solution.bayes_net)
print("tau =", solution.tau.round(6))
