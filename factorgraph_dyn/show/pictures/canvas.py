"""Matplotlib behind one door: asked for only when a picture is drawn, files told by their ending.

Names come from model files and are drawn as they are, never read as formulas.
"""

from __future__ import annotations

from functools import cache
from io import StringIO
from pathlib import Path as FilePath
from typing import Any

from factorgraph_dyn.checks import check_path
from factorgraph_dyn.errors import FactorGraphDynError, InputError

ENDINGS = (".svg", ".png", ".pdf")
INCHES = 0.55  # of one unit of the layout
LARGEST_INCHES = 300.0
LARGEST_PIXELS = 30000  # of one side of a PNG
COLOUR = {
    "A": "#2f6fb3", "F": "#2e8b57", "a": "#b5443c", "tau": "#7d4fa3", "lambda": "#8a6d1f", "V": "#3c8d9e",
}  # fmt: skip
PALE = {
    "A": "#dbe8f6", "F": "#dcf0e4", "a": "#f7dfdc", "tau": "#eadff3", "lambda": "#f3ead0", "V": "#dbeff2",
}  # fmt: skip
FACTOR_COLOUR = {
    "acceleration": "#2f6fb3", "wrench": "#2e8b57", "torque": "#7d4fa3", "coupling": "#8a6d1f",
    "redundant": "#9a9a9a",
}  # fmt: skip
# Fonts with Chinese, Japanese and Korean letters, as Linux, Windows and macOS have them.
OTHER_SCRIPTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "Droid Sans Fallback", "Microsoft YaHei", "SimHei", "Yu Gothic", "MS Gothic", "Malgun Gothic", "PingFang SC",
    "Hiragino Sans", "Apple SD Gothic Neo", "Arial Unicode MS", "Noto Sans",
)  # fmt: skip
INK, GREY, FAINT, FILL, NEW = "#222222", "#777777", "#d4d4d4", "#ef9b20", "#d81b60"
MEANING = {
    "a": "joint acceleration", "A": "link acceleration", "F": "joint wrench", "tau": "joint torque",
    "lambda": "coupling force",
}  # fmt: skip


def new_figure(width: float, height: float, **options: Any) -> Any:
    """An empty figure of a size in inches, with matplotlib's other options, drawn without any window.

    Raises:
        FactorGraphDynError: Matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise FactorGraphDynError(
            "Pictures need matplotlib, which is not installed. Install it with: "
            "pip install 'factorgraph_dyn[plot]'. The interactive page (fgdyn report) works without it."
        ) from None
    size = (min(width, LARGEST_INCHES), min(height, LARGEST_INCHES))
    figure = _picture_class()(figsize=size, facecolor="white", **options)
    FigureCanvasAgg(figure)
    return figure


@cache
def _picture_class() -> Any:
    """Matplotlib's figure, which notebooks show without being told to."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_svg_(self) -> str:
            text = StringIO()
            _write(self, text, "svg")
            return text.getvalue()

    return Picture


def plain_axes(figure: Any, place: Any, bounds: tuple[float, float, float, float]) -> Any:
    """Axes without frame or ticks that show bounds (left, right, bottom, top) undistorted.

    Args:
        figure: The figure.
        place: (left, bottom, width, height) as parts of the figure, or a subplot's specification.
        bounds: What is shown.
    """
    axes = figure.add_axes(place) if isinstance(place, (tuple, list)) else figure.add_subplot(place)
    left, right, bottom, top = bounds
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def write_text(axes: Any, x: float, y: float, text: str, **style: Any) -> Any:
    """Text that is drawn letter by letter: a dollar sign in a name starts no formula."""
    style.setdefault("ha", "center")
    style.setdefault("va", "center")
    style.setdefault("color", INK)
    return axes.text(x, y, text, parse_math=False, **style)


def check_ending(path: str | FilePath, allowed: tuple[str, ...] = ENDINGS) -> FilePath:
    """The path, if its ending is one that can be written and its folder exists."""
    file = check_path(path, "The path of the picture")
    if file.suffix.lower() not in allowed:
        raise InputError(
            f"The picture {str(file)!r} ends in {file.suffix or 'nothing'!r}; endings that can be "
            f"written: {', '.join(allowed)}."
        )
    if not file.parent.is_dir():
        raise InputError(f"The folder {str(file.parent)!r} does not exist; make it, or write elsewhere.")
    return file


def check_drawable(path: str | FilePath) -> None:
    """Raise an error unless a picture can be drawn and written to this path."""
    check_ending(path)
    new_figure(1.0, 1.0)


def save_figure(figure: Any, path: str | FilePath) -> None:
    """Write a figure as SVG, PNG or PDF, by the file's ending; the same figure gives the same file."""
    file = check_ending(path)
    try:
        _write(figure, file, file.suffix.lower()[1:])
    except OSError as error:
        raise InputError(f"The picture {str(file)!r} cannot be written: {error.strerror or error}.") from None


def _write(figure: Any, target: Any, format: str) -> None:
    """Write a figure to a file or stream; the same figure gives the same bytes."""
    import matplotlib

    _use_fonts_of_all_scripts(figure)
    side = max(figure.get_size_inches())
    without_date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[format]
    options: Any = {"svg.fonttype": "none", "svg.hashsalt": "factorgraph_dyn", "pdf.fonttype": 42}
    with matplotlib.rc_context(options):
        figure.savefig(target, format=format, dpi=min(150.0, LARGEST_PIXELS / side), metadata=without_date)


def _use_fonts_of_all_scripts(figure: Any) -> None:
    """Let texts beyond Latin letters find their glyphs in whichever fonts for other scripts are installed."""
    from matplotlib.font_manager import get_font_names
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if not text.get_text().isascii()]
    if texts:
        installed = set(get_font_names())
        for text in texts:
            text.set_family(["sans-serif", *(font for font in OTHER_SCRIPTS if font in installed)])


def shortened(text: str, width: int, lines: int) -> str:
    """A name broken at underscores and the like into lines of a width, its middle left out if needed.

    Args:
        text: The name; control characters are left out.
        width: Characters of a line.
        lines: How many lines there may be.
    """
    clean = "".join(letter if letter.isprintable() else "?" for letter in text)
    room = width * lines
    if len(clean) > room:
        keep = (room - 1) // 2
        clean = f"{clean[:keep]}…{clean[-keep:]}"
    broken, line = [], ""
    for piece in _pieces(clean, width):
        if line and len(line) + len(piece) > width:
            broken.append(line)
            line = ""
        line += piece
    broken.append(line)
    if len(broken) > lines:  # pieces did not pack well: break anywhere
        broken = [clean[i : i + width] for i in range(0, len(clean), width)]
    return "\n".join(broken)


def _pieces(text: str, width: int) -> list[str]:
    """The text cut after underscores, dashes, dots, slashes and blanks, and where it is too long."""
    pieces, piece = [], ""
    for letter in text:
        piece += letter
        if letter in "_-./ :" or len(piece) == width:
            pieces.append(piece)
            piece = ""
    return [*pieces, piece] if piece else pieces
