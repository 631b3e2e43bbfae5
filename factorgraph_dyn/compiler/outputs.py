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
from factorgraph_dyn.compiler.proof import place_values, regressor_values
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates, Response
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape
from factorgraph_dyn.equations import LinearGraph, State
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.inputs import contact_variables
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.regressor import kinetic_regressor, potential_regressor, torque_regressor
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion import masses
from factorgraph_dyn.motion.kinematics import place_jacobian, place_pose
from factorgraph_dyn.spatial import Array, Floats, cross, inverse_adjoint

NO_COLUMN = -2  # of a graph: nothing depends on it; the unit column is -1
References = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem's graph of symbols after its elimination.

    Attributes:
        values: The symbols of the arguments, zero for those that the problem does not take.
        bodies: The mechanism whose links hold the inertia of all that moves, and of nothing else.
        links: Those whose parameters regressors are about.
    """

    tape: Tape
    mechanism: Mechanism
    problem: Problem
    values: Mapping[str, SymbolArray]
    state: State
    graph: LinearGraph
    eliminated: Eliminated
    bodies: Mechanism
    links: tuple[str, ...] = ()

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

    def responses(self, kept: str) -> References:
        """Matrix of the responses of tau or a to units of the kept a or tau, motors first and then contacts."""
        name = "tau" if kept == "a" else "a"
        by_entry = dict(zip(sorted(self.problem.causes), self._joint_columns(kept), strict=True))
        causes = [by_entry[entry] for entry in self.problem.causes] + self._contact_columns()
        effects = self._joint_columns(name)
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

    def _contact_columns(self) -> list[int]:
        """The columns of the contacts' forces; what pushes the base is in no equation and has none."""
        found: list[int] = []
        for variable in contact_variables(self.problem.contacts):
            is_felt = str(variable) in self.graph.by_name
            found += self._columns(str(variable)) if is_felt else [NO_COLUMN] * variable.size
        return found

    def _joint_columns(self, kind: str) -> list[int]:
        """The columns of a or tau that are unknown, joint by joint."""
        names = [f"{kind}[{joint.name}]" for joint in self.mechanism.movable_joints]
        return [column for name in names if name in self.graph.by_name for column in self._columns(name)]


Reader = Callable[[Solved, str, str], References]


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

    def acceleration(self, name: str) -> tuple[Floats, Floats]:
        """The acceleration of the link that a name is on, and the size of its terms."""
        link, _ = self.here.mechanism.place(name)
        return self.true.A[link], self.true.A_size[link] + self.blur.A_size[link]

    def wrench(self, name: str) -> tuple[Floats, Floats]:
        """The wrench of a joint or loop, and the size of its terms: a loop's may be what others leave of a balance."""
        if name not in self.loops:
            return self.true.F[name], self.true.F_size[name] + self.blur.F_size[name]
        wrench, size = self.loops[name]
        return wrench, np.hypot(size, self.here.beside_loop(name, self.true.F_size))


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


def _acceleration(solved: Solved, kind: str, name: str) -> References:
    link, _ = solved.mechanism.place(name)
    if link == solved.mechanism.base:
        return _at_place(solved, name, base_acceleration(solved.mechanism))
    # back from the classical acceleration to the spatial one
    V, A = solved.state.twists[link], symbols(solved.tape, solved.of(f"{kind}[{link}]"))
    return _at_place(solved, name, A - np.concatenate([np.zeros(3), cross(V[:3], V[3:])]))


def _twist(solved: Solved, _: str, name: str) -> References:
    return _at_place(solved, name, solved.state.twists[solved.mechanism.place(name)[0]])


def _at_place(solved: Solved, name: str, motion: Array) -> References:
    """A twist or acceleration of a link, seen from a link or frame on it."""
    return references(solved.tape, inverse_adjoint(solved.mechanism.place(name)[1]) @ motion)


def _of_place(function: Callable[[Mechanism, Array, str], Array]) -> Reader:
    """What reads a function of q and a place."""
    return lambda solved, _, name: references(solved.tape, function(solved.mechanism, solved.state.q, name))


def _of_masses(function: Callable[[Mechanism, State], Array]) -> Reader:
    """What reads a function of the moving bodies at a state."""
    return lambda solved, *_: references(solved.tape, function(solved.bodies, solved.state))


def _regressor(solved: Solved, *_: str) -> References:
    a = symbols(solved.tape, _joint_vector(solved, "a", ""))
    return references(solved.tape, torque_regressor(solved.state, a, solved.links))


# What reads a result off a solved graph, by its kind and owner.
OUTPUTS: dict[str, Reader] = {
    "a": _joint_vector,
    "tau": _joint_vector,
    "T": _of_place(place_pose),
    "J": _of_place(place_jacobian),
    "V": _twist,
    "A": _acceleration,
    "F": lambda solved, kind, joint: np.array(solved.of(f"{kind}[{joint}]"), dtype=np.int64),
    "W": lambda solved, kind, frame: np.array(solved.of(f"{kind}[{frame}]"), dtype=np.int64),
    "com": _of_masses(lambda bodies, state: masses.center_of_mass(bodies, state.q)),
    "momentum": _of_masses(lambda bodies, state: masses.momentum(bodies, state.q, state.twists)),
    "kinetic_energy": _of_masses(lambda bodies, state: masses.kinetic_energy(bodies, state.v, state.twists)),
    "potential_energy": _of_masses(lambda bodies, state: masses.potential_energy(bodies, state.q)),
    "regressor": _regressor,
    "kinetic_regressor": lambda solved, *_: references(solved.tape, kinetic_regressor(solved.state, solved.links)),
    "potential_regressor": lambda solved, *_: references(solved.tape, potential_regressor(solved.state, solved.links)),
}
# What gives its true value (states, columns, entries) by its owner, and its terms' sizes (states, columns, sorts),
# one for every sort of entries, such as moments and forces; a and tau are what is solved for.
TRUE_VALUES: dict[str, Callable[[Plain, str], tuple[Floats, Floats]]] = {
    "T": lambda plain, name: place_values.pose_value(plain.here, name),
    "J": lambda plain, name: place_values.jacobian_value(plain.here, name),
    "V": lambda plain, name: place_values.twist_value(plain.here, name),
    "A": lambda plain, name: place_values.at_place(plain.here, name, *plain.acceleration(name)),
    "F": lambda plain, joint: plain.wrench(joint),
    "com": lambda plain, _: place_values.com_value(plain.here),
    "momentum": lambda plain, _: place_values.momentum_value(plain.here),
    "kinetic_energy": lambda plain, _: place_values.kinetic_energy_value(plain.here),
    "potential_energy": lambda plain, _: place_values.potential_energy_value(plain.here),
    "regressor": lambda plain, _: regressor_values.regressor_value(
        plain.here, plain.true.A, {link: size + plain.blur.A_size[link] for link, size in plain.true.A_size.items()}
    ),
    "kinetic_regressor": lambda plain, _: regressor_values.kinetic_regressor_value(plain.here),
    "potential_regressor": lambda plain, _: regressor_values.potential_regressor_value(plain.here),
}


def read_output(solved: Solved, name: str) -> References:
    """References of one result."""
    if solved.problem.kept is not None:
        return solved.responses(solved.problem.kept)
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
