"""XML as published models have it: faults that other tools forgive are forgiven and noted with their line."""

import mujoco
import pytest

import factorgraph_dyn as fgd

MODEL = "<mujoco>\n<worldbody><body name='b'>\n{}<joint name='j'/><geom size='.1'/></body></worldbody></mujoco>"
GOOD = '<?xml version="1.0"?>\n'
DECLARED = {  # what comes before the root, the line of the declaration, the line of the root
    "typo": ('<?xml verison="1.0"?>\n', 1, 2),
    "typo over lines": ('<?xml\nverison="1.0"\n?>\n', 1, 4),
    "no quotes": ("<?xml version=1.0 ?>", 1, 1),
    "no version": ("<?xml ?>\n", 1, 2),
    "blank before": (" " + GOOD, 1, 2),
    "lines before": ("\n\r\n" + GOOD, 3, 4),
    "comment before": ("<!-- of\nlicence -->\n" + GOOD, 3, 4),
    "mark and blank before": ("\ufeff\n" + GOOD, 2, 3),
}


@pytest.mark.parametrize("case", DECLARED)
def test_declarations_that_are_wrong_or_late_are_skipped(case):
    before, declared, root = DECLARED[case]
    mechanism = fgd.loads(before + MODEL.format(""), file="m.xml")
    assert mechanism.joint_names == ("j",)
    assert [x.split(": ", 1)[0] for x in mechanism.warnings] == [f"m.xml:{declared}"]
    assert "XML declaration" in mechanism.warnings[0]
    with pytest.raises(fgd.ModelError, match=f"^m.xml:{root + 2}: <joint"):
        fgd.loads(before + MODEL.format("<joint type='bad'/>"), file="m.xml")


@pytest.mark.parametrize("case", ["typo", "blank before", "lines before"])
def test_mujoco_reads_them_too(case):
    assert mujoco.MjModel.from_xml_string(DECLARED[case][0] + MODEL.format("")).nv == 1


@pytest.mark.parametrize("before", ["", GOOD, "\n \n", "\ufeff" + GOOD])
def test_what_comes_before_the_root_as_it_should_is_not_noted(before):
    assert not fgd.loads(before + MODEL.format("")).warnings


@pytest.mark.parametrize("version", ["version", "verison"])
def test_the_encoding_of_a_skipped_declaration_counts(version):
    text = f' <?xml {version}="1.0" encoding="ISO-8859-1"?>' + MODEL.format("").replace("'j'", "'gelenk_ü'")
    assert fgd.loads(text.encode("latin-1")).joint_names == ("gelenk_ü",)


@pytest.mark.parametrize(
    "wrong", ["<?xml verison='1.0'?>\n<mujoco", " <?xml version='1.0'?>\n&", "<?xml version='1.0'\n<"]
)
def test_what_is_wrong_besides_is_refused(wrong):
    with pytest.raises(fgd.ModelError, match=r"^m.xml:[12]: the file is not well-formed XML"):
        fgd.loads(wrong, file="m.xml")


def test_an_unknown_encoding_of_a_skipped_declaration_is_refused():
    with pytest.raises(fgd.ModelError, match=r"^m.xml:1: "):
        fgd.loads(" <?xml version='1.0' encoding='utf-9'?>" + MODEL.format(""), file="m.xml")
