"""The flight of a mechanism of which some numbers are arguments of its kernel, as symbols or as the numbers given."""

from __future__ import annotations

from collections.abc import Sequence

from factorgraph_dyn.compiler.describe.free import freed, freed_links
from factorgraph_dyn.compiler.trace import tidied
from factorgraph_dyn.equations.free import PARAMETERS
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.flight import Flight, flight_of
from factorgraph_dyn.motion.masses import moving_bodies
from factorgraph_dyn.spatial import Array


def freed_flight(mechanism: Mechanism, problem: Problem, values: Sequence[Array]) -> Flight | None:
    """The flight of a mechanism, if it flies.

    Args:
        mechanism: The mechanism.
        problem: What its kernel solves.
        values: What the kernel takes after tau, in that order.
    """
    given, plain = dict(zip(problem.free.arguments, values, strict=True)), tidied(mechanism)
    if PARAMETERS in given:
        plain = freed_links(plain, problem.free.links, given.pop(PARAMETERS), {})
    bodies = moving_bodies(plain)
    return flight_of(mechanism, freed(bodies, given) if given else bodies)
