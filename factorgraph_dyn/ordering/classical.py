"""The orderings that reproduce the classical algorithms, each one page that reads like it.

Each takes a mechanism and gives names of variables; those that a problem does not have (because they
are known) are passed over by ``choose_ordering``. The freedoms of loop joints come first, since each stands in
its own loop's equation only; the wrenches of loops and the forces of couplings tie links together and come after
these, in aba as soon as both sides of the loop are done, else last.

Sources: Featherstone, Rigid Body Dynamics Algorithms (2008), chapters 5 to 7; Xie & Dellaert (2019).
"""

from __future__ import annotations

from collections.abc import Iterator

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.loop_groups import loop_paths


def rnea(mechanism: Mechanism) -> Iterator[str]:
    """Recursive Newton-Euler: back-substitution runs accelerations outward, then wrenches inward.

    Eliminating torques first makes each depend on its own wrench; wrenches from the base to the tips
    depend on their link's acceleration and the wrenches further out; accelerations from the tips to
    the base depend on the parent's.
    """
    outward = mechanism.topology.outward
    yield from loop_freedoms(mechanism)
    yield from (f"tau[{joint.name}]" for joint in outward)
    yield from (f"F[{joint.name}]" for joint in outward)
    yield from (f"A[{joint.child}]" for joint in reversed(outward))
    yield from loop_forces(mechanism)


def aba(mechanism: Mechanism) -> Iterator[str]:
    """Articulated bodies: link by link from the tips, so that each leaves its inertia to its parent.

    Wrench and acceleration of a link go first; what remains of its torque equation then has the
    articulated-body D = S^T I^A S as the coefficient of the joint acceleration.
    """
    yield from loop_freedoms(mechanism)
    done_with = _forces_by_last_joint(mechanism)
    for joint in reversed(mechanism.topology.outward):
        yield f"tau[{joint.name}]"
        yield f"F[{joint.name}]"
        yield f"A[{joint.child}]"
        yield f"a[{joint.name}]"
        yield from done_with[joint.name]


def crba(mechanism: Mechanism) -> Iterator[str]:
    """Composite bodies: all wrenches, all link accelerations; what is left is M a = tau - h."""
    inward = tuple(reversed(mechanism.topology.outward))
    yield from loop_freedoms(mechanism)
    yield from (f"tau[{joint.name}]" for joint in inward)
    yield from (f"F[{joint.name}]" for joint in inward)
    yield from (f"A[{joint.child}]" for joint in inward)
    yield from (f"a[{joint.name}]" for joint in inward)
    yield from loop_forces(mechanism)


def loop_freedoms(mechanism: Mechanism) -> Iterator[str]:
    """The accelerations of loop joints."""
    yield from (f"a[{loop.name}]" for loop in mechanism.loops)


def loop_forces(mechanism: Mechanism) -> Iterator[str]:
    """The wrenches of loops and the forces of couplings."""
    yield from (f"F[{loop.name}]" for loop in mechanism.loops)
    yield from coupling_forces(mechanism)


def coupling_forces(mechanism: Mechanism) -> Iterator[str]:
    """The forces of couplings."""
    yield from (f"lambda[{coupling.name}]" for coupling in mechanism.couplings)


def _forces_by_last_joint(mechanism: Mechanism) -> dict[str, list[str]]:
    """Loops' wrenches and couplings' forces that are done, from the tips to the base, with each joint."""
    rank = {joint.name: k for k, joint in enumerate(mechanism.topology.outward)}
    done: dict[str, list[str]] = {name: [] for name in rank}
    for loop in mechanism.loops:
        sides = [joint.name for side in loop_paths(mechanism, loop) for joint in side]
        done[min(sides, key=rank.__getitem__)].append(f"F[{loop.name}]")
    for coupling in mechanism.couplings:
        done[min(coupling.joint, coupling.source, key=rank.__getitem__)].append(f"lambda[{coupling.name}]")
    return done
