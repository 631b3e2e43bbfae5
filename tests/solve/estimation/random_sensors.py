"""Random sensors of a mechanism: any kinds, any noises, correlated or not."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import sensors as kinds
from factorgraph_dyn.model.sizes.units import natural


def random_sensors(mechanism, rng, decades):
    """Sensors whose standard deviations span 2 x decades powers of ten around what is usual in the mechanism."""
    own, found = natural(mechanism), []

    def add(kind, place, unit):
        s = 10.0 ** rng.uniform(-decades, decades, len(unit)) * unit
        found.append(kind(place, rng.normal(size=len(unit)) * unit, _correlated(rng, s) if rng.random() < 0.3 else s))

    moving = [link.name for link in mechanism.links if link.name != mechanism.base]
    for link in rng.choice(moving, min(int(rng.integers(0, 3)), len(moving)), replace=False):
        add(kinds.ExternalWrench, str(link), own.wrench)
    for joint in mechanism.movable_joints:
        place = mechanism.v_slices[joint.name]
        if rng.random() < 0.8:
            add(kinds.Torque, joint.name, own.tau[place])
        if rng.random() < 0.5:
            add(kinds.Acceleration, joint.name, own.v[place])
    for link in moving:
        if rng.random() < 0.3:
            add(kinds.Accelerometer, link, np.full(3, own.length))
        if rng.random() < 0.3:
            add(kinds.AngularAcceleration, link, np.ones(3))
    for joint in mechanism.joints:
        if rng.random() < 0.2:
            add(kinds.ForceTorque, joint.name, own.wrench)
    for loop in mechanism.loops:
        add(kinds.ForceTorque, loop.name, own.wrench)
    return found


def _correlated(rng, s):
    """A covariance matrix with standard deviations s."""
    X = rng.normal(size=(len(s), 2 * len(s)))
    C = X @ X.T
    d = np.sqrt(np.diag(C))
    return C / np.outer(d, d) * np.outer(s, s)
