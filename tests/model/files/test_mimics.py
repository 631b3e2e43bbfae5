"""Joints that mimic each other in a circle: refused, with their names and the line."""

import pytest

import factorgraph_dyn as fgd
from tests.model.files import test_sdf


def urdf(follows):
    joints = "".join(
        f"\n<link name='l_{name}'/><joint name='{name}' type='continuous'><parent link='base'/><child link='l_{name}'/>"
        + (f"<mimic joint='{source}'/>" if source else "")
        + "</joint>"
        for name, source in follows.items()
    )
    return f"<robot name='r'><link name='base'/>{joints}</robot>"


def sdf(follows):
    parts = [test_sdf.link("base")]
    for name, source in follows.items():
        mimic = f"<mimic joint='{source}'/>" if source else ""
        parts.append("\n" + test_sdf.link(f"l_{name}"))
        axis = f"<axis><xyz>0 0 1</xyz>{mimic}</axis>"
        parts.append(test_sdf.joint(name, "revolute", "base", f"l_{name}", axis))
    return test_sdf.model(*parts)


@pytest.mark.parametrize("write", [urdf, sdf])
@pytest.mark.parametrize(
    ("follows", "circle"),
    [
        ({"a": "b", "b": "a"}, "'a' mimics 'b' mimics 'a'"),
        ({"a": "b", "b": "c", "c": "d", "d": "b"}, "'b' mimics 'c' mimics 'd' mimics 'b'"),
    ],
)
def test_a_circle_is_refused_by_name(write, follows, circle):
    with pytest.raises(fgd.ModelError, match=rf"^m\.xml:\d+: <mimic.*circle: {circle}\."):
        fgd.loads(write(follows), file="m.xml")


@pytest.mark.parametrize("write", [urdf, sdf])
def test_chains_and_stars_load(write):
    mechanism = fgd.loads(write({"a": "b", "b": "c", "c": "", "d": "c", "e": "b"}))
    assert {c.joint: c.source for c in mechanism.couplings} == {"a": "b", "b": "c", "d": "c", "e": "b"}
