"""Screw joints of SDF: metres for every radian, by either of the format's two words or by none."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.model.files.test_sdf import joint, link, model

NEW, OLD = "<screw_thread_pitch>{}</screw_thread_pitch>".format, "<thread_pitch>{}</thread_pitch>".format


def screw(inside):
    return model(link("a"), link("b"), joint("j", "screw", "a", "b", inside + "<axis><xyz>0 0 1</xyz></axis>"))


@pytest.mark.parametrize(
    ("inside", "pitch"),
    [
        ("", 1 / (2 * np.pi)),
        (NEW(3), 3 / (2 * np.pi)),
        (OLD(4), -1 / 4),
        (OLD(4) + NEW(3), 3 / (2 * np.pi)),
        (OLD(1e-13), -1e13),
    ],
)
def test_pitch_of_a_screw(inside, pitch):
    assert fgd.loads(screw(inside)).joint_by_name["j"].pitch == pytest.approx(pitch, rel=1e-15)


@pytest.mark.parametrize("thread", [0, 1e-320])
def test_a_thread_without_turns_is_refused(thread):
    with pytest.raises(fgd.ModelError, match=r"^s.sdf:1: .*pitch"):
        fgd.loads(screw(OLD(thread)), file="s.sdf")
