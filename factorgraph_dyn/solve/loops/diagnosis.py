"""Rank, answered in words: freedoms, redundant loops, motors too many or too few, singular places.

    mobility          nv - rank J                      instantaneous freedoms
    redundant rows    rows - rank J                    of each loop alone, and shared between loops
    actuation         rank of Z^T B                    Z: motions that loops allow, B: motors
    condition         of J, of Z^T B and of the whole system: large near singular configurations

Dense linear algebra at one configuration; for people, not for control loops.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State, evaluate_state, given
from factorgraph_dyn.errors import ClosureError, FactorGraphDynError, InputError, NearSingularWarning
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.notebook import html_table
from factorgraph_dyn.numerics.rank import decomposed
from factorgraph_dyn.numerics.tolerances import RANK_TOLERANCE
from factorgraph_dyn.solve.dynamics import check_state, solve_dynamics
from factorgraph_dyn.solve.loops import singularity
from factorgraph_dyn.solve.loops.closure_rows import closure_rows
from factorgraph_dyn.solve.loops.planar import plane_normal
from factorgraph_dyn.solve.own_units import own_state

NEARLY_SINGULAR_CLOSURE = 1e4  # of J or the motors: people hear of a place sooner than of an answer


@dataclass(frozen=True)
class Diagnosis:
    """What rank says of a mechanism at a configuration.

    Attributes:
        mechanism: Its name.
        freedoms: Freedoms of the tree, nv.
        constraint_rows: Scalar constraints of all loops and couplings.
        constraint_rank: How many of them are independent here.
        mobility: Freedoms that are left, freedoms - constraint_rank.
        usual_mobility: The same at a random configuration; less than ``mobility`` at a singular one.
        redundant: Constraints that each loop or coupling has too many on its own, where it has.
        shared_redundant: Constraints that are redundant only between loops.
        planar: Whether everything moves in one plane.
        motors: Joints that have motors.
        redundant_motors: Motor freedoms more than needed: torques are not unique.
        missing_motors: Freedoms that no motor drives.
        undriven: Joints that move in those freedoms.
        undetermined: Entries of internal wrenches that are not unique, by variable name; in a problem
            with given a and tau also accelerations and torques.
        constraint_condition: Largest singular value of J over the least that is not zero.
        actuation_condition: The same of the motors' map to the freedoms.

    Examples:
        >>> delta = fgd.robots.delta()
        >>> fgd.diagnose(delta, delta.neutral()).motors
        ('motor1', 'motor2', 'motor3')
    """

    mechanism: str
    freedoms: int
    constraint_rows: int
    constraint_rank: int
    mobility: int
    usual_mobility: int
    redundant: Mapping[str, int]
    shared_redundant: int
    planar: bool
    motors: tuple[str, ...]
    redundant_motors: int
    missing_motors: int
    undriven: tuple[str, ...]
    undetermined: Mapping[str, tuple[int, ...]]
    constraint_condition: float
    actuation_condition: float

    @property
    def is_singular(self) -> bool:
        """Whether the configuration has more freedoms than usual, or motors lose some here."""
        return self.mobility > self.usual_mobility or self.is_nearly_singular

    @property
    def is_nearly_singular(self) -> bool:
        """Whether a condition number is large."""
        return max(self.constraint_condition, self.actuation_condition) > NEARLY_SINGULAR_CLOSURE

    def rows(self) -> list[dict[str, object]]:
        """The findings as question, answer and remark, for tables."""
        return [
            {"question": question, "answer": answer, "remark": remark} for question, answer, remark in _findings(self)
        ]

    def __repr__(self) -> str:
        redundant = self.constraint_rows - self.constraint_rank
        singular = ", singular here" if self.is_singular else ""
        return (
            f"<Diagnosis of {self.mechanism!r}: mobility {self.mobility}, {redundant} redundant constraints, "
            f"{len(self.motors)} motors, {self.redundant_motors} redundant, {self.missing_motors} missing{singular}>"
        )

    def _repr_html_(self) -> str:
        return html_table(self.rows(), f"Diagnosis of {self.mechanism}")

    def __str__(self) -> str:
        lines = [f"Mechanism {self.mechanism!r}"]
        for question, answer, remark in _findings(self):
            lines.append(f"  {question}: {answer}" + (f" ({remark})" if remark else ""))
        return "\n".join(lines)


def diagnose(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None = None,
    *,
    actuated: Iterable[str] | None = None,
    a: given.Partial | None = None,
    tau: given.Partial | None = None,
) -> Diagnosis:
    """Mobility, redundant constraints, undetermined variables, over- and under-actuation, in words.

    Args:
        mechanism: The mechanism.
        q: Coordinates, closed, shape (nq,).
        v: Velocities, shape (nv,); at rest by default.
        actuated: Joints with motors; by default as for ``inverse_dynamics``.
        a: Known accelerations of a hybrid problem to look at, as for ``hybrid_dynamics``.
        tau: Its known torques.

    Examples:
        >>> five_bar = fgd.robots.five_bar()
        >>> found = fgd.diagnose(five_bar, five_bar.neutral())
        >>> found.mobility, found.redundant, found.missing_motors
        (2, {'tip': 3}, 0)
    """
    check_mechanism(mechanism)
    speeds = np.zeros(mechanism.nv) if v is None else mechanism.check_v(v)
    state = check_state(mechanism, q, speeds)
    twin = own_state(state)  # ranks and conditions mean nothing in metres
    rows = closure_rows(twin)
    counts = Counter(rows.names)
    of = {name: [i for i, owner in enumerate(rows.names) if owner == name] for name in counts}
    own = {name: counts[name] - decomposed(rows.J[of[name]]).rank for name in counts}
    sought = mechanism.torque_entries(actuated)
    Z = rows.decomposed.null_space
    driven = decomposed(Z[sought])  # B^T Z
    loose = Z @ driven.null_space
    return Diagnosis(
        mechanism.name,
        mechanism.nv,
        len(rows.J),
        rows.rank,
        mechanism.nv - rows.rank,
        mechanism.nv - _usual_rank(twin.mechanism, rows.rank),
        {name: count for name, count in own.items() if count},
        len(rows.J) - rows.rank - sum(own.values()),
        _is_planar(twin),
        _joints(mechanism, sought),
        int(sought.sum()) - driven.rank,
        Z.shape[1] - driven.rank,
        _joints(mechanism, np.abs(loose).max(axis=1, initial=0.0) > RANK_TOLERANCE),
        _undetermined(state, a, tau),
        rows.decomposed.condition,
        driven.condition,
    )


def _findings(d: Diagnosis) -> list[tuple[str, object, str]]:
    redundant = d.constraint_rows - d.constraint_rank
    by_loop = [f"{count} in {name}" for name, count in d.redundant.items()]
    if d.shared_redundant:
        by_loop.append(f"{d.shared_redundant} between loops")
    mobility = f"usually {d.usual_mobility}: a singular configuration" if d.mobility > d.usual_mobility else ""
    condition = "close to a singular configuration" if d.is_nearly_singular else ""
    return [
        ("mobility", d.mobility, mobility),
        ("freedoms of the tree", d.freedoms, ""),
        ("constraints", d.constraint_rows, f"{d.constraint_rank} independent"),
        ("redundant constraints", redundant, ", ".join(by_loop)),
        ("planar", "yes" if d.planar else "no", ""),
        ("motors", len(d.motors), ", ".join(d.motors)),
        ("redundant motors", d.redundant_motors, "use objective=MinimumTorque()" if d.redundant_motors else ""),
        ("freedoms without motor", d.missing_motors, ", ".join(d.undriven)),
        ("not unique", len(d.undetermined), ", ".join(d.undetermined)),
        ("condition of the loops", float(f"{d.constraint_condition:.3g}"), condition),
        ("condition of the actuation", float(f"{d.actuation_condition:.3g}"), ""),
    ]


def _undetermined(state: State, a: given.Partial | None, tau: given.Partial | None) -> dict[str, tuple[int, ...]]:
    """Internal wrenches that are not unique, and in a hybrid problem its free a and tau."""
    mechanism = state.mechanism
    free: dict[str, tuple[int, ...]] = {}
    if a is not None or tau is not None:
        if a is None or tau is None:
            raise InputError("Give both a and tau of the problem (empty {} where nothing is known).")
        known = given.hybrid_known(mechanism, a, tau)
        for kind, indices in singularity.kkt(state, known).undetermined().items():
            for name in mechanism.joint_names:
                entries = mechanism.v_slices[name]
                moved = tuple(i - entries.start for i in sorted(indices) if entries.start <= i < entries.stop)
                if moved:
                    free[f"{kind}[{name}]"] = moved
    return {**free, **_free_wrenches(state)}


def _free_wrenches(state: State) -> dict[str, tuple[int, ...]]:
    zero = np.zeros(state.mechanism.nv)
    at_rest = evaluate_state(state.mechanism, state.q, zero)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NearSingularWarning)  # told by the condition
        try:
            return dict(solve_dynamics(at_rest, Known.forward(zero), ordering="colamd").not_unique)
        except FactorGraphDynError:
            return {}  # accelerations are undetermined; the solvers say which and why


def _usual_rank(mechanism: Mechanism, here: int) -> int:
    """The rank of J at a random configuration, or here where that is larger or none is found."""
    if not mechanism.is_closed_kind:
        return 0
    try:
        q, _ = mechanism.random_state(0)
    except ClosureError:
        return here
    return max(here, closure_rows(evaluate_state(mechanism, q, np.zeros(mechanism.nv))).rank)


def _is_planar(state: State) -> bool:
    try:
        plane_normal(state)
    except InputError:
        return False
    return True


def _joints(mechanism: Mechanism, entries: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(name for name in mechanism.joint_names if entries[mechanism.v_slices[name]].any())
