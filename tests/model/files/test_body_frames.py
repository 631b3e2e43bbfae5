"""Bodies whose frames are not on their joints: by its name a link is where its file has it, whatever is asked."""

import mujoco
import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.urdf.writer import to_urdf

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
ARM = """<mujoco><option gravity="0.3 -0.2 -9"/><worldbody>
  <body name="upper" pos="0 0 1" euler="10 20 30"><joint name="shoulder" axis="0 1 0.2" pos="0.1 0.2 0.5"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0 0.1 0.2"/>
    <body name="lower" pos="0.3 0 0" euler="-40 5 60"><joint name="elbow" type="slide" axis="1 0.5 0"/>
      <joint name="wrist" axis="1 0 0" pos="0.1 0 -0.3"/><geom type="box" size="0.2 0.1 0.1" pos="0.2 0 0"/>
    </body></body></worldbody></mujoco>"""
SDF = """<sdf version="1.7"><model name="m"><link name="base"/>
  <link name="arm"><pose>0 0 1 0.3 0.2 0.1</pose><inertial><mass>1</mass></inertial></link>
  <joint name="world_fixed" type="fixed"><parent>world</parent><child>base</child></joint>
  <joint name="j" type="revolute"><parent>base</parent><child>arm</child><pose>0.1 0.2 0.3 0.5 0 0</pose>
    <axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


@pytest.fixture(scope="module")
def arm():
    return fgd.loads(ARM)


@pytest.fixture
def theirs(arm):
    """MuJoCo's model and data at a state, with the state."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data, (q, v) = mujoco.MjData(model), arm.random_state(0)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    return model, data, q, v


@pytest.mark.parametrize("body", ["upper", "lower"])
def test_poses_and_motions_are_those_of_mujocos_bodies(arm, theirs, body):
    model, data, q, v = theirs
    R, jacobians = data.body(body).xmat.reshape(3, 3), np.zeros((2, 3, model.nv))
    mujoco.mj_jacBody(model, data, jacobians[1], jacobians[0], model.body(body).id)
    J = np.concatenate([R.T @ jacobians[0], R.T @ jacobians[1]])
    T = fgd.pose(arm, q, body)
    np.testing.assert_allclose(T[:3, 3], data.body(body).xpos, **CLOSE)
    np.testing.assert_allclose(T[:3, :3], R, **CLOSE)
    np.testing.assert_allclose(fgd.poses(arm, q)[body], T, **CLOSE)
    np.testing.assert_allclose(fgd.jacobian(arm, q, body), J, **CLOSE)
    names = [f"T[{body}]", f"J[{body}]", f"V[{body}]"]
    kernel = fgd.compile(arm, "kinematics", outputs=names)
    for found, expected in zip(kernel(q, v), (T, J, J @ v), strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)
    solution = fgd.inverse_dynamics(arm, q, v, np.ones(3))
    np.testing.assert_allclose(solution.twists[body], J @ v, **CLOSE)
    rate = fgd.compile(arm, "inverse", outputs=[f"A[{body}]"])(q, v, np.ones(3))
    np.testing.assert_allclose(solution.accelerations[body], rate, **CLOSE)
    step = 1e-6
    ahead, behind = (fgd.jacobian(arm, q + s * v, body) @ (v + s) for s in (step, -step))
    gravity = np.concatenate([np.zeros(3), R.T @ arm.gravity])
    np.testing.assert_allclose(rate + gravity, (ahead - behind) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("axes", ["local", "world"])
@pytest.mark.parametrize("body", ["upper", "lower"])
def test_wrenches_and_contacts_act_where_mujocos_bodies_are(arm, theirs, body, axes):
    model, data, q, v = theirs
    wrench = np.array([0.3, -0.5, 0.7, 2.0, -3.0, 5.0])
    R = np.eye(3) if axes == "world" else data.body(body).xmat.reshape(3, 3)
    pushed = np.zeros(model.nv)
    mujoco.mj_applyFT(
        model, data, R @ wrench[3:], R @ wrench[:3], data.body(body).xpos.copy(), model.body(body).id, pushed
    )
    zero = np.zeros(3)
    free = fgd.inverse_dynamics(arm, q, v, zero).tau
    tau = fgd.inverse_dynamics(arm, q, v, zero, external_wrenches={body: wrench}, axes=axes).tau
    np.testing.assert_allclose(free - tau, pushed, **CLOSE)
    kernel = fgd.compile(arm, "inverse", external_wrenches=[body], axes=axes)
    np.testing.assert_allclose(kernel(q, v, zero, wrench), tau, **CLOSE)
    contact = fgd.Contact(body, kind="wrench", axes=axes)
    B = fgd.input_matrix(arm, q, actuated=[], contacts=[contact])
    np.testing.assert_allclose(B @ wrench, pushed, **CLOSE)
    iwim = fgd.iwim(arm, q, actuated=[], contacts=[contact])
    np.testing.assert_allclose(fgd.mass_matrix(arm, q) @ iwim, B, **CLOSE)
    compiled = fgd.compile(arm, "iwim", actuated=[], contacts=[contact])(q)
    np.testing.assert_allclose(compiled, iwim, **CLOSE)


def test_what_is_added_to_a_body_is_placed_in_its_frame(arm):
    q, v = arm.random_state(1)
    place = fgd.translation(0.1, 0.2, 0.3)
    tool = arm.add_frame("tool", "lower", place)
    np.testing.assert_allclose(fgd.pose(tool, q, "tool"), fgd.pose(arm, q, "lower") @ place, **CLOSE)
    loaded = arm.add_payload("lower", 2.0, place[:3, 3])
    velocity = (fgd.jacobian(tool, q, "tool") @ v)[3:]
    gained = fgd.energy(loaded, q, v)[0] - fgd.energy(arm, q, v)[0]
    assert gained == pytest.approx(velocity @ velocity, rel=1e-10)


def test_links_of_sdf_are_where_the_file_has_them():
    arm = fgd.loads(SDF)
    np.testing.assert_allclose(fgd.pose(arm, [0.0], "arm")[:3, 3], [0, 0, 1], atol=1e-12)


def test_another_base_leaves_links_where_they_were():
    arm = fgd.robots.puma560()
    q, _ = arm.random_state(2)
    turned = arm.change_base("link4", q=q)
    ours, theirs = fgd.poses(arm, q), fgd.poses(turned, q)
    for name in arm.link_names:
        np.testing.assert_allclose(theirs[name], np.linalg.inv(ours["link4"]) @ ours[name], atol=1e-12)


def test_urdf_keeps_links_where_they_are(arm):
    again, (q, v) = fgd.loads(to_urdf(arm, lossy=True)), arm.random_state(3)
    assert again.joint_names == arm.joint_names
    for body in ("upper", "lower"):
        np.testing.assert_allclose(fgd.pose(again, q, body), fgd.pose(arm, q, body), **CLOSE)
    np.testing.assert_allclose(fgd.mass_matrix(again, q), fgd.mass_matrix(arm, q), **CLOSE)
    assert fgd.energy(again, q, v)[0] == pytest.approx(fgd.energy(arm, q, v)[0], rel=1e-10)
