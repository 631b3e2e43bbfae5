"""Linkages that can lie folded, with their joint zeros at any of their configurations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.spatial import pose, rotation_about

X, Z = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


def bar(name, length):
    return fgd.Link(name, 1.0, (length / 2, 0.0, 0.0), np.diag([0.01, 0.08, 0.09]))


def scissor(stages, limits=None):
    """A scissor lift of crossed bars, A on B, on a pin and a slider; at zero all bars lie upon each other."""
    links, joints, loops, at = [fgd.Link("ground")], [], [], fgd.translation
    for k in range(stages):
        below, foot = (f"A{k - 1}", at(1, 0, 0)) if k else ("ground", np.eye(4))
        links += [fgd.Link(f"{side}{k}", 1.0, inertia=np.diag([0.01, 0.08, 0.08])) for side in "AB"]
        joints.append(fgd.Joint(f"a{k}", "revolute", below, f"A{k}", foot, limits=None if k else limits))
        joints.append(fgd.Joint(f"m{k}", "revolute", f"A{k}", f"B{k}", at(0.5, 0, 0)))
        if k:
            loops.append(fgd.Loop(f"p{k}", "revolute", f"B{k - 1}", f"B{k}", at(0.5, 0, 0), at(-0.5, 0, 0)))
    joints.append(fgd.Joint("slide", "prismatic", "ground", "slider", axis=X))
    loops.append(fgd.Loop("pin", "revolute", "slider", "B0", successor_placement=at(-0.5, 0, 0)))
    return fgd.Mechanism(f"scissor{stages}", (*links, fgd.Link("slider", 0.2)), joints, loops)


def raised(stages, angle):
    """The configuration of a scissor lift whose bars stand at an angle, rad."""
    opening, signs = np.pi - 2 * angle, (-1.0) ** np.arange(stages)
    turns = np.column_stack([-signs, signs]) * opening
    turns[0, 0] = angle
    return np.append(turns.ravel(), np.cos(angle))


def bennett(angle, a=1.0, alpha=0.5, beta=1.1):
    """A Bennett linkage, sin(alpha) / a = sin(beta) / b, assembled at zero with its first joint at an angle, rad.

    Its angles obey tan(first / 2) tan(second / 2) = sin((alpha + beta) / 2) / sin((beta - alpha) / 2).
    """
    b, ratio = a * np.sin(beta) / np.sin(alpha), np.sin((alpha + beta) / 2) / np.sin((beta - alpha) / 2)
    second = 2 * np.arctan2(ratio * np.cos(angle / 2), np.sin(angle / 2))
    A, B = (pose(rotation_about(X, twist), length * X) for twist, length in ((alpha, a), (beta, b)))
    turns = [pose(rotation_about(Z, turn), 0 * X) for turn in (angle, second, -angle)]
    places = [T @ turn for T, turn in zip((np.eye(4), A, B), turns, strict=True)]
    names = ("ground", "first", "second", "third")
    joints = [fgd.Joint(f"j{k}", "revolute", names[k], names[k + 1], places[k]) for k in range(3)]
    links = [fgd.Link("ground"), *(bar(name, length) for name, length in zip(names[1:], (a, b, a), strict=True))]
    return fgd.Mechanism("bennett", links, joints, [fgd.Loop("l", "revolute", "ground", "third", np.linalg.inv(B), A)])


def parallelogram(crank, coupler):
    """Two equal cranks and their coupler, all on one line at zero."""
    links = [fgd.Link("ground"), bar("first", crank), bar("coupler", coupler), bar("second", crank)]
    joints = [
        fgd.Joint("j0", "revolute", "ground", "first"),
        fgd.Joint("j1", "revolute", "first", "coupler", fgd.translation(crank, 0, 0)),
        fgd.Joint("j2", "revolute", "ground", "second", fgd.translation(coupler, 0, 0)),
    ]
    ends = fgd.translation(coupler, 0, 0), fgd.translation(crank, 0, 0)
    return fgd.Mechanism("parallelogram", links, joints, [fgd.Loop("l", "revolute", "coupler", "second", *ends)])


def slider_crank(crank=1.0):
    """A crank and a rod of one length that drive a slider; at zero they lie upon each other and turn as one."""
    links = [fgd.Link("ground"), bar("crank", crank), bar("rod", crank), fgd.Link("slider", 0.5)]
    joints = [
        fgd.Joint("j0", "revolute", "ground", "crank"),
        fgd.Joint("j1", "revolute", "crank", "rod", fgd.translation(crank, 0, 0)),
        fgd.Joint("j2", "prismatic", "ground", "slider", axis=X),
    ]
    loop = fgd.Loop("pin", "revolute", "slider", "rod", successor_placement=fgd.translation(-crank, 0, 0))
    return fgd.Mechanism("slider_crank", links, joints, [loop], gravity=(0.0, -9.81, 0.0))


def driven(crank, angle):
    """The configuration of a slider-crank whose slider moves."""
    return np.array([angle, np.pi - 2 * angle, 2 * crank * np.cos(angle)])


def three_cranks(radius=0.5):
    """A plate on three equal cranks: one more than it needs, and rigid when assembled in other modes."""
    pins = [fgd.translation(*at, 0) for at in ((0, 0), (1, 0), (0.3, 0.9))]
    links = [fgd.Link("ground"), bar("plate", 1.0), *(bar(f"c{k}", radius) for k in range(3))]
    turned, tip = pose(rotation_about(Z, 0.4), 0 * X), fgd.translation(radius, 0, 0)
    joints = [fgd.Joint(f"j{k}", "revolute", "ground", f"c{k}", pin @ turned) for k, pin in enumerate(pins)]
    joints.append(fgd.Joint("p", "revolute", "c0", "plate", tip @ turned.T))
    loops = [fgd.Loop(f"l{k}", "revolute", "plate", f"c{k}", pins[k], tip) for k in (1, 2)]
    return fgd.Mechanism("three_cranks", links, joints, loops)


def zeroed(mechanism, q):
    """The same mechanism with its joint zeros at a configuration of one coordinate a joint."""
    places = [
        joint.placement @ joint.type.pose(joint.axes, 0.0, q[k : k + 1]) for k, joint in enumerate(mechanism.joints)
    ]
    joints = [replace(joint, placement=place) for joint, place in zip(mechanism.joints, places, strict=True)]
    return replace(mechanism, joints=tuple(joints))
