"""What is said where no kernel can be given away, and what to do then.

Takes a refusal or a proof that does not hold; gives the error, which says so where the mechanism's loops are the cause.
"""

from __future__ import annotations

from functools import lru_cache

from factorgraph_dyn.compiler.proof.proof import Proof
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.closed_places import freedoms
from factorgraph_dyn.motion.random_states import closed_home

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
    """What to say where closure leaves more or fewer freedoms at the joint zeros than elsewhere; else nothing."""
    if not mechanism.is_closed_kind:
        return ""
    home, usual = (freedoms(mechanism, q) for q in (closed_home(mechanism), sampled_states(mechanism).q[-1]))
    if home == usual:
        return ""
    return (
        f"Closure leaves {home} freedoms next to the joint zeros and {usual} elsewhere: they lie where loops are folded "
        "or singular, or close to it. Choose them at an assembled pose amid the range in which the mechanism works; see "
        "fgd.diagnose(mechanism, q)."
    )
