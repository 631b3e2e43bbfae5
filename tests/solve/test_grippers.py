"""A joint that mimics another is no motor: grippers have one torque, in the graph, in kernels and by other engines."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from scripts.validate_models import package_folders

ROBOTS = next((folder / "robots" for folder in package_folders() if folder.name == "example-robot-data"), None)
FILES = {"panda": "panda_description/urdf/panda.urdf", "baxter": "baxter_description/urdf/baxter.urdf"}


def _load(name):
    """A robot's file without losses and rotors, which Pinocchio's algorithm leaves out, and Pinocchio's model of it."""
    pin = pytest.importorskip("pinocchio")
    if ROBOTS is None:
        pytest.skip("example-robot-data is not installed")
    mechanism = fgd.load(ROBOTS / FILES[name])
    plain = (replace(joint, armature=0.0, damping=0.0, friction=0.0) for joint in mechanism.joints)
    model = pin.buildModelFromUrdf(str(ROBOTS / FILES[name]), mimic=True)
    model.armature[:] = 0.0
    return replace(mechanism, joints=tuple(plain)), model


def _moving(mechanism, seed):
    """A closed state, and accelerations that couplings allow."""
    q, v = mechanism.random_state(seed)
    a = np.random.default_rng(seed).normal(size=mechanism.nv)
    for coupling in mechanism.couplings:
        a[mechanism.v_slice(coupling.joint)] = coupling.ratio * a[mechanism.v_slice(coupling.source)]
    return q, v, a


def _pinocchio_torques(mechanism, model, q, v, a):
    """Torques of the joints that mimic none, by Pinocchio, 0 for the others."""
    import pinocchio as pin

    places = [(mechanism.v_slice(name), model.joints[model.getJointId(name)]) for name in mechanism.motors]
    vectors = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for here, joint in places:
        for vector, given, start in zip(vectors, (q, v, a), (joint.idx_q, joint.idx_v, joint.idx_v), strict=True):
            vector[start] = given[here][0]
    found = pin.rnea(model, model.createData(), *vectors)
    tau = np.zeros(mechanism.nv)
    for here, joint in places:
        tau[here] = found[joint.idx_v]
    return tau


@pytest.mark.parametrize("name", FILES)
def test_torques_of_grippers_are_pinocchios(name):
    mechanism, model = _load(name)
    assert len(mechanism.motors) == model.nv == mechanism.nv - len(mechanism.couplings)
    for seed in range(3):
        q, v, a = _moving(mechanism, seed)
        expected = _pinocchio_torques(mechanism, model, q, v, a)
        found = fgd.inverse_dynamics(mechanism, q, v, a).tau
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_kernel_gives_the_arm_torques_and_the_gripper_one():
    mechanism, model = _load("panda")
    kernel = fgd.compile(mechanism, "inverse")
    q, v, a = _moving(mechanism, 0)
    expected = _pinocchio_torques(mechanism, model, q, v, a)
    np.testing.assert_allclose(kernel(q, v, a), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert fgd.iwim(mechanism, q).shape == (9, 8)


def _fingers(**changes):
    """Two fingers of which one mimics the other, on an arm of one joint."""
    links = [fgd.Link("base"), *(fgd.Link(n, 1.0, (0.1, 0, 0), np.eye(3)) for n in ("arm", "left", "right"))]
    joints = [
        fgd.Joint("shoulder", "revolute", "base", "arm", actuated=changes.get("shoulder", True)),
        fgd.Joint("left_finger", "prismatic", "arm", "left", axis=(0, 1, 0), actuated=changes.get("left", True)),
        fgd.Joint("right_finger", "prismatic", "arm", "right", axis=(0, -1, 0), actuated=changes.get("right", True)),
    ]
    coupling = fgd.Coupling("mimic", "right_finger", "left_finger", changes.get("ratio", 1.0))
    return fgd.Mechanism("hand", links, joints, couplings=[coupling])


def test_coupled_joints_have_one_motor():
    assert _fingers().motors == ("shoulder", "left_finger")
    assert _fingers(left=False).motors == ("shoulder", "right_finger")
    assert _fingers(ratio=0.0).motors == ("shoulder", "left_finger")  # the other is held
    q, v, a = _moving(_fingers(), 0)
    with pytest.warns(fgd.DoubtfulInputWarning, match="Joints shoulder of"):
        tau = fgd.inverse_dynamics(_fingers(shoulder=False), q, v, a).tau  # without loops all other joints count
    assert tau[0] != 0
    assert tau[2] == 0


def test_torques_that_are_not_unique_name_the_way_out():
    both, (q, v, a) = ["shoulder", "left_finger", "right_finger"], _moving(_fingers(), 0)
    with pytest.raises(fgd.SingularSystemError, match=r"actuated=\[\.\.\.\]"):
        fgd.inverse_dynamics(_fingers(), q, v, a, actuated=both)
    with pytest.raises(fgd.CompileError, match=r"actuated=\[\.\.\.\]"):
        fgd.compile(_fingers(), "inverse", actuated=both)


MJCF = """<mujoco><worldbody><body name="arm"><joint name="shoulder"/><geom size=".1" pos=".3 0 0"/>
<body name="left"><joint name="left" type="slide" axis="0 1 0"/><geom size=".1"/></body>
<body name="right"><joint name="right" type="slide" axis="0 -1 0"/><geom size=".1"/></body></body></worldbody>
<tendon><fixed name="both"><joint joint="left" coef=".5"/><joint joint="right" coef=".5"/></fixed></tendon>
<equality><joint joint1="left" joint2="right"/></equality>
<actuator><motor joint="shoulder"/><motor tendon="both"/></actuator></mujoco>"""


def test_an_equality_of_mujoco_leaves_one_motor():
    mechanism = fgd.loads(MJCF)
    assert mechanism.motors == ("shoulder", "right")
    tau = fgd.inverse_dynamics(mechanism, [0.2, 0.01, 0.01], np.zeros(3), np.array([1.0, 2.0, 2.0])).tau
    M = fgd.mass_matrix(mechanism, [0.2, 0.01, 0.01])
    together = np.array([[1.0, 0, 0], [0, 1, 1]])  # virtual work of the two freedoms
    gravity = fgd.bias(mechanism, [0.2, 0.01, 0.01], np.zeros(3))
    np.testing.assert_allclose(together @ tau, together @ (M @ [1.0, 2.0, 2.0] + gravity), atol=1e-12)
    assert tau[1] == 0
