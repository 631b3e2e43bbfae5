"""What is said where no kernel can be given away, and what to do then.

Takes a refusal or a proof that does not hold; gives the error, which says so where the mechanism's loops are the cause.
"""

from __future__ import annotations

from functools import lru_cache

from factorgraph_dyn.compiler.proof.proof import Proof
from factorgraph_dyn.compiler.proof.trials import closed_by_mobility
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.closed_places import freedoms

_ADVICE = (
    "Take another ordering, such as crba or colamd, or look for masses and inertias that differ by many orders of "
    "magnitude."
)


def refused(mechanism: Mechanism, refusal: CompileError) -> CompileError:
    """The refusal, with a word about the loops where they may be its cause."""
    cause = _differing_freedoms(mechanism)
    return CompileError(f"{refusal} {cause}", **refusal.details) if cause else refusal


def unproved(mechanism: Mechanism, problem: Problem, proof: Proof, routes: int) -> CompileError:
    """The error of a kernel that does not stand its proof, the best that was made by some routes."""
    return CompileError(
        f"The {problem.name} kernel of mechanism {mechanism.name!r} does not satisfy the mechanism's own equations "
        f"and is not given away: {proof}, by the best of {routes} routes. "
        f"{_differing_freedoms(mechanism) or _ADVICE}",
        proof=proof,
    )


@lru_cache(maxsize=16)
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
