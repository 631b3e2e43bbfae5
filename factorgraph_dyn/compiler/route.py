"""Ways from a problem to its program: the cheap one, and more careful ones for kernels that it fails.

Every change of description that makes kernels cheap (see `trace`) trusts some constant to be what it looks like. A
kernel that does not stand its proof is made again with fewer of them and other random draws, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Route:
    """Which changes of description a kernel is made with.

    Attributes:
        reframe: Link frames in which constants vanish.
        regroup: Inertia moved to where it costs nothing.
        split: Placements taken in steps.
        rigid: Derivatives of trees in unknowns in which little changes.
        seed: Of the residues, and of the states and inputs at which pivots are judged.
        patient: Unknowns without a good pivot wait until others have been eliminated, whatever the ordering says: where
            it mixes everything, errors grow less, and often it costs less.
        refine: What the solution misses of the equations is solved for, too.
    """

    reframe: bool = True
    regroup: bool = True
    split: bool = True
    rigid: bool = True
    seed: int = 0
    patient: bool = False
    refine: bool = False


CHEAP = Route()
_AS_GIVEN = Route(reframe=False, regroup=False, split=False, rigid=False, seed=2)
CAREFUL = (
    Route(reframe=False, seed=1),
    _AS_GIVEN,
    replace(_AS_GIVEN, patient=True),
    replace(_AS_GIVEN, refine=True),
    replace(CHEAP, refine=True),  # other states choose other readings of estimators, some of which say more
)
CAREFUL_ESTIMATES = CAREFUL[::-1]  # squares of noises lose digits, which refining gives back
