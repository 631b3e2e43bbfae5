"""Pictures say what their marks and colours mean, and which steps they leave out; arrows keep clear of names."""

from itertools import pairwise

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.show.pictures.layout import make_layout
from factorgraph_dyn.show.pictures.steps import _skipped, place_of_new
from factorgraph_dyn.show.subject import elimination_steps, make_subject


def words(figure):
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return texts + [text.get_text() for text in figure.texts]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("graph", ["unknown", "known", "equation", "A: link acceleration", "F: joint wrench"]),
        ("dag", ["A: link acceleration", "what it depends on → variable", "fill: no equation holds both"]),
        ("matrix", ["equation: torque", "row of a", "fill: no equation holds both"]),
        ("tree", ["F: joint wrench"]),
        ("steps", ["eliminated in this step", "equation that elimination made", "done before, or no longer needed"]),
    ],
)
def test_marks_and_colours_have_a_legend(what, expected):
    assert set(expected) <= set(words(fgd.draw(fgd.robots.five_bar(), what)))


def test_steps_say_which_are_not_shown():
    assert any("not shown: steps 1, 4, 6, 9, 12" in text for text in words(fgd.draw(fgd.robots.puma560(), "steps")))
    assert not any("not shown" in text for text in words(fgd.draw(fgd.robots.rrr(), "steps")))
    assert _skipped([0, 5, 6, 8]) == "not shown: steps 1 to 4, 7"
    assert _skipped([0, 1, 3]) == "not shown: step 2"


@pytest.mark.parametrize("name", ["rrr", "five_bar", "puma560"])
def test_arrows_and_numbers_keep_clear_of_names(name):
    layout = make_layout(make_subject(fgd.robots.BUILT_IN[name]()))
    steps = elimination_steps(layout.subject, layout.subject.order("aba"))
    arrows = [(parent, step.variable) for step in steps for parent in step.parents]
    letters = np.array([place for heading in layout.unknown_headings for place in heading.letters])
    for parent, child in arrows:
        path = np.array(layout.arrow(parent, child))
        dense = np.concatenate([np.linspace(a, b, 20) for a, b in pairwise(path)])
        gap = np.linalg.norm(dense[:, None] - letters, axis=2).min()
        assert gap > 0.1, (parent, child)
    for place in layout.rank_places(arrows).values():
        assert np.linalg.norm(letters - place, axis=1).min() > 0.08


@pytest.mark.parametrize("name", ["five_bar", "puma560"])
def test_what_elimination_makes_keeps_clear_of_names_of_joints(name):
    layout = make_layout(make_subject(fgd.robots.BUILT_IN[name]()))
    names = [heading for heading in layout.headings if heading.kind == "joint"]
    letters = np.array([place for heading in names for place in heading.letters])
    for step in elimination_steps(layout.subject, layout.subject.order("aba")):
        place = place_of_new(layout, step) if step.made is not None else None
        for parent in step.parents if place else ():
            path = np.array(layout.tie(place, parent))
            dense = np.concatenate([np.linspace(a, b, 20) for a, b in pairwise(path)])
            assert np.linalg.norm(dense[:, None] - letters, axis=2).min() > 0.08, (step.variable, parent)


def test_steps_fill_their_grid():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra 'plot')")
    words = [text.get_text() for text in fgd.draw(fgd.robots.five_bar(), "steps").texts]
    assert [f"{k} of 14" for k in range(1, 15)] == [text.split(":")[0] for text in words if " of 14: " in text]
    assert not any("not shown" in text for text in words)
