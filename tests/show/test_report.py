"""The report page: complete, harmless, and alive in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.errors import InputError, OrderingError
from factorgraph_dyn.show.report import report_data, report_page
from factorgraph_dyn.show.subject import elimination_steps, make_subject
from tests.show.chromium import Browser, find_chromium
from tests.show.hostile import NAMES, hostile_mechanism

CHROMIUM = find_chromium()
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def embedded(page: str) -> dict:
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


@pytest.mark.parametrize("problem", ["forward", "inverse", "hybrid"])
def test_data_is_the_elimination(problem):
    arm = fgd.robots.rrr()
    data = report_data(arm, problem, kernels=problem == "forward")
    assert data["orderings"][0]["name"] == ("rnea" if problem == "inverse" else "aba")
    subject = make_subject(arm, problem)
    names = [node["name"] for node in data["nodes"]]
    for ordering in data["orderings"]:
        steps = elimination_steps(subject, subject.order(ordering["name"]))
        found = [(names[s["variable"]], [names[p] for p in s["parents"]]) for s in ordering["steps"]]
        assert found == [(step.variable, list(step.parents)) for step in steps]
        for step in ordering["steps"]:
            assert all(f"{parent},{step['variable']}" in data["arrows"] for parent in step["parents"])
    assert {row["ordering"] for row in data["comparison"]} == {o["name"] for o in data["orderings"]}
    assert all(("operations" in row) == (problem == "forward") for row in data["comparison"])


def test_a_hybrid_page_compares_the_problem_it_shows():
    arm = fgd.robots.rrr()
    data = report_data(arm, "hybrid", ["aba"], known_accelerations=["joint2"])
    kernel = fgd.compile(arm, "hybrid", ordering="aba", known_accelerations=["joint2"])
    assert [row["operations"] for row in data["comparison"]] == [kernel.operations.total]


def test_page_is_self_contained_and_survives_hostile_names():
    page = report_page(hostile_mechanism(), kernels=False)
    assert {node["name"] for node in embedded(page)["nodes"]} >= {f"A[{name}]" for name in NAMES}
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "<b>arm" not in page
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "default-src 'none'" in page


def test_bad_requests_are_refused(tmp_path):
    arm = fgd.robots.rrr()
    with pytest.raises(InputError, match=r"\.html"):
        fgd.write_report(arm, tmp_path / "report.pdf")
    with pytest.raises(InputError, match="cannot be written"):
        fgd.write_report(arm, tmp_path / "nowhere" / "report.html")
    with pytest.raises(OrderingError, match="Orderings:"):
        fgd.write_report(arm, tmp_path / "report.html", orderings=["best"])
    with pytest.raises(InputError, match="at least one"):
        fgd.write_report(arm, tmp_path / "report.html", orderings=[])
    assert not list(tmp_path.iterdir())


def test_command_report(tmp_path):
    file = tmp_path / "report.html"
    words = ["report", "five_bar", "--problem", "inverse", "--no-kernels", "-o", str(file)]
    done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    data = embedded(file.read_text())
    assert data["mechanism"] == "five_bar"
    assert any(row.get("time_us") for row in data["comparison"])


@pytest.fixture(scope="module")
def browser():
    with Browser(CHROMIUM) as running:
        yield running


SEEN = """({
  step: Number(document.getElementById('slider').value),
  ordering: document.getElementById('ordering').value,
  count: document.getElementById('count').textContent,
  words: document.getElementById('words').textContent,
  factors: document.querySelectorAll('#graph g:not(.gone) > .dot').length,
  made: document.querySelectorAll('#graph .made').length,
  arrows: document.querySelectorAll('#dag .arrow:not(.gone)').length,
  fill: document.querySelectorAll('#dag .arrow.fill:not(.gone)').length,
  now: [...document.querySelectorAll('#graph .node.now title')].map((t) => t.textContent.split(':')[0]),
  bands: document.querySelectorAll('#matrix .done-band, #matrix .now-band').length,
  cliques: document.querySelectorAll('#tree .clique').length,
  chosen: [...document.querySelectorAll('tr.chosen td:first-child')].map((t) => t.textContent),
})"""


@needs_chromium
def test_stepping_changes_everything_together(browser, tmp_path):
    file = tmp_path / "report.html"
    arm = fgd.robots.puma560()
    fgd.write_report(arm, file, kernels=False)
    browser.open(file)
    subject = make_subject(arm)
    steps = elimination_steps(subject, subject.order("aba"))
    for count in (0, 1, 2, 3):
        seen = browser.run(SEEN)
        gone = {index for step in steps[:count] for index in step.gathered}
        assert seen["ordering"] == "aba"
        assert seen["step"] == count
        assert seen["count"] == f"step {count} of {len(steps)}"
        assert seen["factors"] == sum(index not in gone for index in range(len(subject.graph.factors)))
        assert seen["made"] == sum(step.made is not None and step.made not in gone for step in steps[:count])
        assert seen["arrows"] == sum(len(step.parents) for step in steps[:count])
        assert seen["now"] == [step.variable for step in steps[:count]][-1:]
        assert seen["bands"] == count
        assert seen["chosen"] == ["aba"]
        browser.press("ArrowRight")
    browser.press("End")
    seen = browser.run(SEEN)
    assert (seen["step"], seen["factors"], seen["made"]) == (len(steps), 0, 0)
    assert "solved" in seen["words"]
    browser.press("ArrowLeft")
    assert browser.run(SEEN)["step"] == len(steps) - 1
    browser.press("Home")
    assert browser.run(SEEN)["step"] == 0
    assert not browser.complaints()


@needs_chromium
def test_orderings_are_chosen_by_key_row_and_address(browser, tmp_path):
    file = tmp_path / "report.html"
    fgd.write_report(fgd.robots.puma560(), file, kernels=False)
    browser.open(file, fragment="#ordering=crba&step=18")
    seen = browser.run(SEEN)
    assert (seen["ordering"], seen["step"], seen["chosen"]) == ("crba", 18, ["crba"])
    assert seen["fill"] > 0
    browser.press("ArrowDown")
    assert browser.run(SEEN)["ordering"] == "colamd"
    browser.click("tr[data-ordering=metis] td")
    assert browser.run(SEEN)["ordering"] == "metis"
    browser.click("#first")
    browser.click("#next")
    browser.click("#next")
    browser.click("#back")
    assert browser.run(SEEN)["step"] == 1
    before = browser.run("document.querySelector('#graph svg').getAttribute('width')")
    browser.click("#graph .bar button:nth-of-type(2)")
    assert float(browser.run("document.querySelector('#graph svg').getAttribute('width')")) > float(before)
    browser.run("document.querySelector('#slider').value = 7")
    browser.run("document.querySelector('#slider').dispatchEvent(new Event('input'))")
    assert browser.run(SEEN)["bands"] == 7
    assert not browser.complaints()


@needs_chromium
@pytest.mark.parametrize("width", [420, 1500])
def test_pages_fit_their_window_and_draw(browser, tmp_path, width):
    file = tmp_path / "report.html"
    fgd.write_report(fgd.robots.five_bar(), file, kernels=False)
    browser.open(file, width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.screenshot().startswith(b"\x89PNG")
    sizes = browser.run("[...document.querySelectorAll('main svg')].map((s) => s.getBoundingClientRect().height)")
    assert len(sizes) == 4
    assert min(sizes) > 50
    assert not browser.complaints()


@needs_chromium
def test_hostile_names_do_nothing(browser, tmp_path):
    file = tmp_path / "report.html"
    fgd.write_report(hostile_mechanism(), file, kernels=False)
    browser.open(file, fragment="#ordering=<b>&step=5")
    for _ in range(12):
        browser.press("ArrowRight")
    assert browser.run("document.title") == "<b>arm</b> & $co: forward dynamics"
    assert browser.run("document.querySelectorAll('img, b:not(footer b), script').length") == 2
    assert browser.run(SEEN)["step"] == 17
    assert not browser.complaints()


def test_facts_tell_the_mobility_beside_the_freedoms():
    facts = report_data(fgd.robots.five_bar(), kernels=False)["facts"]
    assert "4 freedoms of the tree, mobility 2" in facts
    assert "3 freedoms" in report_data(fgd.robots.rrr(), kernels=False)["facts"]


@needs_chromium
@pytest.mark.parametrize("width", [420, 1400])
def test_panels_open_fitted_below_a_legend(browser, tmp_path, width):
    file = tmp_path / "report.html"
    fgd.write_report(fgd.robots.humanoid(), file, orderings=["aba"], kernels=False)
    browser.open(file, width=width, height=900)
    beyond = "(v) => [v.scrollWidth - v.clientWidth, v.scrollHeight - v.clientHeight]"
    inside = f"[...document.querySelectorAll('.view')].map({beyond})"
    assert browser.run(inside) == [[0, 0]] * 4
    legend = browser.run("document.getElementById('legend').innerText")
    for words in ("A: link acceleration", "equation that elimination made", "fill", "known"):
        assert words in legend
    browser.click("#graph .bar button:nth-of-type(2)")
    assert any(overflow != [0, 0] for overflow in browser.run(inside))


@needs_chromium
def test_play_is_one_triangle_and_becomes_pause(browser, tmp_path):
    file = tmp_path / "report.html"
    fgd.write_report(fgd.robots.rrr(), file, kernels=False)
    browser.open(file)
    seen = "[document.querySelector('#play path').getAttribute('d').match(/Z/g).length, byId('play').ariaLabel]"
    assert browser.run(seen) == [1, "Play"]
    browser.click("#play")
    assert browser.run(seen) == [2, "Pause"]
    browser.click("#play")
    assert browser.run(seen) == [1, "Play"]
