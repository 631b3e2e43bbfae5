"""Inertias that no body can have: common in published models, so found and told, not refused.

A rotational inertia about the com belongs to some mass distribution exactly when its principal
moments are not negative and none exceeds the sum of the other two (Traversaro et al., 2016).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.model.parts import Link

MOMENT_TOLERANCE = 1e-9  # of the largest principal moment


def impossible_inertias(links: Sequence[Link]) -> list[str]:
    """One sentence for every link whose inertia no rigid body can have."""
    return [sentence for link in links if (sentence := _fault(link))]


def _fault(link: Link) -> str | None:
    moments = np.linalg.eigvalsh(link.inertia)  # ascending
    slack = MOMENT_TOLERANCE * max(abs(moments[0]), abs(moments[2]))
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] < -slack:
        fault = f"is not positive semidefinite (principal moments {shown} kg m^2)"
    elif moments[2] > moments[0] + moments[1] + slack:
        fault = f"breaks the triangle inequality (principal moments {shown} kg m^2)"
    elif link.mass == 0 and moments[2] > 0:
        fault = f"is not zero although its mass is (principal moments {shown} kg m^2)"
    else:
        return None
    return f"The inertia of link {link.name!r} {fault}: no body has it. It is used as written."
