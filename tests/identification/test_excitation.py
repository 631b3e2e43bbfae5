"""Excitations: within limits, from rest, better than chance, the same again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.logs import read_log
from tests.identification.logs import torques

FEW = 120  # candidates


def limited_arm():
    arm = fgd.robots.puma560()
    bounds = {"limits": (-0.5, 1.5), "velocity_limit": 1.2, "effort_limit": 60.0}
    return replace(arm, joints=[replace(joint, **bounds) for joint in arm.joints])


def test_limits_hold_and_it_begins_at_rest():
    arm = limited_arm()
    motion = fgd.excitation(arm, candidates=FEW, acceleration_limit=3.0)
    t, q, v, a = motion.sampled(1000)
    assert (q >= -0.5).all()
    assert (q <= 1.5).all()
    assert (np.abs(v) <= 1.2).all()
    assert (np.abs(a) <= 3.0).all()
    assert (np.abs(torques(arm, (q, v, a))) <= 60.0).all()
    assert np.abs([v[0], a[0]]).max() < 1e-12
    assert np.abs(np.gradient(q, t, axis=0) - v)[1:-1].max() < 1e-4
    assert np.abs(np.gradient(v, t, axis=0) - a)[1:-1].max() < 1e-3
    assert np.allclose(motion.q(motion.duration), q[0])


@pytest.mark.parametrize(("harmonics", "seed"), [(2, 108), (3, 107), (3, 184), (4, 199)])
def test_limits_hold_between_the_samples_of_the_search(harmonics, seed):
    motion = fgd.excitation(
        fgd.robots.pendulum(1),
        duration=4.0,
        harmonics=harmonics,
        candidates=1,
        velocity_limit=1e3,
        acceleration_limit=5.0,
        seed=seed,
    )
    assert 4.7 < np.abs(motion.sampled(5000)[3]).max() <= 5.0


def test_motions_shrink_until_torques_hold_between_samples(monkeypatch):
    from factorgraph_dyn.identification import excitation

    arm = limited_arm()
    arm = replace(arm, joints=[replace(joint, effort_limit=36.0) for joint in arm.joints])
    monkeypatch.setattr(excitation, "WITHIN_EFFORT", 1.2)  # what the search lets pass
    for seed in range(2):
        motion = fgd.excitation(arm, candidates=FEW, seed=seed)
        assert np.abs(torques(arm, motion.sampled(2000)[1:])).max() <= 36.0
    monkeypatch.setattr(excitation, "MOST_SHRINKS", 1)
    with pytest.raises(fgd.InputError, match=r"within effort_limit: joints joint2 \(1"):
        fgd.excitation(arm, candidates=FEW)


def test_it_is_what_identification_finds_and_better_than_chance():
    arm = fgd.robots.puma560()
    chance, chosen = (fgd.excitation(arm, candidates=count, effects=()) for count in (1, 400))
    assert chosen.condition < 0.7 * chance.condition
    t, *motion = chosen.sampled(50)
    found = fgd.identify(arm, *motion, torques(arm, motion), effects=(), physical=False)
    assert len(found.base) == found.structural == 36
    assert len(t) == found.samples
    assert found.condition < 10 * chosen.condition


def test_a_seed_determines_it():
    arm = fgd.robots.rrr()
    one, same, other = (fgd.excitation(arm, candidates=20, seed=seed) for seed in (1, 1, 2))
    assert (one.sines == same.sines).all()
    assert (one.sines != other.sines).any()


def test_ctrl_c_keeps_the_best(monkeypatch):
    from factorgraph_dyn.identification import excitation

    def interrupted(*_):
        yield from range(5)
        raise KeyboardInterrupt

    monkeypatch.setattr(excitation, "watched", interrupted)
    assert fgd.excitation(fgd.robots.rrr()).candidates == 5


@pytest.mark.parametrize("name", ["motion.csv", "motion.npz"])
def test_it_is_saved_as_a_log(tmp_path, name):
    arm = fgd.robots.rrr()
    motion = fgd.excitation(arm, candidates=5, duration=2.0)
    motion.save(tmp_path / name, rate=100)
    log = read_log(tmp_path / name)
    _, q, v, a = motion.sampled(100)
    assert all((log.joints(arm, kind) == x).all() for kind, x in (("q", q), ("v", v), ("a", a)))
    motion.plot(tmp_path / "motion.svg")
    assert (tmp_path / "motion.svg").stat().st_size


def test_sliders_and_screws():
    tree = fgd.robots.random_tree(4, seed=1, kinds=("prismatic", "helical"))
    assert np.isfinite(fgd.excitation(tree, candidates=20).condition)


def test_bad_input():
    arm = fgd.robots.rrr()
    weak = replace(arm, joints=[replace(joint, effort_limit=1e-3) for joint in arm.joints])
    for mechanism, options, words in (
        (fgd.robots.five_bar(), {}, "has loops or couplings"),
        (arm.float_base(), {}, "Joints floating_base of mechanism"),
        (arm, {"harmonics": 1}, "harmonics is 1; it must be a whole number, 2 or more"),
        (arm, {"duration": -1}, "duration is -1; it must be positive"),
        (arm, {"velocity_limit": [1.0, 2.0]}, "a number or one for each of 3 freedoms"),
        (arm, {"velocity_limit": 0.0}, "must be positive"),
        (weak, {"candidates": 5}, "keeps torques within effort_limit: joints joint1"),
    ):
        with pytest.raises(fgd.InputError, match=words):
            fgd.excitation(mechanism, **options)
    with pytest.raises(fgd.InputError, match=r"must end in \.csv or \.npz"):
        fgd.excitation(arm, candidates=2).save("motion.txt")
