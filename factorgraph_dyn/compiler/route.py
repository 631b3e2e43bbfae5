"""Ways from a problem to its program: the cheap one, and more careful ones for kernels that it fails.

Every change of description that makes kernels cheap (see `trace`) trusts some constant to be what it looks like. A
kernel that does not stand its proof is made again with fewer of them and other random draws, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from factorgraph_dyn.compiler.pivots import GOOD_QUALITY


@dataclass(frozen=True)
class Route:
    """Which changes of description a kernel is made with.

    Attributes:
        reframe: Link frames in which constants vanish.
        regroup: Inertia moved to where it costs nothing.
        split: Placements taken in steps.
        rigid: Derivatives of trees in unknowns in which little changes.
        seed: Of the residues, and of the states and inputs at which pivots are judged.
        quality: How large pivots are at least beside others of their column: the larger they have to be, the less
            errors grow in orderings that mix everything, and the more it costs.
        refine: What the solution misses of the equations is solved for, too.
    """

    reframe: bool = True
    regroup: bool = True
    split: bool = True
    rigid: bool = True
    seed: int = 0
    quality: float = GOOD_QUALITY
    refine: bool = False


CHEAP = Route()
_AS_GIVEN = Route(reframe=False, regroup=False, split=False, rigid=False, seed=2)
CAREFUL = (
    Route(reframe=False, seed=1),
    _AS_GIVEN,
    replace(_AS_GIVEN, quality=0.5),
    replace(_AS_GIVEN, refine=True),
)
