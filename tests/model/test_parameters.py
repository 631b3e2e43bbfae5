"""Inertial parameters of links: there and back, and the words for what they cannot be."""

import numpy as np
import pinocchio as pin
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.parameters import NAMES, inertia_of, parameters_of
from tests.helpers import mixed_tree, relative_error


@pytest.fixture(scope="module")
def arm():
    return fgd.robots.puma560()


def test_rows_are_pinocchios(arm):
    for name, row in zip(arm.link_names[1:], arm.parameters(), strict=True):
        link = arm.link_by_name[name]
        theirs = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia)).toDynamicParameters()
        assert relative_error(row, theirs) < 1e-15


def test_own_parameters_change_nothing():
    for seed in range(5):
        tree = mixed_tree(seed)
        assert tree.with_parameters(tree.parameters()).fingerprint == tree.fingerprint


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_there_and_back(scale):
    tree = mixed_tree(3)
    lengths = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    wanted = 1.1 * tree.parameters() * scale**lengths
    found = tree.with_parameters(wanted).parameters()
    assert (np.abs(found - wanted) <= 4e-16 * np.abs(wanted).max(axis=0)).all()


def test_some_links_in_any_order(arm):
    chosen = ["link3", "link2"]
    rows = arm.parameters(chosen)
    assert (rows == arm.parameters()[[arm.link_names.index(name) - 1 for name in chosen]]).all()
    heavier = arm.with_parameters(2 * rows, chosen)
    assert heavier.link_by_name["link3"].mass == 2 * arm.link_by_name["link3"].mass
    assert heavier.link_by_name["link1"] is arm.link_by_name["link1"]
    assert (arm.parameters("all") == arm.parameters()).all()
    assert arm.parameters("link2").shape == (1, len(NAMES))


def test_spatial_inertias_and_parameters_are_the_same_thing(arm):
    for link in arm.links:
        assert relative_error(inertia_of(parameters_of(link.spatial_inertia)), link.spatial_inertia) < 1e-15


def test_a_massless_link_may_have_inertia(arm):
    rows = np.zeros((1, 10))
    rows[0, [4, 6, 9]] = 0.1
    changed = arm.with_parameters(rows, "link6")
    assert (changed.parameters("link6") == rows).all()
    assert any("link6" in warning for warning in changed.warnings)


@pytest.mark.parametrize(
    ("values", "links", "words"),
    [
        (np.zeros((5, 10)), None, r"shape \(5, 10\); it must be \(6, 10\)"),
        (np.zeros(10), "link2", r"shape \(10,\); it must be \(1, 10\)"),
        (np.full((1, 10), np.nan), "link2", "not finite"),
        ([[0, 1, 0, 0, 1, 0, 1, 0, 0, 1]], "link2", "no mass and the first moment"),
        (np.zeros((1, 10)), "elbow", "Link 'elbow' is not in mechanism 'puma560'"),
        (np.zeros((1, 10)), "base", "'base' is the base"),
        (np.zeros((2, 10)), ["link2", "link2"], "named twice"),
        (np.zeros((1, 10)), 3, "links is 3"),
    ],
)
def test_words(arm, values, links, words):
    assert arm.base == "base"
    with pytest.raises(fgd.InputError, match=words):
        arm.with_parameters(values, links)


def test_a_link_has_no_negative_mass(arm):
    with pytest.raises(fgd.ModelError, match="cannot be negative"):
        arm.with_parameters(-arm.parameters())
