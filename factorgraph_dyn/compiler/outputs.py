"""How each result is read: off a solved graph of symbols, and off plain numbers that prove it.

Takes a graph after its elimination; gives references of a result's entries. A new kind of result is an entry of
``equations/quantities`` and one of each table here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates, Response
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape
from factorgraph_dyn.equations import LinearGraph, State
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats, cross

References = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem's graph of symbols after its elimination.

    Attributes:
        values: The symbols of the arguments, zero for those that the problem does not take.
    """

    tape: Tape
    mechanism: Mechanism
    problem: Problem
    values: Mapping[str, SymbolArray]
    state: State
    graph: LinearGraph
    eliminated: Eliminated

    def of(self, name: str) -> list[int]:
        """References of the entries of a variable.

        Raises:
            CompileError: The equations do not determine them.
        """
        found = []
        for column in self._columns(name):
            terms = self.eliminated.solution[column]
            if set(terms) - {UNIT}:
                raise CompileError(f"{name} is not determined: {_why_free(name)}", variable=name)
            found.append(terms.get(UNIT, ZERO))
        return found

    def responses(self, name: str, kept: str) -> References:
        """Matrix of the responses of a or tau to units of the kept variables."""
        causes, effects = self._joint_columns(kept), self._joint_columns(name)
        matrix = np.zeros((len(effects), len(causes)), dtype=np.int64)
        for i, column in enumerate(effects):
            terms = self.eliminated.solution[column]
            if set(terms) - set(causes) - {UNIT}:
                raise CompileError(f"The response of {name} is not determined by the equations.")
            matrix[i] = [terms.get(cause, ZERO) for cause in causes]
        return matrix

    def _columns(self, name: str) -> range:
        part = self.graph.column_slices[self.graph.by_name[name]]
        return range(part.start, part.stop)

    def _joint_columns(self, kind: str) -> list[int]:
        """The columns of a or tau that are unknown, joint by joint."""
        names = [f"{kind}[{joint.name}]" for joint in self.mechanism.movable_joints]
        return [column for name in names if name in self.graph.by_name for column in self._columns(name)]


class Plain(NamedTuple):
    """The same answers in plain numbers at some states.

    Attributes:
        here: The states.
        true: What the true accelerations ask for.
        blur: What their rounding does to it.
        loops: Wrenches of loops and the sizes of their terms.
    """

    here: ManyStates
    true: Response
    blur: Response
    loops: Mapping[str, tuple[Floats, Floats]]


def _joint_vector(solved: Solved, kind: str, _: str) -> References:
    """All of a or tau, what is known included."""
    mechanism = solved.mechanism
    refs = references(solved.tape, solved.values[kind])
    mask = solved.problem.known_a if kind == "a" else solved.problem.known_tau
    for joint in mechanism.movable_joints:
        name = f"{kind}[{joint.name}]"
        if name in solved.graph.by_name:
            places = np.arange(mechanism.nv)[mechanism.v_slices[joint.name]]
            refs[places[~mask[places]]] = solved.of(name)
    return refs


def _acceleration(solved: Solved, kind: str, link: str) -> References:
    if link == solved.mechanism.base:
        return references(solved.tape, base_acceleration(solved.mechanism))
    # back from the classical acceleration to the spatial one
    V, A = solved.state.twists[link], symbols(solved.tape, solved.of(f"{kind}[{link}]"))
    return references(solved.tape, A - np.concatenate([np.zeros(3), cross(V[:3], V[3:])]))


# What reads a result off a solved graph, by its kind and owner.
OUTPUTS: dict[str, Callable[[Solved, str, str], References]] = {
    "a": _joint_vector,
    "tau": _joint_vector,
    "V": lambda solved, kind, link: references(solved.tape, solved.state.twists[link]),
    "A": _acceleration,
    "F": lambda solved, kind, joint: np.array(solved.of(f"{kind}[{joint}]"), dtype=np.int64),
}
# What gives its true value (states, columns, entries) by its owner, and its terms' sizes (states, columns, sorts),
# one for every sort of entries, such as moments and forces; a and tau are what is solved for.
TRUE_VALUES: dict[str, Callable[[Plain, str], tuple[Floats, Floats]]] = {
    "V": lambda plain, link: (plain.here.V[link][:, None], plain.here.V_size[link][:, None]),
    "A": lambda plain, link: (plain.true.A[link], plain.true.A_size[link] + plain.blur.A_size[link]),
    "F": lambda plain, joint: (
        plain.loops[joint]
        if joint in plain.loops
        else (plain.true.F[joint], plain.true.F_size[joint] + plain.blur.F_size[joint])
    ),
}


def read_output(solved: Solved, name: str) -> References:
    """References of one result."""
    if solved.problem.kept is not None:
        return solved.responses(name, solved.problem.kept)
    kind, owner = split_name(name)
    return OUTPUTS[kind](solved, kind, owner)


def _why_free(name: str) -> str:
    """What leaves a variable undetermined, and what to do."""
    if name.startswith("a["):
        return (
            "moving that joint moves no inertia, or the given values leave it a freedom. Give the links beyond it "
            "mass and inertia, the joint armature, or its acceleration."
        )
    return (
        "the equations leave it free (a mechanism with more constraints or motors than freedoms shares them in "
        "many ways). Seek fewer torques with actuated=[...], ask for outputs that are determined, or give more values."
    )
