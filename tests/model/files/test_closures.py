"""Files of closures: which joints their words mean. What they say of loops is tested in tests/model/test_edit.py."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.urdf.writer import to_urdf
from tests.model.files import test_urdf


def test_a_motor_is_a_joints_own_name_or_whole_words_of_one(tmp_path):
    """Ten joints in a row, driven by their names: mot1 does not drive mot10, but may be short for mot1_left."""

    def driven(names, motors):
        joints = [fgd.Joint(name, "revolute", f"l{k}", f"l{k + 1}") for k, name in enumerate(names)]
        chain = fgd.Mechanism("row", [fgd.Link(f"l{k}", 1) for k in range(len(names) + 1)], joints)
        (tmp_path / "row.urdf").write_text(to_urdf(chain))
        (tmp_path / "motors.yaml").write_text(f"name_mot: {motors}\n")
        found = fgd.load(tmp_path / "row.urdf", closures=tmp_path / "motors.yaml")
        return [joint.name for joint in found.joints if joint.actuated]

    row = [f"mot{k}" for k in range(12)]
    assert driven(row, ["mot1"]) == ["mot1"]
    assert driven(row, ["mot10", "mot1"]) == ["mot1", "mot10"]
    assert driven(["mot1_left", "mot10_left", "a.mot2"], ["mot1", "mot2"]) == ["mot1_left", "a.mot2"]
    for wrong in ("mot", "ot1", "mot12"):
        with pytest.raises(fgd.ModelError, match=f"'{wrong}' is no movable joint"):
            driven(row, [wrong])


def test_closures_may_change_the_kind_of_joints(tmp_path):
    """As Pinocchio's models of example-parallel-robots: a cardan joint turns about x, then about y."""
    pin = pytest.importorskip("pinocchio")
    text = test_urdf.chain(["revolute", "revolute", "revolute"], extra=f'{test_urdf.LIMIT}<dynamics damping="2"/>')
    (tmp_path / "r.urdf").write_text(text)
    (tmp_path / "r.yaml").write_text(
        "closed_loop: []\njoint_name: [j0, j1, j2]\njoint_type: [CARDAN, SPHERICAL, FIXED]"
    )
    found = fgd.load(tmp_path / "r.yaml")
    assert [joint.kind for joint in found.joints] == ["universal", "spherical", "fixed"]
    assert "joint 'j0' is universal and has no damping any more" in " ".join(found.warnings)
    old = pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    model = pin.Model()
    parent = model.addJoint(0, pin.JointModelRX(), old.jointPlacements[1], "x")
    parent = model.addJoint(parent, pin.JointModelRY(), pin.SE3.Identity(), "y")
    model.appendBodyToJoint(parent, old.inertias[1], pin.SE3.Identity())
    parent = model.addJoint(parent, pin.JointModelSpherical(), old.jointPlacements[2], "ball")
    model.appendBodyToJoint(parent, old.inertias[2], pin.SE3.Identity())
    model.appendBodyToJoint(parent, old.inertias[3], old.jointPlacements[3])
    q, _ = found.random_state(3)
    M = pin.crba(model, model.createData(), q)
    np.testing.assert_allclose(fgd.mass_matrix(found, q), np.triu(M) + np.triu(M, 1).T, rtol=1e-10, atol=1e-12)


def test_a_file_that_lists_nothing_is_refused(tmp_path):
    (tmp_path / "r.urdf").write_text(test_urdf.chain(["revolute"]))
    for text, words in (
        ("{}", "the file lists nothing; keys: closed"),
        ("closed_loops: []", "'closed_loops' is not"),
    ):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(fgd.ModelError, match=f"c.yaml:1: .*{words}"):
            fgd.load(tmp_path / "r.urdf", closures=tmp_path / "c.yaml")
