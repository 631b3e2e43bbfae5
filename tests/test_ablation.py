"""Numerics tools are switched off and on again: every place is there, comes back as it was, and a case notices."""

from __future__ import annotations

import sys

import pytest

from scripts import ablation_tools
from scripts.ablate import Ablation, _difference
from scripts.ablation_tasks import Found, case_tasks
from scripts.ablation_tools import PACKAGE, TOOLS


@pytest.fixture(autouse=True, scope="module")
def _all_imported():
    ablation_tools.import_all()


def there(place: str):
    module, path = place.split(":")
    owner = sys.modules[PACKAGE + module]
    *owners, name = path.split(".")
    for each in owners:
        owner = getattr(owner, each)
    return owner.__dict__[name]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_places_of_tools_are_there_and_come_back(tool):
    """A tool that was taken out of the package, or renamed, is to be taken out of the table, too."""
    before = [there(off.place) for off in tool.offs]
    with ablation_tools.switched_off(tool):
        assert all(there(off.place) is not one for off, one in zip(tool.offs, before, strict=True))
    assert all(there(off.place) is one for off, one in zip(tool.offs, before, strict=True))
    with ablation_tools.watched(set()):
        pass
    assert all(there(off.place) is one for off, one in zip(tool.offs, before, strict=True))


def test_a_case_notices():
    """In the ordering natural the graph loses the inertia of a slender body, sees that, and solves again in aba."""
    name = "slender_body_natural_ordering_of_the_graph"
    tasks = [task for task in case_tasks(name, slow=False) if task.route == "graph"]
    ablation = Ablation(tasks, [TOOLS["moves_little"], TOOLS["usual rows"]], 1, None)
    try:
        ablation.run()
    finally:
        ablation.end()
    assert {found.kinds for found in ablation.usual.values()} == {("right",) * 4}
    assert ablation.rows["moves_little"].names(is_robot=False) == [name]
    assert ablation.rows["usual rows"].asked == 0
    assert "moves_little" in ablation.table()


@pytest.mark.parametrize(
    ("kinds", "operations", "word"),
    [
        (("right", "nan"), 1000, ""),
        (("right", "nan"), 1011, "more"),
        (("right", "nan"), 989, "fewer"),
        (("nan", "nan"), 1000, "nan"),
        (("refused", "refused"), 0, "refused"),
        (("right", "right"), 1000, "better"),
        (("right", "wrong"), 1000, "wrong"),
        (("foreign",), 0, "error"),
        (("slow",), 0, "slow"),
    ],
)
def test_differences_in_words(kinds, operations, word):
    assert _difference(Found(("right", "nan"), 1000), Found(kinds, operations)) == word
