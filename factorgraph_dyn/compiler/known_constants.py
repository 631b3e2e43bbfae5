"""What a tape is told of a mechanism's constants: which belong together, and how far rounding has moved them.

Takes a tape and a mechanism; writes the constants on it before any equation does. The work runs once a kernel.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.compiler.tape.field import constant_circle_point
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.model import Frame, Joint, Mechanism
from factorgraph_dyn.spatial import Floats, adjoint

_CONSTANT_ERROR = 1e-15  # of the largest of the constants that belong together


def know_constants(tape: Tape, mechanism: Mechanism) -> None:
    """Let a tape know which constants belong together and how far rounding has moved them.

    The cosine and sine of a placement's turn about x belong to one angle. The entries of a rotation are as exact as
    one is, those of a shift or an inertia as their largest is, and single numbers as they are themselves.
    """
    ends = [end for loop in mechanism.loops for end in (loop.predecessor_placement, loop.successor_placement)]
    parts: list[Joint | Frame] = [*mechanism.joints, *mechanism.frames]
    for placement in (*(part.placement for part in parts), *ends):
        T = np.asarray(placement)
        R = T[:3, :3]
        if R[0, 0] == 1.0 and np.count_nonzero(R) == 5:
            cosine, sine = constant_circle_point(float(np.arctan2(R[2, 1], R[2, 2])))
            tape.constant(float(R[2, 2]), cosine)
            tape.constant(float(R[2, 1]), sine)
        _know_errors(tape, R[np.round(R) != R], 1.0)
        _know_errors(tape, T[:3, 3], float(np.abs(T[:3, 3]).max()))
    for loop in mechanism.loops:
        if loop.constant_subspace is not None:  # seen from its link it is a product of constants, with its rounding
            S = adjoint(loop.successor_placement) @ loop.constant_subspace
            for block in (S[:3], S[3:]):
                _know_errors(tape, block.ravel(), float(np.abs(block).max(initial=0.0)))
    for link in mechanism.links:
        G = link.spatial_inertia
        for block in (G[:3, :3], G[:3, 3:]):
            _know_errors(tape, block.ravel(), float(np.abs(block).max()))
        tape.constant(link.mass, error=0.0)
    for joint in mechanism.joints:
        effects = (joint.armature, joint.damping, joint.friction, joint.stiffness, joint.rest, np.array([joint.pitch]))
        _know_errors(tape, np.concatenate(effects), 0.0)
    _know_errors(tape, np.array([[c.ratio, c.offset] for c in mechanism.couplings]).ravel(), 0.0)


def _know_errors(tape: Tape, values: Floats, size: float) -> None:
    for value in values.tolist():
        tape.constant(value, error=_CONSTANT_ERROR * size)
