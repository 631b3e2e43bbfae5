"""SDF models in several pieces, which no joint ties to one another: each is a free body, as the format has it."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.model.files.test_sdf import ARM, joint, link, model, named, world

LOOSE = link("c", "1 0 0 0 0 0")
WARNING = "m.sdf:1: <model name={}>: no joint ties {} to one another or the world; each floats."


def warned(mechanism):
    return [warning for warning in mechanism.warnings if "no joint ties" in warning]


@pytest.mark.parametrize("floating_base", [False, True])
def test_pieces_of_a_model_float(floating_base, tmp_path):
    (tmp_path / "m.sdf").write_text(model(ARM, LOOSE))
    mechanism = fgd.load(tmp_path / "m.sdf", floating_base=floating_base)
    assert mechanism.joint_names == ("floating_base", "c_floating_base", "j")
    assert mechanism.nv == 6 + 6 + 1
    q, v = mechanism.random_state(0)
    fall = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv)).a
    np.testing.assert_allclose(fgd.inverse_dynamics(mechanism, q, v, fall).tau, 0, atol=1e-9)
    assert len(warned(mechanism)) == 1


@pytest.mark.parametrize(
    ("parts", "joints", "loose"),
    [
        ((ARM, joint("tie", "fixed", "world", "a", ""), LOOSE), ("c_floating_base", "j", "tie"), "'c'"),
        ((LOOSE, ARM, joint("tie", "fixed", "world", "a", "")), ("floating_base", "j", "tie"), "'c'"),
        ((ARM, named("n", LOOSE)), ("floating_base", "n::c_floating_base", "j"), "'a', 'n::c'"),
        ((LOOSE, named("n", ARM)), ("floating_base", "n::a_floating_base", "n::j"), "'c', 'n::a'"),
    ],
)
def test_what_a_joint_ties_to_the_world_stays_there(parts, joints, loose):
    mechanism = fgd.loads(model(*parts), file="m.sdf")
    assert tuple(joint.name for joint in mechanism.joints) == joints
    assert warned(mechanism) == [WARNING.format('"m"', loose)]


def test_pieces_of_models_of_a_world():
    mechanism = fgd.loads(world(named("r", ARM, LOOSE), named("s", ARM)), file="m.sdf")
    assert mechanism.joint_names == ("r::floating_base", "r::c_floating_base", "r::j", "s::floating_base", "s::j")
    assert warned(mechanism) == [WARNING.format('"r"', "'r::a', 'r::c'")]


def test_static_models_and_models_in_one_piece_stay_as_they_are():
    assert fgd.loads(model("<static>1</static>", ARM, LOOSE)).nv == 0
    mechanism = fgd.loads(model(ARM))
    assert mechanism.nv == 1
    assert not warned(mechanism)
