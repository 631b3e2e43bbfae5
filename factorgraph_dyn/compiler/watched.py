"""What a kernel watches of its elimination, so that it answers nan where what was decided ahead does not hold.

Takes values at the sampled states; gives guards, whose thresholds are parts of what is usual there:

    divisor      a pivot, which must not vanish
    vanishing    a coefficient that was taken for zero, which must vanish
    condition    what given values miss of equations in them alone

The work runs once a guard.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.tape.samples import UNIT_ROUNDOFF, SampledTape
from factorgraph_dyn.compiler.tape.tape import ZERO, Samples
from factorgraph_dyn.errors import CompileError

_TRUSTED = 1e-9  # part of its usual size below which a pivot is not to be trusted
_FOLLOWS = 1e3  # times what loops are open by, up to which coefficients that vanish on closing may be left
_CONSISTENT = 1e-6  # a condition on the inputs may miss by this part of its terms


def divisor(samples: SampledTape, entry: int, name: str) -> Guard:
    """Watch the pivot of an unknown.

    Raises:
        CompileError: It would be refused at a sampled state already.
    """
    sizes = np.abs(samples.values(entry)[samples.special :])
    threshold = _TRUSTED * float(np.median(sizes))
    if not sizes.min() > threshold:
        raise CompileError(
            f"The ordering has no safe pivot for {name}: at {np.count_nonzero(~(sizes > threshold))} of "
            f"{len(sizes)} random states nothing is left to divide by (at most {_TRUSTED:g} of what is usual). "
            f"Eliminate {name} later, or use another ordering such as aba or colamd; if all fail, the mechanism is "
            "singular there: see fgd.diagnose(mechanism, q).",
            variable=name,
        )
    return Guard(abs(entry), threshold, f"pivot of {name}")


def vanishing(samples: SampledTape, ref: int, terms: Samples, closed: int, name: str) -> Guard:
    """Watch a coefficient that is taken for zero.

    A plate on three parallel cranks moves because equations of its loops repeat each other; assembled in another
    way it is rigid, and there they do not. What loops leave of such a coefficient, how far they are open explains.

    Args:
        samples: Values at the sampled states.
        ref: The coefficient.
        terms: The size of what it is the difference of.
        closed: One over the square by which loops are open.
        name: The unknown that it is a coefficient of.
    """
    square = samples.tape.mul(samples.tape.mul(ref, ref), closed)
    threshold = (_FOLLOWS * float(np.median(terms[samples.special :]))) ** 2
    label = (
        f"square of a coefficient of {name} that vanishes in the branch of loops the kernel is for, "
        "beside how far they are open (solve other branches by the graph: fgd.forward_dynamics and so on),"
    )
    return Guard(abs(square), threshold, label, small=True)


def condition(samples: SampledTape, misfits: Sequence[int], given: int) -> Guard:
    """Watch what given values miss of equations that they alone have to meet, beside the terms that it is made of.

    Args:
        samples: Values at the sampled states.
        misfits: References to what is missed.
        given: One over the squared size of the given values.
    """
    tape, square, terms = samples.tape, ZERO, np.zeros(1)
    for misfit in misfits:
        square = tape.add(square, tape.mul(misfit, misfit))
        terms = terms + (samples.error(misfit) / UNIT_ROUNDOFF) ** 2 + samples.values(misfit) ** 2
    usual = float(np.median((terms * samples.values(given))[samples.special :]))
    label = (
        "square of the misfit of an equation in given values only, which they contradict (loops or couplings do not "
        "allow such a motion, or the motors cannot cause it),"
    )
    return Guard(abs(tape.mul(square, given)), _CONSISTENT**2 * usual, label, small=True)
