"""Frames are first-class: wrenches, contacts and tasks take links and frames by name, in their axes or the world's."""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Contact
from tests.helpers import mixed_tree, relative_error
from tests.motion.test_questions import states, with_frame
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-9
EXACT = 1e-11  # relative; of torques
KINDS = ("spherical", "floating", "planar", "universal", "helical", "prismatic", "revolute", "fixed")


def pushed_torques(mechanism, q, v, a, wrenches, axes):
    """Torques by Pinocchio, which knows no wrenches at frames: J^T F is taken off, with its own Jacobians."""
    engine = pinocchio_oracle(mechanism)
    tau = engine.inverse_dynamics(q, v, a)
    return tau - sum(engine.jacobian(q, name, axes).T @ F for name, F in wrenches.items())


@pytest.mark.parametrize("axes", ["local", "world"])
@pytest.mark.parametrize("seed", range(5))
def test_wrenches_at_links_and_frames(seed, axes):
    mechanism = with_frame(mixed_tree(seed))
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    a = rng.normal(size=mechanism.nv)
    wrenches = {
        name: rng.normal(size=6) for name in ("tool", mechanism.link_names[-1], mechanism.link_names[1], "base")
    }
    words = {"external_wrenches": wrenches, "axes": axes}
    tau = fgd.inverse_dynamics(mechanism, q, v, a, **words).tau
    assert relative_error(tau, pushed_torques(mechanism, q, v, a, wrenches, axes)) < EXACT
    assert relative_error(fgd.forward_dynamics(mechanism, q, v, tau, **words).a, a) < AGREEMENT
    given = np.where(np.arange(mechanism.nv) % 2 == 0, a, np.nan), np.where(np.arange(mechanism.nv) % 2, tau, np.nan)
    mixed = fgd.hybrid_dynamics(mechanism, q, v, a=given[0], tau=given[1], **words)
    assert relative_error(mixed.a, a) < AGREEMENT


@pytest.mark.parametrize("axes", ["local", "world"])
def test_wrenches_on_closed_loops(axes):
    mechanism = with_frame(fgd.robots.five_bar())
    q, v = mechanism.random_state(0)
    tau, push = np.zeros(mechanism.nv), np.arange(1.0, 7.0)
    words = {"external_wrenches": {"tool": push}, "axes": axes}
    a = fgd.forward_dynamics(mechanism, q, v, tau, **words).a
    same = tau + fgd.jacobian(mechanism, q, "tool", axes=axes).T @ push
    assert relative_error(a, fgd.forward_dynamics(mechanism, q, v, same).a) < AGREEMENT
    kernel = fgd.compile(mechanism, "forward", external_wrenches=["tool"], axes=axes)
    assert relative_error(kernel(q, v, tau, push), a) < AGREEMENT


@pytest.mark.parametrize("axes", ["local", "world"])
@pytest.mark.parametrize("seed", range(2))
def test_kernels_take_wrenches_at_frames(seed, axes):
    mechanism = with_frame(fgd.robots.random_tree(5, seed=seed + 1, branching=1.3, kinds=KINDS))
    rng = np.random.default_rng(seed)
    places = ["tool", mechanism.link_names[2]]
    q, v = states(mechanism, seed, (3,))
    a, tool, link = rng.normal(size=v.shape), *rng.normal(size=(2, 3, 6))
    kernel = fgd.compile(mechanism, "inverse", external_wrenches=places, axes=axes)
    assert kernel.arguments == ("q", "v", "a", "wrench[tool]", f"wrench[{mechanism.link_names[2]}]")
    assert kernel.accuracy < 1e-10
    tau = kernel(q, v, a, tool, link)
    for k in range(3):
        wrenches = dict(zip(places, (tool[k], link[k]), strict=True))
        assert relative_error(tau[k], pushed_torques(mechanism, q[k], v[k], a[k], wrenches, axes)) < EXACT


def test_wrenches_after_links_are_merged():
    mechanism = fgd.robots.random_tree(6, seed=3, kinds=("revolute", "fixed"))
    merged = mechanism.merge_fixed()
    gone = merged.frames[-1].name
    assert gone not in merged.link_names
    q, v = mechanism.random_state(0)
    push = np.arange(1.0, 7.0)
    for axes in ("local", "world"):
        taus = [
            fgd.inverse_dynamics(m, q, v, v, external_wrenches={gone: push}, axes=axes).tau for m in (mechanism, merged)
        ]
        assert relative_error(*taus) < EXACT
        kernel = fgd.compile(merged, "inverse", external_wrenches=[gone], axes=axes)
        assert relative_error(kernel(q, v, v, push), taus[0]) < EXACT


def test_axes_are_words():
    arm = fgd.robots.rrr()
    zero = np.zeros(3)
    for ask in (
        lambda: fgd.inverse_dynamics(arm, zero, zero, zero, axes="link"),
        lambda: fgd.compile(arm, "inverse", external_wrenches=["link1"], axes="link"),
    ):
        with pytest.raises(fgd.InputError, match="axes is 'link'; it must be one of: local, world"):
            ask()
    with pytest.raises(fgd.InputError, match=r"Link or frame 'hand' is not in.*link3"):
        fgd.compile(arm, "inverse", external_wrenches=["hand"])


# ---- contacts


def contacts_on(mechanism):
    rng = np.random.default_rng(5)
    links = mechanism.link_names
    return [
        "tool",
        Contact("tool", rng.normal(size=3), "wrench", axes="world"),
        Contact(links[1], rng.normal(size=3), directions=rng.normal(size=(2, 3)), axes="world"),
        Contact(links[-1], rng.normal(size=3), "wrench", directions=rng.normal(size=(2, 6))),
        Contact("base", kind="force"),
    ]


@pytest.mark.parametrize("seed", range(2))
def test_kernels_of_contacts(seed):
    mechanism = with_frame(fgd.robots.random_tree(3, seed=seed + 3, branching=1.3, kinds=KINDS))
    contacts = contacts_on(mechanism)
    q, _ = states(mechanism, seed, (2,))
    kernel = fgd.compile(mechanism, "iwim", contacts=contacts)
    assert kernel.accuracy < 1e-9
    engine = pinocchio_oracle(mechanism)
    for k in range(2):
        B = fgd.input_matrix(mechanism, q[k], contacts=contacts)
        assert relative_error(kernel(q)[k], engine.inverse_mass_matrix(q[k]) @ B) < AGREEMENT
        assert relative_error(kernel(q)[k], fgd.iwim(mechanism, q[k], contacts=contacts)) < AGREEMENT


def test_kernels_of_contacts_on_closed_loops():
    mechanism = with_frame(fgd.robots.five_bar())
    q, _ = mechanism.random_state(0)
    contacts = contacts_on(mechanism)
    for motors in (None, ()):
        kernel = fgd.compile(mechanism, "iwim", actuated=motors, contacts=contacts)
        expected = fgd.iwim(mechanism, q, actuated=motors, contacts=contacts)
        assert relative_error(kernel(q), expected) < AGREEMENT


def test_contacts_belong_to_iwim():
    arm = fgd.robots.rrr()
    with pytest.raises(fgd.InputError, match="inputs of the problem 'iwim'; this one is 'forward'"):
        fgd.compile(arm, "forward", contacts=["link3"])
    with pytest.raises(fgd.InputError, match=r"Link or frame 'hand' is not in.*link3"):
        fgd.compile(arm, "iwim", contacts=["hand"])
    with pytest.raises(fgd.InputError, match=r"No inputs: .*actuated=\[\.\.\.\] \(joint1"):
        fgd.compile(arm, "iwim", actuated=())


def test_tasks_after_links_are_merged():
    mechanism = fgd.robots.random_tree(6, seed=3, kinds=("revolute", "fixed"))
    merged = mechanism.merge_fixed()
    gone = merged.frames[-1].name
    q, v = mechanism.random_state(0)
    answers = [
        fgd.input_dynamics(m, q, v, contacts=[gone], tasks=[Contact(gone, kind="wrench")]) for m in (mechanism, merged)
    ]
    assert relative_error(answers[0].matrix, answers[1].matrix) < AGREEMENT
    assert relative_error(answers[0].task_matrix, answers[1].task_matrix) < AGREEMENT
    assert relative_error(answers[0].free_task, answers[1].free_task) < AGREEMENT
    kernel = fgd.compile(merged, "iwim", contacts=[gone])
    assert relative_error(kernel(q), answers[0].matrix) < AGREEMENT
