"""The states of a mechanism: methods that ask the room ``motion``, which works on a finished mechanism.

Users have a mechanism in their hands and ask it for its states. What they ask is answered further on in the flow: this
is the one place in the model that looks there, when it is asked and not before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from types import ModuleType
from typing import Self

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_names, check_positive, random_generator
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import doubts, inertia_checks
from factorgraph_dyn.model.description import Description
from factorgraph_dyn.model.notes import merged
from factorgraph_dyn.model.sizes import lengths
from factorgraph_dyn.spatial import Floats

State = tuple[Floats, Floats]


def _motion() -> ModuleType:
    """The room that answers."""
    from factorgraph_dyn import motion

    return motion


class Moving(Description):
    """A description that can be asked for its states."""

    @cached_property
    def size(self) -> float:
        """How far two joints on one link are apart at most, m: the length in which closing is measured."""
        return lengths.size(self)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the description but used as written."""
        odd = (*inertia_checks.impossible_inertias(self.links), *doubts.far_centres(self, self.size))
        return (*self.notes, *merged(odd))

    def neutral(self) -> Floats:
        """The configuration of all-zero angles and identity rotations, closed, shape (nq,).

        Raises:
            ClosureError: The loops cannot be closed from there.
        """
        q: Floats = _motion().neutral(self)
        return q

    def random_state(self, rng: np.random.Generator | int | None = None) -> State:
        """A random state (q, v) within limits, closed where there are loops or couplings.

        Lengths are of the order of the mechanism's ``size``. Limits of no width count as none, and so do those of
        loops and couplings for which no closed configuration is found within them.

        Raises:
            ClosureError: No closed configuration was found.
        """
        state: State = _motion().random_state(self, random_generator(rng, "rng"))
        return state

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Floats:
        """Random coordinates within limits, whether loops close or not, shape (nq,)."""
        q: Floats = _motion().random_configuration(self, random_generator(rng, "rng"))
        return q

    def close(self, q: npt.ArrayLike, *, hold: Iterable[str] = (), tolerance: float | None = None) -> Floats:
        """The configuration nearest to q that closes all loops and couplings, shape (nq,).

        Loops that contradict each other, as those of rounded files do, are brought as near as they come.

        Args:
            q: Where to start; the assembly mode nearest to it is kept where it can be closed, shape (nq,).
            hold: Names of joints that must not move.
            tolerance: How far they may stay open: rad, and lengths in parts of the mechanism's ``size``; its
                ``closure_tolerance`` by default. Dynamics ask for the latter: see ``tolerate``.

        Raises:
            ClosureError: The loops cannot be closed from here; says how far it got, and which tolerance would do.
        """
        allowed = None if tolerance is None else check_positive(tolerance, "The tolerance", InputError)
        closed: Floats = _motion().close(self, self.check_q(q), as_names(hold, "hold"), allowed)
        return closed

    def tolerate(self, tolerance: float) -> Self:
        """The mechanism with another ``closure_tolerance``, for loops that cannot close better."""
        return replace(self, closure_tolerance=tolerance)

    def complete_velocity(self, q: npt.ArrayLike, v: npt.ArrayLike, given: Iterable[str]) -> Floats:
        """The joint velocities that closure demands when the given joints move as in v, shape (nv,)."""
        chosen = as_names(given, "given")
        completed: Floats = _motion().complete_velocity(self, self.check_q(q), self.check_v(v), chosen)
        return completed

    def closure_error(self, q: npt.ArrayLike, v: npt.ArrayLike | None = None) -> float:
        """How far the state is from closing all loops and couplings (m, rad; with v, also per s)."""
        speeds = None if v is None else self.check_v(v)
        error: float = _motion().closure_error(self, self.check_q(q), speeds)
        return error
