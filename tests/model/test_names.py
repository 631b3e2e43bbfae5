"""Names: those that act where they are shown are refused where parts are made, in Python and in files alike."""

import json

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.text import acting_character

ACTING = ["a\ud800b", "a\x1b[31mb", "a\nb", "a\x00b", "a\x7fb", "a\x9bb", "a\u202eb", "a\u2028b"]
PARTS = {
    "link": fgd.Link,
    "joint": lambda name: fgd.Joint(name, "fixed", "a", "b"),
    "loop": lambda name: fgd.Loop(name, "fixed", "a", "b"),
    "coupling": lambda name: fgd.Coupling(name, "a", "b"),
    "frame": lambda name: fgd.Frame(name, "a"),
    "mechanism": lambda name: fgd.Mechanism(name, [fgd.Link("a")], []),
    "mesh": lambda name: fgd.Visual("a", "mesh", (1, 1, 1), mesh=name),
}
NATIVE = {"format": "factorgraph_dyn mechanism", "version": 1, "name": "r", "joints": []}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", ACTING)
def test_names_that_act_are_refused(part, name):
    with pytest.raises(fgd.ModelError, match=rf"{part} has the name .*which holds the character U\+") as caught:
        PARTS[part](name)
    assert str(caught.value).isprintable()
    assert f"U+{ord(name[1]):04X}" in str(caught.value)


@pytest.mark.parametrize("part", PARTS)
def test_names_have_an_end(part):
    PARTS[part]("n" * 1000)
    with pytest.raises(fgd.ModelError, match="of 1001 characters; 1000 are allowed"):
        PARTS[part]("n" * 1001)


@pytest.mark.parametrize(
    "text",
    [
        "<robot name='r'>\n<link\nname='a&#x9b;31m'/></robot>",
        "<mujoco><worldbody>\n<body>\n<joint name='a&#x9b;31m'/><geom size='1'/></body></worldbody></mujoco>",
        "<mujoco><worldbody>\n\n<body name='a&#x9b;31m'/></worldbody></mujoco>",
        "<sdf version='1.7'><model name='m'>\n\n<link name='a&#x9b;31m'/></model></sdf>",
        json.dumps({**NATIVE, "links": [{"name": "a\x9b31m"}]}).replace('"links": [', '"links":\n\n['),
    ],
)
def test_files_are_refused_with_the_line_of_the_name(text):
    with pytest.raises(fgd.ModelError, match=r"^r\.urdf:[23]: .*U\+009B") as caught:
        fgd.loads(text, file="r.urdf")
    assert "\x9b" not in str(caught.value)
    assert str(caught.value).startswith("r.urdf:3:") or "<link" in str(caught.value)


def test_lone_surrogates_in_files_are_refused():
    for name in ("\ud800", "\\ud800"):
        text = json.dumps({**NATIVE, "links": [{"name": "L"}]}).replace("L", name)
        with pytest.raises(fgd.ModelError, match=r"^r\.json:1:"):
            fgd.loads(text, file="r.json")
    with pytest.raises(fgd.ModelError, match=r"^r\.urdf:1:"):
        fgd.loads("<robot name='\ud800'><link name='a'/></robot>", file="r.urdf")


def test_warnings_hold_words_of_files_without_what_acts():
    mimic = "<mimic joint='&#x9b;2J&#x202e;'/>"
    text = (
        "<robot name='r'><link name='a'/><link name='b'/><joint name='j' type='continuous'>"
        f"<parent link='a'/><child link='b'/>{mimic}</joint><xacro:x name='&#x9b;'/></robot>"
    )
    own = json.dumps({**NATIVE, "links": [{"name": "l"}], "notes": ["\x1b[2J\ud800\n0 warnings"]})
    elements = fgd.loads("<mujoco><worldbody><body name='b' a&#x9b;='1'/></worldbody></mujoco>".replace("&#x9b;", "·"))
    warnings = [*fgd.loads(own).warnings, *elements.warnings]
    with pytest.raises(fgd.ModelError, match=r"U\+009B"):
        fgd.loads(text)
    plain = fgd.loads(text.replace(mimic, "")).warnings
    for warning in (*warnings, *plain):
        assert acting_character(warning) is None
    assert warnings[0] == r"\x1b[2J\ud800\n0 warnings"
    assert any(r"\x9b" in warning for warning in plain)


def test_names_in_any_script_stay():
    for name in ("名前_λ_😀", "Gelenk größer 3", "پا", "a b/c.d-e", "=1+1", "*/ \\ ??/"):
        assert fgd.Link(name).name == name
