"""Every picture of every kind can be drawn and written, its texts do not overlap, bad words are refused."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.commands.common import find_robot
from factorgraph_dyn.errors import FactorGraphDynError, InputError, OrderingError
from factorgraph_dyn.show.draw import PICTURES
from factorgraph_dyn.show.pictures import canvas
from factorgraph_dyn.show.pictures.canvas import shortened
from factorgraph_dyn.show.pictures.steps import animate_steps
from tests.show.hostile import hostile_mechanism

pytest.importorskip("matplotlib", reason="pictures need matplotlib (the extra 'plot')")

STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("what", PICTURES)
@pytest.mark.parametrize("ending", STARTS)
def test_every_picture_is_written(what, ending, tmp_path):
    file = tmp_path / f"picture{ending}"
    figure = fgd.draw(fgd.robots.rrr(), what, file, problem="inverse")
    assert figure is not None
    assert file.read_bytes().startswith(STARTS[ending])


def test_steps_are_animated(tmp_path):
    from PIL import Image

    file = tmp_path / "steps.gif"
    assert fgd.draw(fgd.robots.pendulum(2), "steps", file) is None
    with Image.open(file) as picture:
        assert picture.n_frames == 1 + 6


def tree_with_long_names() -> fgd.Mechanism:
    tree = fgd.robots.random_tree(14, seed=3, branching=1.6, kinds=("all",))
    names = {f"{part}{i}": f"{part}_of_the_left_front_leg_number_{i}" for part in ("link", "joint") for i in range(15)}
    return tree.rename({old: new for old, new in names.items() if not old.endswith("t0") and old != "link0"})


@pytest.mark.parametrize("what", ["graph", "dag", "matrix", "tree"])
@pytest.mark.parametrize("robot", ["rrr", "puma560", "humanoid", "pendulum:30", "five_bar", "delta", "long names"])
def test_texts_do_not_overlap(robot, what):
    mechanism = tree_with_long_names() if robot == "long names" else find_robot(robot)
    check_texts(fgd.draw(mechanism, what, ordering="metis"))


def test_texts_of_a_narrow_tree_do_not_overlap():
    check_texts(fgd.draw(fgd.robots.puma560(), "tree", ordering="aba"))


def check_texts(figure):
    """Texts stay on the paper and clear of each other."""
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    texts = [text for text in [*figure.texts, *(t for axes in figure.axes for t in axes.texts)] if text.get_text()]
    # A text's box has room for accents and tails around its letters.
    boxes = [text.get_window_extent(renderer).shrunk(0.97, 0.8) for text in texts]
    for i, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
        for other, place in zip(texts[:i], boxes[:i], strict=True):
            assert not box.overlaps(place), (text, other)


def test_the_same_picture_gives_the_same_file(tmp_path):
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        fgd.draw(fgd.robots.puma560(), "dag", file, ordering="crba")
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["graph", "dag", "matrix", "tree", "steps"])
def test_hostile_names_are_only_names(what, tmp_path):
    file = tmp_path / "hostile.svg"
    fgd.draw(hostile_mechanism(), what, file)
    assert b"<script" not in file.read_bytes()
    assert b'onerror="' not in file.read_bytes()


def test_own_orderings_are_drawn():
    mine = ["F[joint2]", "A[link2]", "a[joint2]", "F[joint1]", "A[link1]", "a[joint1]"]
    for what in ("dag", "bars"):
        assert fgd.draw(fgd.robots.pendulum(2), what, ordering=mine) is not None


def test_bad_words_are_refused(tmp_path):
    arm = fgd.robots.rrr()
    with pytest.raises(InputError, match="one of: graph, dag, matrix, tree, steps, bars"):
        fgd.draw(arm, "portrait")
    with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf"):
        fgd.draw(arm, "graph", tmp_path / "graph.gif")
    with pytest.raises(InputError, match="folder"):
        fgd.draw(arm, "graph", tmp_path / "nowhere" / "graph.svg")
    with pytest.raises(OrderingError, match="Orderings:"):
        fgd.draw(arm, "dag", ordering="best")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        fgd.draw(arm, "graph", tmp_path / "folder.svg")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(FactorGraphDynError, match=r"factorgraph_dyn\[plot\]"):
        fgd.draw(fgd.robots.rrr())
    with pytest.raises(FactorGraphDynError, match=r"factorgraph_dyn\[plot\]"):
        animate_steps(*_layout_and_order(), "steps.gif")


def _layout_and_order():
    from factorgraph_dyn.show.pictures.layout import make_layout
    from factorgraph_dyn.show.subject import make_subject

    subject = make_subject(fgd.robots.rrr())
    return make_layout(subject), subject.order()


def test_importing_the_package_does_not_import_matplotlib():
    words = "import sys, factorgraph_dyn; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words]).returncode == 0


@pytest.mark.parametrize(
    ("text", "width", "lines", "expected"),
    [("left_hip_yaw_link", 11, 3, "left_hip_\nyaw_link"), ("tip", 11, 3, "tip"), ("x" * 50, 5, 1, "xx…xx")],
)
def test_names_are_broken_at_underscores(text, width, lines, expected):
    assert shortened(text, width, lines) == expected


@pytest.mark.slow
def test_command_draw(tmp_path):
    file = tmp_path / "steps.png"
    words = ["draw", "rrr", "--what", "dag", "--problem", "hybrid", "--known", "joint1", "-o", str(file)]
    done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert file.exists()
    words = ["draw", "rrr", "-o", str(tmp_path / "graph.bmp")]
    done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_letters_are_sought_in_fonts_of_other_scripts(tmp_path, monkeypatch):
    letter = "\u1d8e"  # which matplotlib's usual font lacks and its STIXGeneral has
    monkeypatch.setattr(canvas, "OTHER_SCRIPTS", ("No Such Font", "STIXGeneral"))
    figure = canvas.new_figure(2, 1)
    canvas.write_text(figure.add_subplot(), 0.5, 0.5, letter)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        canvas.save_figure(figure, tmp_path / "letter.png")
