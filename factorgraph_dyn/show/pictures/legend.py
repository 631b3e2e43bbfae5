"""What marks and colours of a picture mean: small samples with a word each, in rows below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from factorgraph_dyn.show.pictures.canvas import COLOUR, FACTOR_COLOUR, FILL, GREY, INK, MEANING, NEW, PALE
from factorgraph_dyn.show.pictures.layout import SYMBOL

Mark = tuple[str, dict[str, Any]]
"""Words, and how matplotlib draws the sample."""

ROW_INCHES = 0.22
LETTER_INCHES = 0.056  # of a letter at the size used
SAMPLE_INCHES = 0.45  # of a sample and the gaps beside it
EQUATIONS = {
    "acceleration": "acceleration",
    "wrench": "wrench balance",
    "torque": "torque",
    "coupling": "coupling",
    "redundant": "redundant closure",
}


def kind_marks(kinds: Iterable[str]) -> list[Mark]:
    """The colours of kinds of variable, as circles have them."""
    present = set(kinds)
    return [
        _marker(f"{SYMBOL[kind]}: {meaning}", "o", PALE[kind], COLOUR[kind])
        for kind, meaning in MEANING.items()
        if kind in present
    ]


def block_marks(kinds: Iterable[str], equations: Iterable[str]) -> list[Mark]:
    """The colours of blocks of a matrix: by kind of equation before elimination, of variable after it."""
    present, before = set(kinds), set(equations)
    names: dict[str, list[str]] = {}
    for kind, words in EQUATIONS.items():
        if kind in before:
            names.setdefault(FACTOR_COLOUR[kind], []).append(f"equation: {words}")
    for kind in MEANING:
        if kind in present:
            names.setdefault(COLOUR[kind], []).append(f"row of {SYMBOL[kind]}")
    return [_marker(", ".join(words), "s", colour, colour) for colour, words in names.items()]


def graph_marks() -> list[Mark]:
    """The shapes of a factor graph."""
    return [
        _marker("unknown", "o", "white", INK),
        _marker("known", "s", "white", INK),
        _marker("equation", "o", INK, INK, size=4.5),
    ]


def step_marks() -> list[Mark]:
    """What elimination changes in a factor graph."""
    return [
        _marker("eliminated in this step", "o", COLOUR["A"], COLOUR["A"]),
        _marker("done before, or no longer needed", "o", "white", "#d4d4d4"),
        _marker("equation that elimination made", "D", NEW, NEW, size=5),
        *arrow_marks(),
    ]


def arrow_marks() -> list[Mark]:
    """The arrows of a Bayes net."""
    return [_line("what it depends on → variable", "#555555"), fill_mark()]


def fill_mark(block: bool = False) -> Mark:
    """What orange means."""
    words = "fill: no equation holds both"
    return _marker(words, "s", FILL, FILL) if block else _line(words, FILL)


def legend_inches(marks: Sequence[Mark], width: float) -> float:
    """The height that a legend needs in a picture of some width, inches."""
    return ROW_INCHES * ceil(len(marks) / _columns(marks, width)) + 0.08


def add_legend(figure: Any, marks: Sequence[Mark], bottom: float = 0.0) -> None:
    """Write a legend at the bottom of a figure, ``bottom`` inches above its rim."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    handles = [Line2D([], [], label=words, **style) for words, style in marks]
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, bottom / height), ncols=_columns(marks, width),
        frameon=False, fontsize=7.5, labelcolor=GREY, borderpad=0.2, handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip


def _columns(marks: Sequence[Mark], width: float) -> int:
    widest = max(len(words) for words, _ in marks) * LETTER_INCHES + SAMPLE_INCHES
    return max(1, min(len(marks), int((width - 0.2) / widest)))


def _marker(words: str, shape: str, face: str, edge: str, size: float = 7.0) -> Mark:
    style = {"marker": shape, "linestyle": "none", "markerfacecolor": face, "markeredgecolor": edge}
    return words, style | {"markersize": size, "markeredgewidth": 1.0}


def _line(words: str, colour: str) -> Mark:
    return words, {"color": colour, "linewidth": 1.2, "marker": ">", "markersize": 4, "markevery": (1, 2)}
