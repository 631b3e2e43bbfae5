"""What is said where no kernel can be given away, and what to do then.

Takes a refusal or a proof that does not hold; gives the error, which says so where the mechanism's loops are the cause.
"""

from __future__ import annotations

from factorgraph_dyn.compiler.proof.proof import Proof
from factorgraph_dyn.compiler.proof.trials import closed_by_mobility
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.closed_places import faint_hold, freedoms, places_at

_LEAST_LOCK = 1e-14  # of what closure may hold a motion by: less locks no kernel
_ADVICE = (
    "Take another ordering, such as crba or colamd, or look for masses and inertias that differ by many orders of "
    "magnitude."
)


def refused(mechanism: Mechanism, refusal: CompileError) -> CompileError:
    """The refusal, with a word about the loops where they may be its cause."""
    cause = _of_loops(mechanism)
    return CompileError(f"{refusal} {cause}", **refusal.details) if cause else refusal


def unproved(mechanism: Mechanism, problem: Problem, proof: Proof, routes: int) -> CompileError:
    """The error of a kernel that does not stand its proof, the best that was made by some routes."""
    return CompileError(
        f"The {problem.name} kernel of mechanism {mechanism.name!r} does not satisfy the mechanism's own equations "
        f"and is not given away: {proof}, by the best of {routes} routes. "
        f"{_of_loops(mechanism) or _ADVICE}",
        proof=proof,
    )


def _of_loops(mechanism: Mechanism) -> str:
    """What to say where loops may be the cause; else nothing."""
    return _faint_closure(mechanism) or _differing_freedoms(mechanism)


def _faint_closure(mechanism: Mechanism) -> str:
    """What to say where loops hold a motion by next to nothing, which kernels take as held; else nothing."""
    places = places_at(mechanism, sampled_states(mechanism).q[0]) if mechanism.loops else []
    for place in places:
        share = faint_hold(place, _LEAST_LOCK)
        if share:
            names = ", ".join(repr(constraint.name) for constraint in place.found)
            return (
                f"Closure by {names} holds a motion by {share:.1g} of what it may hold others by, as axes do that are "
                "parallel but for rounding, and kernels take it as held. Mend the placements, or give more digits; "
                f"solved through the graph, what is held by up to {place.tolerance:g} is free."
            )
    return ""


@kept_with_first
def _differing_freedoms(mechanism: Mechanism) -> str:
    """What to say where closure leaves other numbers of freedoms in other branches of the loops; else nothing."""
    usual = freedoms(mechanism, sampled_states(mechanism).q[0])
    others = closed_by_mobility(mechanism).keys() - {usual} if mechanism.loops else ()
    if not others:
        return ""
    counts = ", ".join(map(str, sorted(others)))
    return (
        f"Closure leaves {usual} freedoms around the joint zeros and {counts} elsewhere: these zeros may lie where "
        "loops are folded or singular. Choose them at an assembled pose in the range in which the mechanism works; see "
        "fgd.diagnose(mechanism, q)."
    )
