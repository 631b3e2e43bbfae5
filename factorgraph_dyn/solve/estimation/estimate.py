"""fgd.estimate: the most probable accelerations, torques and wrenches of a mechanism, given sensors.

    minimise  sum over sensors of |reading - expected|^2 / sigma^2     subject to the equations of motion

The equations hold exactly, or the balances of links have a noise of their own. Joints without a motor have no torque.
Once a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Factor, Variable, given
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.factors import torque
from factorgraph_dyn.equations.inputs import motor_inputs
from factorgraph_dyn.equations.posterior import Evidence
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.noise import make_noise
from factorgraph_dyn.equations.sensors.of_frames import check_feels
from factorgraph_dyn.equations.sensors.together import check_sensors, outside_frames, outside_wrenches
from factorgraph_dyn.equations.wrenches import check_axes, link_wrenches
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.questions import Axes
from factorgraph_dyn.solve.dynamics import Wrenches, check_state
from factorgraph_dyn.solve.estimation.estimated import Estimated, infer
from factorgraph_dyn.solve.estimation.evidence import closures, evidence, exact
from factorgraph_dyn.solve.estimation.free_form import FreeForm, dynamics_form
from factorgraph_dyn.solve.solution import at_own_places
from factorgraph_dyn.spatial import Floats

ModelNoise = npt.ArrayLike | Mapping[str, npt.ArrayLike]


class Estimate(Estimated):
    """The most probable motion and forces of a mechanism at a state.

    Names of variables are a[joint], tau[joint], F[joint or loop], A[link], W[frame], lambda[coupling], and a and tau
    for those of all joints.

    Examples:
        >>> arm, S = fgd.robots.rrr(), fgd.sensors
        >>> estimate = fgd.estimate(arm, np.zeros(3), np.zeros(3), [S.Torque(n, 0.0, 0.1) for n in arm.joint_names])
        >>> estimate.wrenches["joint2"].shape, estimate.standard_deviation["tau"].round(3).tolist()
        ((6,), [0.1, 0.1, 0.1])
    """

    @cached_property
    def a(self) -> Floats:
        """Joint accelerations, rad/s^2 or m/s^2, shape (nv,)."""
        return self.mean("a")

    @cached_property
    def tau(self) -> Floats:
        """Joint torques, N m or N, shape (nv,)."""
        return self.mean("tau")

    @cached_property
    def wrenches(self) -> Mapping[str, Floats]:
        """Wrench [moment; force] each joint and loop passes to its child, in the child's frame."""
        return {name: self.mean(f"F[{name}]") for name in (*self.state.joints, *self.state.loops)}

    @cached_property
    def accelerations(self) -> Mapping[str, Floats]:
        """Spatial acceleration of every link by name, in its own frame, gravity included as in ``Solution``."""
        mechanism = self.state.mechanism
        found = {joint.child: self.mean(f"A[{joint.child}]") for joint in mechanism.topology.outward}
        return {**at_own_places(mechanism, {mechanism.base: base_acceleration(mechanism)}), **found}

    @cached_property
    def external(self) -> Mapping[str, Floats]:
        """Wrench [moment; force] from outside at every frame that a sensor names, in its axes about its origin."""
        return {x.owner: self.mean(str(x)) for x in self._form.variables if x.kind == "W"}

    @property
    def _wholes(self) -> tuple[str, ...]:
        return ("a", "tau")

    def __repr__(self) -> str:
        name, n = self.state.mechanism.name, len(self.sensors)
        return f"Estimate of {name!r} from {n} sensors: a={self.a}, tau={self.tau}, residual={self.residual:.1e}"


def estimate(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    measurements: Sequence[Sensor],
    *,
    actuated: Iterable[str] | None = None,
    external_wrenches: Wrenches | None = None,
    axes: Axes = "local",
    model_noise: ModelNoise | None = None,
    undetermined: str = "error",
) -> Estimate:
    """The most probable accelerations, torques and wrenches, with their covariance.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        measurements: Sensors, ``fgd.sensors.Torque("elbow", 1.2, 0.1)`` and others, in any number and of any noise.
        actuated: Joints that have a motor; the others have no torque. By default those marked actuated.
        external_wrenches: Known wrenches [moment; force] about the origin of a link or frame, by its name. Unknown ones
            are named by a sensor ``ExternalWrench(frame, value, sigma)``.
        axes: "local": known wrenches in the link's or frame's own axes; "world": in those of the world.
        model_noise: Standard deviation of the balance of every link [moment; force], one number or six, or a
            covariance, or these by link name; without it the equations hold exactly.
        undetermined: What to do where the measurements leave variables open: "error" names them and sensors that
            would tell, "infinite" answers nan with infinite variance there. Internal wrenches of redundant loops, which
            no motion tells, are nan with infinite variance by either word until a sensor reads them.

    Raises:
        InputError: Bad input: sensors of what is not there, covariances that are not positive definite, exact
            measurements that contradict each other or the equations.
        SingularSystemError: The measurements leave motions, torques or outside wrenches open.

    Examples:
        >>> arm, S = fgd.robots.rrr(), fgd.sensors
        >>> torques = [S.Torque(name, 0.0, 0.1) for name in arm.joint_names]  # N m, standard deviation 0.1
        >>> estimate = fgd.estimate(arm, np.zeros(3), np.zeros(3), [*torques, S.Acceleration("joint3", 0.0, 0.5)])
        >>> estimate.a.shape, estimate.covariance("a").shape, estimate.degrees_of_freedom
        ((3,), (3, 3), 1)
    """
    state = check_state(mechanism, q, v)
    sensors = check_sensors(measurements, of_velocities=False)
    for sensor in sensors:
        sensor.check(mechanism)
    pushes = outside_wrenches(mechanism, outside_frames(sensors))
    noises = _model_noises(mechanism, model_noise)
    for link in noises:
        pushes.setdefault(link, []).append((_disturbance(link), np.eye(6)))
    placed = given.check_wrenches(mechanism, external_wrenches)
    form = dynamics_form(state, pushes, link_wrenches(mechanism, state.q, placed, check_axes(axes)))
    rows = closures(form) + _without_motor(form, actuated)
    rows += _disturbances(form, noises)
    found = infer(Estimate, form, sensors, rows, undetermined)
    assert isinstance(found, Estimate)
    return found


def _without_motor(form: FreeForm, actuated: Iterable[str] | None) -> list[Evidence]:
    """Joints without a motor have no torque."""
    mechanism = form.state.mechanism
    moved = np.asarray(motor_inputs(mechanism, actuated).torques.any(axis=1))
    found = []
    for joint in mechanism.movable_joints:
        rows = np.eye(joint.nv)[~moved[mechanism.v_slices[joint.name]]]
        if len(rows):
            factor = Factor("motor", joint.name, ((torque(joint.name, joint.nv), rows),), np.zeros(len(rows)))
            found += exact(form, [factor], "the missing motor of joint {!r}")
    return found


def _disturbance(link: str) -> Variable:
    return Variable("disturbance", link, 6)


def _model_noises(mechanism: Mechanism, noise: ModelNoise | None) -> Mapping[str, npt.ArrayLike]:
    """Noises of balances by link."""
    if noise is None:
        return {}
    if not isinstance(noise, Mapping):
        return {joint.child: noise for joint in mechanism.joints}
    for link in noise:
        mechanism.check_link(link)
        check_feels(mechanism, link, "model_noise")
    return noise


def _disturbances(form: FreeForm, noises: Mapping[str, npt.ArrayLike]) -> list[Evidence]:
    """Noises of balances, as wrenches from nowhere."""
    found = []
    for link, sigma in noises.items():
        noise = make_noise(sigma, 6, f"the balance of link {link!r}")
        factor = Factor("sensor", link, ((_disturbance(link), np.eye(6)),), np.zeros(6), noise)
        found.append(evidence(form, factor, f"the balance of {link!r}"))
    return found
