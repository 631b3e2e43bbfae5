"""Kernels of robots as their makers describe them: rounded angles, tilted axes, inertias of no size and of any.

Real files say 3.1416 where they mean pi, and 1.5707 where they mean half of it: axes are parallel to 1e-4, and
whatever divides by the difference loses digits. All files of the packages: `scripts/validate_models.py`.
"""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.kernel_agreement import compare_kernel, independent_motors, references
from factorgraph_dyn.compare.peers.engines import engine_of, handed_engine
from factorgraph_dyn.compare.peers.pinocchio import PinocchioEngine
from scripts.validate_models import package_folders
from tests.helpers import relative_error
from tests.stress.oracle import Oracle

TOLERANCE = 1e-9  # relative; what rounding makes of ill-conditioned mass matrices is allowed on top
STATES = 3
ROBOTS = next((folder / "robots" for folder in package_folders() if folder.name == "example-robot-data"), None)
FILES = (
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "b1_description/urdf/b1-z1.urdf",
    "baxter_description/urdf/baxter.urdf",
    "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "cassie_description/robots/cassie_simple.sdf",
    "cassie_description/robots/cassie_wo_gearbox_spring.sdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "icub_description/robots/icub_reduced.urdf",
    "kinova_description/robots/kinova.urdf",
    "panda_description/urdf/panda.urdf",
    "romeo_description/urdf/romeo_small.urdf",
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "so_arm_description/urdf/so101.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "ur_description/urdf/ur5_gripper.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
)

FLYING = (
    "iris_description/robots/iris_simple.urdf",
    "laikago_description/urdf/laikago.urdf",
    "panda_description/urdf/panda.urdf",  # coupled fingers, and a base without a motor
    "solo_description/robots/solo12.urdf",
)

ANGLES = (0.0, 3.1416, 3.14159, -3.1415927, 1.5707, 1.5708, -1.5708, 1.570796, -1.57079632679, 0.7854, 1e-5)
AXES = (
    "0 0 1",
    "0.0001 0 1",
    "0 0.99999 0.0045",
    "0 -1 0",
    "1 0 0",
    "1 3e-8 0",
    "-1 0 2.2e-16",
    "0.57735 0.57735 0.57735",
)
OFFSETS = ("0 0 0", "0 0 0.3", "0.05 -0.12 0", "0 0 -1e-9", "0.00013 0.089159 0", "0.25 0 1.7e-17")
COMS = ("0 0 0", "0.0012 -0.05 0.1", "1e-9 0 0.02", "-2.1e-17 0.1 0")
MASSES = (1.0, 0.3, 12.5, 1e-3, 1e-6)


@pytest.mark.slow
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("name", FILES, ids=lambda name: name.split("/")[-1])
def test_file(name, problem):
    path = ROBOTS / name
    mechanism = fgd.load(path, folder=ROBOTS)
    engine = handed_engine(mechanism) if path.suffix == ".sdf" else engine_of(mechanism, path)
    assert_agrees(mechanism, engine, problem)


@pytest.mark.slow
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_cassie_whose_right_foot_its_file_locks():
    """Axes of a foot's four-bar, meant to be parallel, are off by 1.6e-8 rad: 1.5708 stands for pi / 2.

    So the foot's loop has a constraint of 1e-8 of the others' size, at every state: it is neither redundant nor
    independent at 1e-9, and there are no answers to compare. Given pi / 2 all is regular.
    """
    text = (ROBOTS / "cassie_description/robots/cassie_v2.sdf").read_text()
    as_written = fgd.loads(text)
    q, v = as_written.random_state(0)
    shares = closure_values(as_written, q, v)
    assert ((shares > 1e-12) & (shares < 1e-6)).sum() == 1
    meant = fgd.loads(text.replace("1.5708", repr(np.pi / 2)))
    kernel = fgd.compile(meant, "forward")
    for seed in range(STATES):
        q, v = meant.random_state(seed)
        shares = closure_values(meant, q, v)
        assert not ((shares > 1e-12) & (shares < 1e-6)).any()
        tau, none = np.random.default_rng(seed).normal(size=meant.nv), np.zeros(meant.nv, dtype=bool)
        a = Oracle(meant, q, v).ask(np.zeros(meant.nv), tau, none, ~none)["a"].value.astype(float)
        assert relative_error(kernel(q, v, tau), a) < TOLERANCE
        assert relative_error(fgd.forward_dynamics(meant, q, v, tau).a, a) < TOLERANCE


@pytest.mark.slow
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_icub_where_its_mass_matrix_is_worst():
    """Condition 1.5e7 with a diagonal of ones: a solve on a rounded mass matrix keeps nine digits, kernels more."""
    mechanism = fgd.load(ROBOTS / "icub_description/robots/icub.urdf", folder=ROBOTS)
    rng = np.random.default_rng(0)
    q, v = [mechanism.random_state(rng) for _ in range(17)][-1]
    tau, none = rng.normal(size=mechanism.nv), np.zeros(mechanism.nv, dtype=bool)
    M = fgd.mass_matrix(mechanism, q)
    assert np.linalg.cond(M / np.sqrt(np.outer(np.diag(M), np.diag(M)))) > 1e7
    a = Oracle(mechanism, q, v).ask(np.zeros(mechanism.nv), tau, none, ~none)["a"].value.astype(float)
    for ordering in ("aba", "crba", "colamd"):
        kernel = fgd.compile(mechanism, "forward", ordering=ordering)
        assert relative_error(kernel(q, v, tau), a) < TOLERANCE
        assert relative_error(fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering).a, a) < TOLERANCE


def closure_values(mechanism, q, v):
    """The singular values of the closure's Jacobian, the largest of them 1."""
    values = np.linalg.svd(fgd.constraints(mechanism, q, v).J, compute_uv=False)
    return values / values[0]


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("name", FLYING, ids=lambda name: name.split("/")[-1])
def test_floating_base(name, problem):
    mechanism = fgd.load(ROBOTS / name, folder=ROBOTS, floating_base=True)
    assert_agrees(mechanism, engine_of(mechanism, ROBOTS / name), problem)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("seed", range(8))
def test_rough_robot(seed, problem, tmp_path):
    """Everything that files have, drawn by chance; Pinocchio reads the same file."""
    assert_file_agrees(rough_robot(seed), problem, tmp_path)


@pytest.mark.parametrize("ordering", ["crba", "colamd", "min_fill"])
def test_rough_robot_in_other_orderings(ordering, tmp_path):
    assert_file_agrees(rough_robot(3), "forward", tmp_path, ordering)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("half", ["1.5707", "1.5708", "1.57", "1.570796"])
def test_rounded_right_angles(half, problem, tmp_path):
    """An arm as of Denavit and Hartenberg, its axes square or parallel to the digits that its maker gave."""
    turns = [f"{half} 0 0", f"0 0 -{half}", f"-{half} 0 3.1416", "0 3.1416 0", f"{half} 0 {half}", "3.1416 0 0"]
    links = [link(f"l{k}", 2.0 / (1 + k), "0.01 0.02 0.1", 0.02 / (1 + k)) for k in range(7)]
    joints = [joint(k, f"l{k}", f"l{k + 1}", "0 0.1 0.3", turn, "0 0 1") for k, turn in enumerate(turns)]
    assert_file_agrees(urdf(links + joints), problem, tmp_path)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("tilt", [1e-3, 1e-5, 1e-7, 4e-8, 1e-9, 1e-12])
def test_nearly_parallel_axes(tilt, problem, tmp_path):
    """Neither the tilt is dropped nor is anything moved to where the axes meet."""
    axes = ("0 0 1", f"0 {tilt} 1", f"{-tilt} 0 1", f"1 0 {tilt}", f"{tilt} 1 {tilt}", "0 1 0")
    links = [link(f"l{k}", 1.0, "0.1 0 0.02", 0.01) for k in range(len(axes) + 1)]
    joints = [joint(k, f"l{k}", f"l{k + 1}", "0.4 0 0.05", "0 0 0", axis) for k, axis in enumerate(axes)]
    assert_file_agrees(urdf(links + joints), problem, tmp_path)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize(("mass", "inertia"), [(1e-6, 1e-9), (1e-6, 1e-12), (1e-3, 1e-9), (1e4, 1e3)])
def test_small_and_large(mass, inertia, problem, tmp_path):
    """A finger of grams, a toy of milligrams, an excavator."""
    length = (inertia / mass) ** 0.5
    parts = [link(f"l{k}", mass, f"0 {length} {2 * length}", inertia) for k in range(5)]
    offset = f"{3 * length} 0 {length}"
    parts += [joint(k, f"l{k}", f"l{k + 1}", offset, "1.5708 0 0", "0 0 1") for k in range(4)]
    assert_file_agrees(urdf(parts), problem, tmp_path)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_centre_of_mass_in_millimetres(problem, tmp_path):
    """One link's centre is a kilometre off, because its maker forgot a factor; the rest is an arm."""
    centres = ("0 0 0.1", "0.02 0 0.1", "12.5 -3.1 1043", "0 0.01 0.1", "0 0 0.05")
    parts = [link(f"l{k}", 1.5, centre, 0.01) for k, centre in enumerate(centres)]
    parts += [joint(k, f"l{k}", f"l{k + 1}", "0 0 0.3", "1.5707 0 0", "0 0 1") for k in range(4)]
    assert_file_agrees(urdf(parts), problem, tmp_path)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("power", [-61, -122, -31, -62])
def test_powers_of_two(power, problem, tmp_path):
    """What sums of inertias leave behind is no other constant of the robot."""
    size = 1e-12 if power < -31 else 1.0
    cross = min(2.0**power, 0.3 * size)
    parts = [link(f"l{k}", 1e6 * size, "0 0 0.001", size, cross) for k in range(3)]
    parts += [joint(k, f"l{k}", f"l{k + 1}", "0.001 0 0", "0 0 0", axis) for k, axis in enumerate(("0 0 1", "0 1 0"))]
    assert_file_agrees(urdf(parts), problem, tmp_path)


GRIPPER = """<mujoco><worldbody><body quat="0.7071068 0.0312 -0.0211 0.7061">
  <inertial pos="0 0 0.03" mass="0.5" diaginertia="1e-3 1e-3 1e-3"/>
  <body name="driver" pos="0 0.035 0.0591"><joint axis="1 0 0"/>
    <inertial pos="0 0.0216 0.0011" mass="0.0336" quat="0.665 -0.24 0.24 0.665" diaginertia="1.8e-5 1.4e-5 4.8e-6"/>
    <body name="finger" pos="0 0.0355 0.0420"><joint axis="1 0 0"/>
      <inertial pos="0 -0.0165 0.0259" mass="0.0483" diaginertia="1.9e-5 1.7e-5 4.7e-6"/></body></body>
  <body name="knuckle" pos="0 0.02 0.0741"><joint axis="1 0 0"/>
    <inertial pos="1.9e-6 0.0220 0.0262" mass="0.0230" diaginertia="8.4e-6 6.1e-6 4.3e-6"/></body>
</body></worldbody>
<equality><connect anchor="0 -0.015 0.015" body1="finger" body2="knuckle"/></equality></mujoco>"""


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_gripper_in_a_tilted_plane(problem, tmp_path):
    """A ball where a hinge is meant: the plane's third equation repeats the others, but for rounding."""
    path = tmp_path / "gripper.xml"
    path.write_text(GRIPPER)
    mechanism = fgd.load(path)
    assert_agrees(mechanism, engine_of(mechanism, path), problem)


def assert_file_agrees(text, problem, tmp_path, ordering=None):
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    mechanism = fgd.load(path)
    assert_agrees(mechanism, PinocchioEngine.load(mechanism, path), problem, ordering)


def assert_agrees(mechanism, engine, problem, ordering=None):
    expected = references(mechanism, engine, problem, states=STATES)
    assert expected, "no regular state was found"
    found = compare_kernel(mechanism, problem, ordering, expected, TOLERANCE)
    assert (found.refused, found.beyond) == (0, 0), found


def rough_robot(seed):
    """A branched robot of nine joints with everything that files have."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(10):
        mass = float(rng.choice(MASSES))
        parts.append(link(f"l{k}", mass, rng.choice(COMS), mass * float(rng.choice((1e-6, 1e-3, 0.1)))))
    for k in range(9):
        parent = f"l{rng.integers(max(0, k - 2), k + 1)}"
        turn = " ".join(str(angle) for angle in rng.choice(ANGLES, 3))
        kind = rng.choice(("revolute", "continuous", "prismatic"), p=(0.6, 0.2, 0.2))
        parts.append(joint(k, parent, f"l{k + 1}", rng.choice(OFFSETS), turn, rng.choice(AXES), kind))
    return urdf(parts)


def urdf(parts):
    return f'<robot name="rough">{"".join(parts)}</robot>'


def link(name, mass, com, inertia, cross=0.0):
    turn = "0 0 0" if cross else "0 0 1.5708"  # a turned product of inertia is no power of two
    return (
        f'<link name="{name}"><inertial><origin xyz="{com}" rpy="{turn}"/><mass value="{mass}"/>'
        f'<inertia ixx="{2 * inertia}" iyy="{3 * inertia}" izz="{4 * inertia}" ixy="{cross}" ixz="0" iyz="0"/>'
        "</inertial></link>"
    )


def joint(number, parent, child, offset, turn, axis, kind="revolute"):
    limit = "" if kind == "continuous" else '<limit lower="-2.9" upper="2.9" effort="1" velocity="1"/>'
    return (
        f'<joint name="j{number}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{offset}" rpy="{turn}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


def test_independent_motors_span_the_motions():
    five_bar = fgd.robots.five_bar()
    everywhere = fgd.Mechanism(
        "driven everywhere",
        five_bar.links,
        [fgd.Joint(**{**vars(joint), "actuated": True}) for joint in five_bar.joints],
        five_bar.loops,
    )
    assert len(independent_motors(everywhere)) == 2
    assert independent_motors(fgd.robots.rrr()) is None
