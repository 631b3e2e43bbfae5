"""What is said where no kernel can be given away, and what to do then.

Takes a refusal or a proof that does not hold; gives the error, which says so where the mechanism's loops are the cause.
"""

from __future__ import annotations

from functools import lru_cache

from factorgraph_dyn.compiler.proof.proof import Proof
from factorgraph_dyn.compiler.sampled_states import freedoms_of_samples
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism

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
    """What to say where closure leaves more freedoms at some of the sampled states than at others; else nothing."""
    counts = freedoms_of_samples(mechanism)
    if len(counts) < 2:
        return ""
    found = ", ".join(f"{count} at {states}" for count, states in sorted(counts.items()))
    return (
        f"Closure leaves more freedoms at some of the {counts.total()} states at which it was tried than at others "
        f"({found}): joint zeros lie where loops are folded or singular, or close to it. Choose them at an assembled "
        "pose amid the range in which the mechanism works; see fgd.diagnose(mechanism, q)."
    )
