"""fgd.estimate_velocity: the most probable velocities of a mechanism, given encoders, gyroscopes and feet at rest.

The velocity factors hold exactly, those of loops and couplings too. Once a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.together import check_sensors
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.solve.dynamics import check_state
from factorgraph_dyn.solve.estimation.estimated import Estimated, infer
from factorgraph_dyn.solve.estimation.evidence import closures
from factorgraph_dyn.solve.estimation.free_form import velocity_form
from factorgraph_dyn.spatial import Floats


class VelocityEstimate(Estimated):
    """The most probable velocities of a mechanism at a configuration; variables are v[joint or loop] and V[link].

    Examples:
        >>> arm, S = fgd.robots.rrr(), fgd.sensors
        >>> found = fgd.estimate_velocity(arm, np.zeros(3), [S.Velocity(name, 0.5, 0.01) for name in arm.joint_names])
        >>> found.standard_deviation["v"].round(3).tolist()
        [0.01, 0.01, 0.01]
    """

    @cached_property
    def v(self) -> Floats:
        """Joint velocities, rad/s or m/s, shape (nv,)."""
        return self.mean("v")

    @cached_property
    def twists(self) -> Mapping[str, Floats]:
        """Twist [omega; v] of every link by name, in its own frame, shape (6,) each."""
        mechanism = self.state.mechanism
        found = {joint.child: self.mean(f"V[{joint.child}]") for joint in mechanism.topology.outward}
        return {mechanism.base: np.zeros(6), **found}

    @property
    def _wholes(self) -> tuple[str, ...]:
        return ("v",)

    def __repr__(self) -> str:
        return f"VelocityEstimate of {self.state.mechanism.name!r} from {len(self.sensors)} sensors: v={self.v}"


def estimate_velocity(
    mechanism: Mechanism, q: npt.ArrayLike, measurements: Sequence[Sensor], *, undetermined: str = "error"
) -> VelocityEstimate:
    """The most probable joint velocities and twists, with their covariance.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        measurements: Sensors of velocities: ``fgd.sensors.Velocity``, ``Gyroscope``, ``PointVelocity`` (a foot at
            rest), ``Combination``.
        undetermined: As for ``fgd.estimate``.

    Raises:
        InputError: As for ``fgd.estimate``.
        SingularSystemError: The measurements leave velocities open.

    Examples:
        >>> arm, S = fgd.robots.rrr(), fgd.sensors
        >>> encoders = [S.Velocity(name, 0.5, 0.01) for name in arm.joint_names]
        >>> fgd.estimate_velocity(arm, np.zeros(3), encoders).v.round(6).tolist()
        [0.5, 0.5, 0.5]
    """
    state = check_state(mechanism, q, np.zeros(check_mechanism(mechanism).nv))
    sensors = check_sensors(measurements, of_velocities=True)
    form = velocity_form(state)
    found = infer(VelocityEstimate, form, sensors, closures(form), undetermined)
    assert isinstance(found, VelocityEstimate)
    return found
