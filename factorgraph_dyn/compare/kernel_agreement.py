"""Whether kernels of a mechanism answer as its graph and as another engine do.

Takes a mechanism and an engine with its tree; gives the largest relative differences over some states. The
engine's M and h and the closure J a = -c leave, with Z the motions that the closure allows,

    a   = a_p + P (tau - h - M a_p),   P = Z (Z^T M Z)^-1 Z^T,   a_p = -J^+ c
    Z^T tau = Z^T (M a + h)

A tree has Z = 1, and a is what the engine's own algorithm answers. Differences are relative entry by entry to what
rounding acts on,

    a    to  |P| (|tau| + |h| + |M| |a_p|) + |a_p|        tau  to  |Z|^T (|M| |a| + |h|)

where |h| is with the size of its terms before they cancel, as wrenches on a body that flies freely do,
so that heavy joints do not hide light ones; closures mix all joints, and the largest entry counts for all. Inverse
dynamics of closed mechanisms is compared with as many motors as there are motions, where the file has more.
States and their references are made once a mechanism, kernels are compared once an ordering.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compare.engine_agreement import NEGLIGIBLE, NO_DIGITS, SOLVE_ROUNDING, relative_difference
from factorgraph_dyn.compare.peers.engines import Engine
from factorgraph_dyn.compiler.kernel.compile import compile
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.errors import FactorGraphDynError, InputError, NearSingularWarning
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.solve.dynamics import forward_dynamics, inverse_dynamics
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.textbook.projectors import constraints

RANK = 1e-12  # singular values below this share of the largest are zero
UNCLEAR = 1e-6  # those between are neither: the state is close to a singular one
TRIES = 10  # states among which a regular one is sought to choose motors
COMPARED = ("forward", "inverse")


@dataclass(frozen=True, eq=False)
class Answers:
    """One problem at one state: what is given, two references, and what differences are relative to.

    Attributes:
        arguments: What the kernel is called with.
        graph: The graph's answer, shape (nv,); None where it refuses the state or calls it nearly singular.
        engine: The engine's answer, or that of a dense solve on its M and h where motions are closed, shape (nv,).
        project: What of an answer is unique, shape (rows, nv): 1 for accelerations and trees.
        scale: The size of each projected entry, shape (rows,).
        floor: The share of the largest size that every entry has at least.
        condition: The condition number of what was solved, in units in which its diagonal is 1.
    """

    arguments: tuple[Floats, Floats, Floats]
    graph: Floats | None
    engine: Floats
    project: Floats
    scale: Floats
    floor: float
    condition: float

    def difference(self, one: Floats, other: Floats) -> float:
        """The largest relative difference of two answers."""
        return relative_difference(self.project @ (one - other), self.scale, self.floor)

    def allowed(self, tolerance: float) -> float:
        """The tolerance, or what rounding makes of an ill-conditioned system."""
        return max(tolerance, SOLVE_ROUNDING * self.condition)


@dataclass(frozen=True)
class KernelAgreement:
    """How a kernel's answers compare over some states.

    Attributes:
        problem, ordering: Of the kernel.
        seconds: What compiling took, processor time.
        states: How many states were compared.
        refused: How many of them the kernel answered with nan.
        graph_refused: How many of them the graph refused or called nearly singular.
        graph, engine: The largest relative differences from the graph and from the engine.
        graph_engine: That of the graph from the engine.
        beyond: How many answers of the kernel are farther from either than allowed.
        condition: The largest condition number.
    """

    problem: str
    ordering: str
    seconds: float
    states: int
    refused: int
    graph_refused: int
    graph: float
    engine: float
    graph_engine: float
    beyond: int
    condition: float


def references(mechanism: Mechanism, engine: Engine, problem: str, *, states: int = 20, seed: int = 0) -> list[Answers]:
    """Answers of the graph and the engine at the neutral and at random states; singular ones are left out.

    Args:
        mechanism: The mechanism.
        engine: Another engine with its tree.
        problem: "forward" or "inverse".
        states: How many random states.
        seed: Of the states.

    Raises:
        InputError: A problem other than forward and inverse.
        ClosureError: No closed configuration was found.
    """
    if problem not in COMPARED:
        raise InputError(f"Problem {problem!r} is not compared here. Problems: {', '.join(COMPARED)}.")
    rng = np.random.default_rng(seed)
    drawn = [(mechanism.neutral(), np.zeros(mechanism.nv))]
    drawn += [mechanism.random_state(rng) for _ in range(states)]
    motors = independent_motors(mechanism)
    found = [_answers(mechanism, engine, problem, motors, q, v, rng) for q, v in drawn]
    return [answers for answers in found if answers is not None]


def independent_motors(mechanism: Mechanism) -> tuple[str, ...] | None:
    """Actuated joints whose torques are unique, the strongest first taken; None for a tree, where all are."""
    if not mechanism.is_closed_kind:
        return None
    rng = np.random.default_rng(0)
    for _ in range(TRIES):
        Z, _, condition = _motions(mechanism, *mechanism.random_state(rng))
        if np.isfinite(condition):
            break
    rest = Z / natural(mechanism).v[:, None]
    left = {joint.name for joint in mechanism.movable_joints if joint.actuated}
    chosen = []
    while left:
        strengths = {name: _least_value(rest[mechanism.v_slice(name)]) for name in sorted(left)}
        best = max(strengths, key=lambda name: strengths[name])
        if strengths[best] < UNCLEAR:
            break
        chosen.append(best)
        left.remove(best)
        directions = np.linalg.svd(rest[mechanism.v_slice(best)], full_matrices=False)[2]
        rest -= rest @ directions.T @ directions
    return tuple(sorted(chosen, key=mechanism.joint_names.index))


def _least_value(block: Floats) -> float:
    rows, columns = block.shape
    return float(np.linalg.svd(block, compute_uv=False).min()) if 0 < rows <= columns else 0.0


def compare_kernel(
    mechanism: Mechanism, problem: str, ordering: OrderingLike, expected: Sequence[Answers], tolerance: float
) -> KernelAgreement:
    """The agreement of one kernel with references of its problem.

    Raises:
        CompileError: The kernel cannot be compiled.
    """
    motors = independent_motors(mechanism) if problem == "inverse" else None
    start = time.process_time()
    kernel = compile(mechanism, problem, ordering=ordering, actuated=motors)
    seconds = time.process_time() - start
    rows = [_measure(answers, np.asarray(kernel(*answers.arguments)), tolerance) for answers in expected]
    table = np.array(rows, dtype=float).reshape(len(rows), 4)
    answered = np.isfinite(table[:, 1])
    worst = np.nanmax(np.vstack([table, np.zeros(4)]), axis=0)
    return KernelAgreement(
        problem=problem,
        ordering=kernel.ordering.name,
        seconds=seconds,
        states=len(rows),
        refused=int((~answered).sum()),
        graph_refused=sum(answers.graph is None for answers in expected),
        graph=float(worst[0]),
        engine=float(worst[1]),
        graph_engine=float(worst[2]),
        beyond=int(table[:, 3].sum()),
        condition=max((answers.condition for answers in expected), default=1.0),
    )


def _measure(answers: Answers, kernel: Floats, tolerance: float) -> tuple[float, float, float, bool]:
    """Kernel from graph, kernel from engine, graph from engine (nan without one of them); whether the kernel is off."""
    from_engine = answers.difference(kernel, answers.engine)
    from_graph = graph_from_engine = np.nan
    if answers.graph is not None:
        from_graph = answers.difference(kernel, answers.graph)
        graph_from_engine = answers.difference(answers.graph, answers.engine)
    off = bool(np.fmax(from_engine, from_graph) > answers.allowed(tolerance))
    return from_graph, from_engine, graph_from_engine, off


def _answers(
    mechanism: Mechanism,
    engine: Engine,
    problem: str,
    motors: tuple[str, ...] | None,
    q: Floats,
    v: Floats,
    rng: np.random.Generator,
) -> Answers | None:
    M, h = engine.mass_matrix(q), engine.forces(q, v)
    h_size = np.abs(h) + _force_sizes(mechanism, q, v)
    if problem == "inverse" and not mechanism.is_closed_kind:  # whatever M is
        a = rng.normal(size=mechanism.nv) * natural(mechanism).v
        joints = mechanism.joint_names
        graph = _solved(lambda: inverse_dynamics(mechanism, q, v, a, actuated=joints, ordering="colamd").tau)
        scale = np.abs(M) @ np.abs(a) + h_size
        return Answers((q, v, a), graph, M @ a + h, np.eye(mechanism.nv), scale, NEGLIGIBLE, 1.0)
    Z, a_p, closure_condition = _motions(mechanism, q, v)
    Z_M = Z.T @ M @ Z
    condition = _condition(Z_M) * closure_condition
    if condition > NO_DIGITS or not Z.size:  # nothing moves where there is no motion
        return None
    driven = mechanism.torque_entries(motors)
    tau = rng.normal(size=mechanism.nv) * (np.abs(M).sum(axis=1) + np.abs(h)) * driven
    P = Z @ np.linalg.solve(Z_M, Z.T)
    a = a_p + P @ (tau - h - M @ a_p) if mechanism.is_closed_kind else engine.accelerations(q, v, tau)
    floor = 1.0 if mechanism.is_closed_kind else NEGLIGIBLE
    if problem == "forward":
        scale = np.abs(P) @ (np.abs(tau) + h_size + np.abs(M) @ np.abs(a_p)) + np.abs(a_p)
        graph = _solved(lambda: forward_dynamics(mechanism, q, v, tau, ordering="colamd").a)
        project = np.diag(1.0 / natural(mechanism).v)
        return Answers((q, v, tau), graph, a, project, project @ scale, floor, condition)
    graph = _solved(lambda: inverse_dynamics(mechanism, q, v, a, actuated=motors, ordering="colamd").tau)
    scale = np.abs(Z.T) @ (np.abs(M) @ np.abs(a) + h_size)
    return Answers((q, v, a), graph, M @ a + h, Z.T, scale, floor, closure_condition)


def _force_sizes(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    """The sizes of the terms whose sums are the forces h, shape (nv,)."""
    here = ManyStates(mechanism, q[None], v[None], natural(mechanism).length)
    return np.asarray(here.response(np.zeros((1, 1, mechanism.nv))).tau_size[0, 0])


def _solved(answer: Callable[[], Floats]) -> Floats | None:
    """The graph's answer; None where it refuses or warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", NearSingularWarning)
        try:
            return answer()
        except (FactorGraphDynError, NearSingularWarning):
            return None


def _motions(mechanism: Mechanism, q: Floats, v: Floats) -> tuple[Floats, Floats, float]:
    """Z, a_p and the condition number of the independent rows of J, in the mechanism's own units."""
    if not mechanism.is_closed_kind:
        return np.eye(mechanism.nv), np.zeros(mechanism.nv), 1.0
    own = natural(mechanism)
    closed = constraints(own.mechanism, q / own.q, v / own.v)
    U, values, rows = np.linalg.svd(closed.J)
    if ((values > RANK * values[0]) & (values < UNCLEAR * values[0])).any():
        return np.eye(mechanism.nv), np.zeros(mechanism.nv), float("inf")
    rank = int((values > RANK * values[0]).sum())
    a_p = -rows[:rank].T @ ((U.T @ closed.Jdot_v)[:rank] / values[:rank])
    return own.v[:, None] * rows[rank:].T, own.v * a_p, float(values[0] / values[rank - 1])


def _condition(M: Floats) -> float:
    """The condition number of M with a diagonal of ones."""
    if not M.size:
        return 1.0
    diagonal = np.abs(np.diag(M))
    if not (diagonal > 0).all():
        return float("inf")
    return float(np.linalg.cond(M / np.sqrt(np.outer(diagonal, diagonal))))
