"""The README's own pictures: made by a script, and in step with what they show."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "scripts" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_five_bar_moves_for_ever_and_comes_back_to_its_start():
    root = ET.fromstring(pictures().five_bar_picture())
    moves = list(root.iter(f"{SVG}animate"))
    assert len(moves) > 10
    for move in moves:
        values = move.get("values").split(";")
        assert move.get("repeatCount") == "indefinite"
        assert values[0] == values[-1]
        assert len(set(values)) > 10


def test_the_chart_has_the_numbers_of_the_first_table_of_results():
    module = pictures()
    page = module.RESULTS.read_text(encoding="utf-8")
    words = [text.text for text in ET.fromstring(module.speed_picture(page)).iter(f"{SVG}text")]
    for _, _, ours, theirs, times in module.speed_rows(page):
        assert f"{ours:g}, {times:g} times faster" in words
        assert f"{theirs:g}" in words
    drawn = (ROOT / "examples" / "pictures" / "speed.svg").read_text(encoding="utf-8")
    assert drawn == module.speed_picture(page), "the table has changed: run python scripts/pictures.py"
