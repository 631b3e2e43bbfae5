"""The published tables beside our own measurements, in one run each.

    Kroeg, Gattringer & Mueller: M^-1 B of a 50-link chain and of a humanoid, milliseconds in Matlab
    Xie & Dellaert (2019): elimination orderings of the PUMA 560 in GTSAM, microseconds in C++

Machines and languages differ, so what compares is the ratio to the O(n) solve (to the classical ordering) measured
in the same run. Times are processor times; all calls of a table take turns, and the best time of each counts, so
that a busy machine disturbs little and all alike. A call includes everything from checking (q, v) on; GTSAM's
elimination is timed alone, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gtsam
import numpy as np

from factorgraph_dyn.compare.orderings import sample_known
from factorgraph_dyn.equations import dynamics_graph
from factorgraph_dyn.equations.problem import solved_problem
from factorgraph_dyn.model import Mechanism, robots
from factorgraph_dyn.ordering import choose_ordering
from factorgraph_dyn.solve.dynamics import check_state
from factorgraph_dyn.solve.gtsam_factors import ordering_of_keys, unit_factors
from factorgraph_dyn.solve.matrices.iwim import input_dynamics
from factorgraph_dyn.textbook.operators import spatial_operators
from factorgraph_dyn.textbook.unit_forces import solve_once

Row = dict[str, Any]

# Milliseconds. The columns of the graph stand beside the paper's own method, the closed form.
PUBLISHED_MS: Mapping[str, Mapping[str, float]] = {
    "chain, one input": {"columns": 12.21, "iim": 12.21, "eufm": 10.30, "O(n)": 6.65},
    "chain, all inputs": {"columns": 13.22, "iim": 13.22, "eufm": 205.85, "O(n)": 7.26},
    "humanoid": {"columns": 4.13, "iim": 4.13, "eufm": 67.20, "O(n)": 2.72},
}
# Microseconds; nested dissection is METIS.
PUBLISHED_US: Mapping[str, Mapping[str, float]] = {
    "inverse": {"rnea": 26.6, "colamd": 11.0, "metis": 11.7},
    "forward": {"crba": 51.8, "aba": 25.5, "colamd": 11.2, "metis": 12.1},
}
CHAIN_LINKS = 50
SWEEP = (1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
OPERATOR_SIZES = (10, 30, 100, 300, 1000)
ROUNDS = 30


def input_matrix_tables(rounds: int = ROUNDS) -> list[Row]:
    """One row for each method on the 50-link chain with one and with all inputs, and on the humanoid with 42."""
    chain, humanoid = robots.pendulum(CHAIN_LINKS), robots.humanoid()
    feet = [frame.name for frame in humanoid.frames]
    return [
        *_method_rows("chain, one input", chain, chain.joint_names[-1:], (), rounds),
        *_method_rows("chain, all inputs", chain, chain.joint_names, (), rounds),
        *_method_rows("humanoid", humanoid, None, feet, rounds),
    ]


def chain_sweep(sizes: Sequence[int] = SWEEP, rounds: int = ROUNDS) -> list[Row]:
    """One row for each chain length: milliseconds of every method, with one input and fully actuated."""
    rows = []
    for size in sizes:
        chain = robots.pendulum(size)
        row: Row = {"links": size}
        for inputs, joints in (("one input", chain.joint_names[-1:]), ("all inputs", chain.joint_names)):
            calls = _calls(chain, joints, ())
            row |= {f"{method}, {inputs} (ms)": 1e3 * t for method, t in best_times(calls, rounds).items()}
        rows.append(row)
    return rows


def ordering_tables(rounds: int = ROUNDS) -> list[Row]:
    """One row for each ordering of the PUMA 560 that Xie & Dellaert timed, inverse and forward dynamics."""
    puma, rows = robots.puma560(), []
    for problem, published in PUBLISHED_US.items():
        asked = solved_problem(puma, problem)
        state, known = sample_known(puma, asked)
        graph = dynamics_graph(state, known)
        converted = unit_factors(graph)
        orders = {name: ordering_of_keys(graph.variables, choose_ordering(puma, graph, name)) for name in published}
        calls = {name: _elimination(converted, order) for name, order in orders.items()}
        times = best_times(calls, 20 * rounds)
        rows += [
            {
                "problem": problem,
                "ordering": name,
                "ours (us)": 1e6 * times[name],
                "published (us)": published[name],
                "ours / classical": times[name] / times[asked.classical],
                "published / classical": published[name] / published[asked.classical],
            }
            for name in published
        ]
    return rows


def operator_growth(sizes: Sequence[int] = OPERATOR_SIZES, rounds: int = ROUNDS) -> list[Row]:
    """One row for each chain length: microseconds a link of matrix-free products with the spatial operators."""
    rows = []
    for size in sizes:
        chain = robots.pendulum(size)
        operators = spatial_operators(chain, chain.random_state(0)[0])
        x, links = np.ones(size), np.ones(6 * size)
        calls: dict[str, Callable[[], object]] = {
            "phi x": lambda o=operators, x=links: o.phi @ x,  # type: ignore[misc]
            "psi* x": lambda o=operators, x=links: o.psi.T @ x,  # type: ignore[misc]
            "M x": lambda o=operators, x=x: o.mass_matrix @ x,  # type: ignore[misc]
            "M^-1 x": lambda o=operators, x=x: o.inverse_mass_matrix @ x,  # type: ignore[misc]
        }
        times = best_times(calls, rounds)
        rows.append({"links": size} | {f"{name} (us a link)": 1e6 * t / size for name, t in times.items()})
    return rows


def best_times(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The best time of each call in seconds; the calls take turns, dear ones less often."""
    times = {}
    for name, call in calls.items():  # warm-up
        times[name] = _time(call)
    cheapest = min(times.values())
    for turn in range(rounds):
        for name, call in calls.items():
            share = max(1, round(times[name] / (5 * cheapest)))
            if turn % share == 0:
                times[name] = min(times[name], _time(call))
    return times


def _calls(
    mechanism: Mechanism, actuated: Sequence[str] | None, contacts: Sequence[str]
) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    q, v = mechanism.random_state(rng)
    tau = rng.normal(size=mechanism.nv)

    def method(name: str) -> Callable[[], object]:
        return lambda: input_dynamics(mechanism, q, v, actuated=actuated, contacts=contacts, method=name)

    return {
        "columns": method("columns"),
        "iim": method("iim"),
        "eufm": method("eufm"),
        "O(n)": lambda: solve_once(check_state(mechanism, q, v), tau, {}),
    }


def _method_rows(
    system: str, mechanism: Mechanism, actuated: Sequence[str] | None, contacts: Sequence[str], rounds: int
) -> list[Row]:
    times = best_times(_calls(mechanism, actuated, contacts), rounds)
    published = PUBLISHED_MS[system]
    return [
        {
            "system": system,
            "method": name,
            "ours (ms)": 1e3 * t,
            "published (ms)": published[name],
            "ours / O(n)": t / times["O(n)"],
            "published / O(n)": published[name] / published["O(n)"],
            "eufm / ours": times["eufm"] / t,
            "eufm / published": published["eufm"] / published[name],
        }
        for name, t in times.items()
    ]


def _elimination(graph: gtsam.GaussianFactorGraph, order: gtsam.Ordering) -> Callable[[], object]:
    return lambda: graph.eliminateSequential(order, gtsam.EliminateQR).optimize()


def _time(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
