"""Kinematics as users ask for it: of a single state or many, of links and frames by name.

Takes q (..., nq) and v (..., nv), checked here; gives arrays with the same leading axes. Loops and couplings are not
looked at: the poses of links follow from the coordinates of the tree's joints, closed or not. The equations are those
of ``kinematics`` and ``masses``, called once for all states (`many`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice, real_numbers
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model.mechanism import Mechanism, check_mechanism
from factorgraph_dyn.motion import kinematics, masses
from factorgraph_dyn.motion.many import Result, at_states, common_axes
from factorgraph_dyn.spatial import Array, Floats

AXES = ("local", "world")
Axes = Literal["local", "world"]


def pose(mechanism: Mechanism, q: npt.ArrayLike, frame: str) -> Floats:
    """The pose T_world_frame of a link or frame, shape (..., 4, 4): ``T @ [x, y, z, 1]`` is a point of it in the world.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).
        frame: Name of a link or frame.

    Raises:
        InputError: A wrong shape or value of q, or a name that there is not.

    Examples:
        >>> arm = fgd.robots.ur5()
        >>> fgd.pose(arm, np.zeros(6), "link6").shape, fgd.pose(arm, np.zeros((100, 6)), "link6").shape
        ((4, 4), (100, 4, 4))
    """
    check_mechanism(mechanism).place(frame)
    (T,) = at_states(lambda q: (kinematics.place_pose(mechanism, q, frame),), mechanism.check_q(q, batch=True))
    return T


def poses(mechanism: Mechanism, q: npt.ArrayLike) -> dict[str, Floats]:
    """The poses T_world_frame of all links and frames by name, shape (..., 4, 4) each.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).

    Examples:
        >>> sorted(fgd.poses(fgd.robots.rrr(), np.zeros(3)))
        ['base', 'link1', 'link2', 'link3']
    """
    names = check_mechanism(mechanism).place_names

    def at(q: Array) -> Result:
        of_links = kinematics.link_poses(mechanism, q)
        placed = [mechanism.place(name) for name in names]
        return tuple(of_links[link] @ T_link_frame for link, T_link_frame in placed)

    return dict(zip(names, at_states(at, mechanism.check_q(q, batch=True)), strict=True))


def jacobian(mechanism: Mechanism, q: npt.ArrayLike, frame: str, *, axes: Axes = "local") -> Floats:
    """The Jacobian of a link or frame, [omega; v] = J qdot with qdot the joint velocities v, shape (..., 6, nv).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).
        frame: Name of a link or frame.
        axes: "local": the twist in the frame's own axes; "world": the angular velocity, and the velocity of the
            frame's origin, in the axes of the world.

    Raises:
        InputError: A wrong shape or value of q, or a name that there is not.

    Examples:
        >>> arm = fgd.robots.ur5().add_frame("tool", "link6", fgd.translation(0, 0, 0.1))
        >>> q, v = arm.random_state(0)
        >>> omega, velocity = np.split(fgd.jacobian(arm, q, "tool", axes="world") @ v, 2)
        >>> moved = fgd.pose(arm, fgd.integrate(arm, q, v, 1e-6), "tool") - fgd.pose(arm, q, "tool")
        >>> np.allclose(moved[:3, 3] / 1e-6, velocity, atol=1e-5)
        True
    """
    check_mechanism(mechanism).place(frame)
    in_world = check_choice(axes, AXES, "axes") == "world"

    def at(q: Array) -> Result:
        J = kinematics.place_jacobian(mechanism, q, frame)
        return (kinematics.in_world_axes(kinematics.place_pose(mechanism, q, frame), J) if in_world else J,)

    return at_states(at, mechanism.check_q(q, batch=True))[0]


def center_of_mass(mechanism: Mechanism, q: npt.ArrayLike) -> Floats:
    """The centre of mass of all that moves, m in the world, shape (..., 3).

    The base, and what is fixed to it, do not count.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).

    Examples:
        >>> fgd.center_of_mass(fgd.robots.pendulum(2), np.zeros(2)).tolist()  # two rods of 1 m that hang
        [0.0, 0.0, -1.0]
    """
    bodies = _bodies_with_mass(mechanism)
    return at_states(lambda q: (masses.center_of_mass(bodies, q),), mechanism.check_q(q, batch=True))[0]


def momentum(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Floats:
    """The momentum [angular; linear] of a mechanism, shape (..., 6), kg m^2/s and kg m/s.

    It is taken about the centre of mass (the centroidal momentum, where a flying robot's is kept) and given in the axes
    of the world; about a point p its angular part is larger by ``cross(center_of_mass - p, linear)``. Armature
    is inertia of the joints alone and not in it.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).
        v: Velocities, rad/s and m/s, shape (..., nv).

    Examples:
        >>> robot = fgd.robots.humanoid()
        >>> v = np.zeros(robot.nv)
        >>> v[3:6] = 0.0, 0.0, 2.0  # the torso rises, and all with it
        >>> mass = sum(link.mass for link in robot.links)
        >>> np.allclose(fgd.momentum(robot, robot.neutral(), v), [0, 0, 0, 0, 0, 2 * mass])
        True
    """
    bodies = _bodies_with_mass(mechanism)

    def at(q: Array, v: Array) -> Result:
        return (masses.momentum(bodies, q, kinematics.link_twists(bodies, q, v)),)

    return at_states(at, *_checked(mechanism, q, v))[0]


def energy(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Kinetic and potential energy, J, shape (...) each; the potential of gravity is zero at the world's origin.

    Armature counts as kinetic, springs of joints as potential energy; the base and what is fixed to it have none.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).
        v: Velocities, rad/s and m/s, shape (..., nv).

    Examples:
        >>> kinetic, potential = fgd.energy(fgd.robots.pendulum(1), [0.0], [2.0])
        >>> float(potential)  # 1 kg, its centre half a metre below the origin
        -4.905
    """
    bodies = masses.moving_bodies(check_mechanism(mechanism))
    kinetic, potential = at_states(lambda q, v: masses.energies(bodies, q, v), *_checked(mechanism, q, v))
    return kinetic[()], potential[()]


def integrate(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, step: npt.ArrayLike = 1.0) -> Floats:
    """The configuration reached from q by moving with constant v for a time, shape (..., nq).

    Quaternions turn with the body's angular velocity, floating and planar joints move along the arcs of constant body
    twists. `difference` is its inverse.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (..., nq).
        v: Velocities, rad/s and m/s, shape (..., nv).
        step: The time, s: a number, or one for every state, shape (...).

    Examples:
        >>> robot = fgd.robots.humanoid()
        >>> v = np.zeros(robot.nv)
        >>> v[2] = np.pi  # turns about its z axis
        >>> fgd.integrate(robot, robot.neutral(), v, 0.5)[3:7].round(4).tolist()
        [0.0, 0.0, 0.7071, 0.7071]
    """
    q_checked, v_checked = _checked(mechanism, q, v)
    time = real_numbers(step, "The step", InputError)
    if not np.isfinite(time).all():
        raise InputError(f"The step is not finite: {time.tolist()}.")
    common_axes([q_checked, v_checked, time[..., None]])
    return kinematics.integrate(mechanism, q_checked, v_checked, time[..., None])


def difference(mechanism: Mechanism, q0: npt.ArrayLike, q1: npt.ArrayLike) -> Floats:
    """The constant velocity that leads from q0 to q1 in unit time, shape (..., nv).

    ``integrate(mechanism, q0, difference(mechanism, q0, q1))`` is the configuration q1: a quaternion may come with the
    other sign, and the angle of a planar joint without whole turns, because both go the shorter way round.

    Args:
        mechanism: The mechanism.
        q0: Where to start, rad and m, shape (..., nq).
        q1: Where to go, shape (..., nq).

    Examples:
        >>> robot = fgd.robots.humanoid()
        >>> (q0, _), (q1, _) = robot.random_state(0), robot.random_state(1)
        >>> v = fgd.difference(robot, q0, q1)
        >>> v.shape, np.allclose(fgd.pose(robot, fgd.integrate(robot, q0, v), "torso"), fgd.pose(robot, q1, "torso"))
        ((24,), True)
    """
    start = check_mechanism(mechanism).check_q(q0, batch=True, what="q0")
    end = mechanism.check_q(q1, batch=True, what="q1")
    common_axes([start, end])
    return kinematics.difference(mechanism, start, end)


def _checked(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Floats, Floats]:
    q_checked = check_mechanism(mechanism).check_q(q, batch=True)
    v_checked = mechanism.check_v(v, batch=True)
    common_axes([q_checked, v_checked])
    return q_checked, v_checked


def _bodies_with_mass(mechanism: Mechanism) -> Mechanism:
    masses.check_mass(check_mechanism(mechanism))
    return masses.moving_bodies(mechanism)
