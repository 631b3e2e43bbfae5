"""Which joints have a motor where nobody says: joints that are coupled to each other have one between them.

Takes joints and couplings; gives names of joints. A coupling makes one freedom of two, so that only the sum of their
torques, each times how far its joint moves, can be known:

    q_finger_2 = ratio q_finger_1:   tau_finger_1 + ratio tau_finger_2  is unique, neither of the two is

The joint that mimics another is no motor; the one it follows is. Runs once a mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from factorgraph_dyn.model.parts import Coupling, Joint


def one_motor_each(joints: Sequence[Joint], couplings: Sequence[Coupling]) -> tuple[str, ...]:
    """The names of the joints without those that move as another one does, or that a ratio of zero holds.

    Of joints that are coupled, one that is marked actuated stays, rather one that follows no other.
    """
    if not couplings:
        return tuple(joint.name for joint in joints)
    followers = {coupling.joint for coupling in couplings}
    chosen = {joint.name for joint in joints}
    for together in coupled_sets(couplings):
        here = [joint for joint in joints if joint.name in together]
        chosen -= together
        if here and not _is_held(together, couplings):
            chosen.add(min(here, key=lambda joint: (not joint.actuated, joint.name in followers)).name)
    return tuple(joint.name for joint in joints if joint.name in chosen)


def coupled_sets(couplings: Iterable[Coupling]) -> list[set[str]]:
    """The names of joints that move together, a set for each freedom."""
    sets: list[set[str]] = []
    for coupling in couplings:
        ends = {coupling.joint, coupling.source} if coupling.ratio else {coupling.joint}
        touched = [found for found in sets if found & ends]
        sets = [*(found for found in sets if not found & ends), ends.union(*touched)]
    return sets


def _is_held(together: set[str], couplings: Iterable[Coupling]) -> bool:
    return any(coupling.joint in together and not coupling.ratio for coupling in couplings)
