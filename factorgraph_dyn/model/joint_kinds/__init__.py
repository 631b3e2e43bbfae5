"""The kinds of joint: how a configuration becomes a pose, and which twists a joint allows.

A kind turns the joint's axes into

    T_frame_child(q)   the pose of the child in the joint frame,
    S                  the motion subspace (6, k) in the child's frame:  V_relative = S v,
    dS v               its rate; zero for every kind but the universal joint,
    q_dot = N(q) v     how the configuration moves,
    misfit(T)          what a pose has that no q gives: zero on the joint's own poses,

all on arrays of any scalar type. A loop joint has no q of its own: its subspace follows from the
relative pose alone, which is why ``subspace`` takes the pose and not q. A new kind is one class and one entry in
``KINDS``: no other module asks for a kind by its name, but readers and engines, which have their own words for them.

Conventions: spherical v is the body angular velocity; planar q = (x, y, angle) with v = (v_x, v_y,
omega) in the child's axes; universal turns first about ``axes[0]``, fixed in the parent, then about
``axes[1]``, fixed in the child; floating q = (position, quaternion), v = the body twist [omega; v].
"""

from __future__ import annotations

from factorgraph_dyn.model.joint_kinds.along_a_line import Fixed, Helical, Sliding, Turning
from factorgraph_dyn.model.joint_kinds.in_several_ways import Floating, Planar, Spherical, Universal
from factorgraph_dyn.model.joint_kinds.kind import JointKind, axes_of

__all__ = ["KINDS", "JointKind", "axes_of", "is_shipped"]

KINDS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        Fixed("fixed", 0, 0),
        Turning("revolute", 1, 1),
        Turning("continuous", 1, 1),
        Sliding("prismatic", 1, 1),
        Helical("helical", 1, 1),
        Universal("universal", 2, 2),
        Spherical("spherical", 4, 3),
        Planar("planar", 3, 3),
        Floating("floating", 7, 6),
    )
}
_SHIPPED = tuple(KINDS.values())


def is_shipped(kind: JointKind) -> bool:
    """Whether a kind is the package's own: of others nobody knows what their code depends on."""
    return any(kind is own for own in _SHIPPED)
