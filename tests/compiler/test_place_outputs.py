"""Poses, Jacobians, twists, accelerations, momentum and energies as results of kernels, for links and frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.compiler.describe.regroup import regrouped
from factorgraph_dyn.compiler.proof import proof
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.equations.quantities import shape_of
from factorgraph_dyn.model.sizes.units import described_in
from factorgraph_dyn.motion import masses
from tests.helpers import lossy, relative_error
from tests.motion.test_questions import states, with_frame
from tests.oracles.engines import pinocchio_oracle

EXACT = 1e-12  # relative
KINDS = ("spherical", "floating", "planar", "universal", "helical", "prismatic", "revolute", "fixed")
MOVING = ("T[tool]", "J[tool]", "V[tool]", "com", "momentum", "kinetic_energy", "potential_energy")


def expected(mechanism, q, v, a):
    """What they are, by the functions of the package, which are compared with Pinocchio."""
    kinetic, potential = fgd.energy(mechanism, q, v)
    J = fgd.jacobian(mechanism, q, "tool")
    link, placement = mechanism.place("tool")
    A = spatial.inverse_adjoint(placement) @ fgd.inverse_dynamics(mechanism.tree, q, v, a).accelerations[link]
    return {
        "T[tool]": fgd.pose(mechanism, q, "tool"),
        "J[tool]": J,
        "V[tool]": J @ v,
        "A[tool]": A,
        "com": fgd.center_of_mass(mechanism, q),
        "momentum": fgd.momentum(mechanism, q, v),
        "kinetic_energy": kinetic,
        "potential_energy": potential,
    }


@pytest.mark.parametrize("seed", range(3))
def test_kinematics_of_all_joint_kinds(seed):
    mechanism = with_frame(lossy(fgd.robots.random_tree(6, seed=seed, branching=1.4, kinds=KINDS), seed))
    kernel = fgd.compile(mechanism, "kinematics", outputs=MOVING)
    assert kernel.accuracy < 1e-10
    q, v = states(mechanism, seed, (3,))
    found = dict(zip(MOVING, kernel(q, v), strict=True))
    for name, values in found.items():
        assert values.shape == (3, *shape_of(mechanism, name))
        for k in range(3):
            assert relative_error(values[k], expected(mechanism, q[k], v[k], v[k])[name]) < EXACT
    engine = pinocchio_oracle(mechanism)
    assert relative_error(found["J[tool]"][0], engine.jacobian(q[0], "tool")) < EXACT
    assert relative_error(found["momentum"][0], engine.momentum(q[0], v[0])) < EXACT


@pytest.mark.parametrize("scale", [(1e-6, 1e-12), (1.0, 1.0), (1e3, 1e9)], ids=str)
def test_every_output_of_dynamics_at_any_scale(scale):
    length, mass = scale
    mechanism = described_in(with_frame(fgd.robots.puma560()), 1 / length, 1 / mass)
    outputs = ("tau", *MOVING, "A[tool]")
    q, v = mechanism.random_state(0)
    answers = dict(zip(outputs, fgd.compile(mechanism, "inverse", outputs=outputs)(q, v, v), strict=True))
    for name, value in expected(mechanism, q, v, v).items():
        assert relative_error(answers[name] / np.abs(value).max(), value / np.abs(value).max()) < EXACT
    assert relative_error(answers["tau"] / mass, fgd.inverse_dynamics(mechanism, q, v, v).tau / mass) < 1e-9


def test_outputs_of_closed_loops():
    mechanism = with_frame(fgd.robots.five_bar())
    q, v = mechanism.random_state(0)
    tau = np.zeros(mechanism.nv)
    forward = fgd.compile(mechanism, "forward", outputs=["a", "A[tool]", "T[tool]", "momentum"])
    a, A, T, h = forward(q, v, tau)
    true = expected(mechanism, q, v, a)
    for name, value in (("A[tool]", A), ("T[tool]", T), ("momentum", h)):
        assert relative_error(value, true[name]) < 1e-9
    kernel = fgd.compile(mechanism, "kinematics", outputs=["T[tool]"])
    anywhere = mechanism.tree.random_state(5)[0]  # poses need no closed loops
    assert relative_error(kernel(anywhere, v), fgd.pose(mechanism, anywhere, "tool")) < EXACT


def test_frames_of_merged_links():
    mechanism = fgd.robots.random_tree(5, seed=3, kinds=("revolute", "fixed"))
    merged = mechanism.merge_fixed()
    assert merged.frames
    q, v = mechanism.random_state(0)
    names = [f"{what}[{link}]" for link in mechanism.link_names for what in ("T", "V")]
    found = [fgd.compile(each, "kinematics", outputs=names)(q, v) for each in (mechanism, merged)]
    for name, one, other in zip(names, *found, strict=True):
        assert np.abs(one - other).max() < EXACT, name


def test_mass_that_does_not_move_counts_for_nothing():
    """Inertia is moved to the base by the compiler, and the base's own must not come back with it."""
    arm = fgd.robots.rrr()
    heavy = replace(arm.links[0], mass=1e9, com=(3.0, 2.0, 1.0))
    arm = with_frame(replace(arm, links=(heavy, *arm.links[1:])))
    q, v = arm.random_state(0)
    for outputs in (["com", "potential_energy"], ["com", "potential_energy", "F[joint1]"]):  # with and without moving
        com, potential, *_ = fgd.compile(arm, "inverse", outputs=outputs)(q, v, v)
        assert relative_error(com, fgd.center_of_mass(arm, q)) < EXACT
        assert potential == pytest.approx(fgd.energy(arm, q, v)[1], rel=EXACT)


def test_only_what_is_asked_for_is_computed():
    arm = fgd.robots.puma560()
    tip = arm.link_names[-1]
    alone = fgd.compile(arm, "kinematics", outputs=[f"T[{tip}]"])
    with_dynamics = fgd.compile(arm, "inverse", outputs=[f"T[{tip}]"])
    assert alone.operations.total == with_dynamics.operations.total < 120
    assert alone.ordering.name == "none"
    assert fgd.compile(arm, "kinematics", outputs=["com"]).operations.total < 40
    both = fgd.compile(arm, "inverse", outputs=["tau", f"T[{tip}]"]).operations.total
    assert both <= fgd.compile(arm, "inverse").operations.total + alone.operations.total


def test_by_default_kinematics_give_poses_and_jacobians_of_tips():
    arm = fgd.robots.rrr()
    kernel = fgd.compile(arm, "kinematics")
    assert kernel.outputs == ("T[link3]", "J[link3]")
    assert kernel.arguments == ("q", "v")
    q, v = arm.random_state(0)
    T, J = kernel(q, v)
    assert relative_error(T, fgd.pose(arm, q, "link3")) < EXACT
    assert relative_error(J, fgd.jacobian(arm, q, "link3")) < EXACT


def test_fixed_links_are_no_tips():
    arm = fgd.robots.rrr()
    flange = [fgd.Link(f"sensor{k}", 0.1) for k in range(3)]
    fixed = [fgd.Joint(f"mount{k}", "fixed", "link3", f"sensor{k}") for k in range(3)]
    carrying = replace(arm, links=(*arm.links, *flange), joints=(*arm.joints, *fixed))
    assert make_problem(carrying, "kinematics").outputs == ("T[link3]", "J[link3]")
    assert make_problem(fgd.robots.five_bar(), "kinematics").outputs[::2] == tuple(
        f"T[{link}]" for link in fgd.robots.five_bar().topology.tips
    )


def test_too_many_outputs_are_refused_in_words():
    humanoid = fgd.robots.humanoid()
    everywhere = [f"{what}[{link}]" for link in humanoid.link_names for what in ("T", "J")]
    with pytest.raises(fgd.CompileError, match=r"outputs have \d+ axes together.*in several kernels"):
        fgd.compile(humanoid, "kinematics", outputs=everywhere)


def test_a_mechanism_without_mass_has_kinematics():
    massless = fgd.Mechanism("reach", [fgd.Link("base"), fgd.Link("arm")], [fgd.Joint("j", "revolute", "base", "arm")])
    T, _ = fgd.compile(massless, "kinematics")([0.3], [0.0])
    assert relative_error(T, fgd.pose(massless, [0.3], "arm")) < EXACT
    with pytest.raises(fgd.InputError, match="Nothing that moves in mechanism 'reach' has mass"):
        fgd.compile(massless, "kinematics", outputs=["com"])


def test_what_q_and_v_do_not_determine_is_refused():
    arm = fgd.robots.rrr()
    for name in ("a", "tau", "A[link3]", "F[joint1]"):
        with pytest.raises(fgd.InputError, match=r"do not determine .* Take problem 'inverse'"):
            fgd.compile(arm, "kinematics", outputs=[name])
    for ask in (
        lambda: fgd.compile(arm, "kinematics", ordering="aba"),
        lambda: fgd.ordering_cost(arm, "kinematics"),
    ):
        with pytest.raises(fgd.OrderingError, match="no unknowns to eliminate"):
            ask()
    with pytest.raises(fgd.InputError, match="'kinematics'; it must be one of: forward"):
        fgd.search_orderings(arm, "kinematics", save=False, progress=False)


@pytest.mark.parametrize("name", [*MOVING, "A[tool]"])
def test_every_output_is_proved(name):
    """A kernel whose result is wrong in one entry by a millionth of its size is found out."""
    mechanism = with_frame(fgd.robots.rrr())
    problem = "inverse" if name == "A[tool]" else "kinematics"
    kernel = fgd.compile(mechanism, problem, outputs=[name])
    trial = proof.Trial(mechanism, make_problem(mechanism, problem, outputs=[name]))
    assert trial.judge(kernel.gufunc).holds

    def wrong(*arguments):
        values = np.array(kernel.gufunc(*arguments))
        flat = values.reshape(len(values), -1)
        flat[:, 0] += 1e-6 * np.abs(flat).max(axis=-1)
        return values

    assert not trial.judge(wrong).holds


def test_energy_of_regrouped_bodies_is_that_of_the_given_ones():
    mechanism = fgd.robots.humanoid()
    q, v = mechanism.random_state(0)
    bodies = masses.moving_bodies(mechanism)
    for one, other in zip(masses.energies(bodies, q, v), masses.energies(regrouped(bodies), q, v), strict=True):
        assert one == pytest.approx(other, rel=1e-12)
