"""Your own ordering: build the graph, look at it, and eliminate it in an order nobody has named."""

import numpy as np

import factorgraph_dyn as fgd

arm = fgd.robots.rrr()
q, v, tau = np.array([0.3, -0.5, 0.8]), np.array([1.0, 0.5, -0.2]), np.array([1.0, 2.0, 3.0])

# The steps that forward_dynamics takes, one by one.
state = fgd.evaluate_state(arm, q, v)
known = fgd.Known.forward(tau)
graph = fgd.dynamics_graph(state, known)
for factor in graph.factors:
    print(f"{factor!s:22} on", ", ".join(str(variable) for variable, _ in factor.blocks))

# From the middle link outwards: a divide-and-conquer order for three links.
mine = ["F[joint1]", "A[link1]", "a[joint1]", "F[joint3]", "A[link3]", "a[joint3]"]
mine += ["F[joint2]", "a[joint2]", "A[link2]"]
for ordering in ("aba", "crba", mine):
    chosen = fgd.choose_ordering(arm, graph, ordering)
    structure = fgd.eliminate_structure(graph, [graph.variable(name) for name in chosen])
    solution = fgd.forward_dynamics(arm, q, v, tau, ordering=chosen)
    print(
        f"{chosen.name:>6}: {structure.nonzeros} nonzeros in R, fill {structure.fill}, "
        f"depth {structure.depth}, a = {np.round(solution.a, 6)}"
    )

# GTSAM's own objects are there for those who want them.
print("gtsam factors:", fgd.to_gtsam(graph).size(), "- first conditional:", solution.bayes_net.conditionals[0])
