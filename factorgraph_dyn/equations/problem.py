"""What a kernel computes: its arguments, what is known, what is kept free, its results.

Takes the words a user asks with; gives a checked `Problem`. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_names, check_choice
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism

Mask = npt.NDArray[np.bool_]

PROBLEM_NAMES = ("forward", "inverse", "hybrid", "iwim", "inverse_mass_matrix", "mass_matrix")
_CLASSICAL = {
    "forward": "aba",
    "inverse": "rnea",
    "hybrid": "aba",
    "iwim": "aba",
    "inverse_mass_matrix": "aba",
    "mass_matrix": "rnea",
}
_ARGUMENTS = {"forward": ("q", "v", "tau"), "inverse": ("q", "v", "a"), "hybrid": ("q", "v", "a", "tau")}
_RESULTS = {
    "forward": ("a",),
    "inverse": ("tau",),
    "hybrid": ("a", "tau"),
    "iwim": ("a",),
    "inverse_mass_matrix": ("a",),
    "mass_matrix": ("tau",),
}
_OF_THE_TREE = ("inverse_mass_matrix", "mass_matrix")
_KEPT = {"iwim": "tau", "inverse_mass_matrix": "tau", "mass_matrix": "a"}


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem of a mechanism.

    Attributes:
        name: One of `PROBLEM_NAMES`.
        arguments: Of the kernel, in order: q, v, a, tau.
        outputs: Names of its results: a, tau, A[link], F[joint], V[link].
        known_a, known_tau: Which entries of a and tau are given, shape (nv,).
        kept: Kind of variable, a or tau, whose unit values are responded to; else None.
        pushed: Links on which an external wrench acts, an argument each.
        tree_only: Whether loops and couplings are left out.
        classical: The ordering used where none is asked for.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    known_a: Mask
    known_tau: Mask
    kept: str | None
    pushed: tuple[str, ...]
    tree_only: bool
    classical: str

    @property
    def key(self) -> str:
        """Text that differs wherever two problems of a mechanism do."""
        return repr((self.name, self.outputs, self.pushed, self.known_a.tolist(), self.known_tau.tolist()))


def make_problem(
    mechanism: Mechanism,
    name: str,
    known_accelerations: Sequence[str] | Mask = (),
    actuated: Iterable[str] | None = None,
    outputs: Sequence[str] | None = None,
    external_wrenches: Sequence[str] = (),
) -> Problem:
    """The problem that a user's words describe.

    Args:
        mechanism: The mechanism.
        name: One of `PROBLEM_NAMES`.
        known_accelerations: For hybrid problems, joints whose acceleration is given, or one boolean
            an entry of a.
        actuated: For inverse dynamics and iwim, joints that have a motor; by default the joints marked actuated,
            for inverse dynamics of a tree every joint.
        outputs: Results to give instead of the usual ones.
        external_wrenches: Links on which an external wrench acts.

    Raises:
        InputError: A word that is not known.
    """
    check_choice(name, PROBLEM_NAMES, "The problem")
    nv = check_mechanism(mechanism).nv
    everything, nothing = np.ones(nv, dtype=bool), np.zeros(nv, dtype=bool)
    if name == "iwim" and actuated is None:
        actuated = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    motors = mechanism.torque_entries(actuated)
    given = _given_accelerations(mechanism, name, known_accelerations)
    known_a, known_tau = {
        "forward": (nothing, everything),
        "inverse": (everything, ~motors),
        "hybrid": (given, ~given),
        "iwim": (nothing, ~motors),
    }.get(name, (nothing, nothing))
    kept = _KEPT.get(name)
    classical = "aba" if name == "inverse" and not known_a.all() else _CLASSICAL[name]
    pushed = _pushed(mechanism, name, external_wrenches)
    arguments = (*_ARGUMENTS.get(name, ("q",)), *(f"wrench[{link}]" for link in pushed))
    shown = _outputs(mechanism, name, outputs)
    return Problem(name, arguments, shown, known_a, known_tau, kept, pushed, name in _OF_THE_TREE, classical)


def _pushed(mechanism: Mechanism, problem: str, links: Sequence[str]) -> tuple[str, ...]:
    names = as_names(links, "external_wrenches")
    for name in names:
        mechanism.check_link(name)
    if names and problem in _KEPT:
        raise InputError(f"The result of problem {problem!r} does not depend on external wrenches.")
    if len(set(names)) < len(names):
        raise InputError(f"external_wrenches names a link twice: {', '.join(names)}.")
    return names


def _given_accelerations(mechanism: Mechanism, problem: str, given: Sequence[str] | Mask) -> Mask:
    mask = np.zeros(mechanism.nv, dtype=bool)
    if isinstance(given, np.ndarray) and given.dtype == bool:
        if given.shape != mask.shape:
            raise InputError(
                f"known_accelerations has shape {given.shape}; a mask has one entry a freedom, shape {mask.shape}."
            )
        mask |= given
    else:
        for name in as_names(given, "known_accelerations"):
            mask[mechanism.v_slice(name)] = True
    if mask.any() and problem != "hybrid":
        raise InputError(f"known_accelerations is for the hybrid problem; this one is {problem!r}.")
    return mask


def _outputs(mechanism: Mechanism, problem: str, outputs: Sequence[str] | None) -> tuple[str, ...]:
    if outputs is None:
        return _RESULTS[problem]
    names = as_names(outputs, "outputs")
    if problem in _KEPT:
        raise InputError(f"The result of problem {problem!r} is one matrix; it takes no outputs.")
    if not names:
        raise InputError("outputs is empty; name at least one, such as 'a' or 'F[joint]'.")
    links = set(mechanism.link_names)
    joints = {joint.name for joint in mechanism.joints} | {loop.name for loop in mechanism.loops}
    for name in names:
        owner = name[2:-1]
        joined = name[1:2] == "[" and name.endswith("]")
        if name in ("a", "tau") or (
            joined and ((name[0] in "AV" and owner in links) or (name[0] == "F" and owner in joints))
        ):
            continue
        raise InputError(
            f"There is no output {name!r}. Outputs: a, tau, A[link] and V[link] for the links "
            f"{', '.join(mechanism.link_names)}, F[joint] for the joints and loops "
            f"{', '.join(sorted(joints))}."
        )
    return names
