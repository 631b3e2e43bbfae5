"""Results say what they are in a line, and show themselves as tables and pictures in notebooks."""

import xml.etree.ElementTree as ElementTree

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.notebook import html_table, short
from tests.show.hostile import hostile_mechanism

LONGEST_LINE = 160
HUMANOID, FIVE_BAR, RRR = fgd.robots.humanoid(), fgd.robots.five_bar(), fgd.robots.rrr()
Q, V = HUMANOID.random_state(0)


def results():
    solution = fgd.forward_dynamics(HUMANOID, Q, V, np.zeros(HUMANOID.nv))
    q, v = FIVE_BAR.random_state(0)
    return [
        solution,
        solution.ordering,
        solution.graph,
        solution.state,
        solution.bayes_net,
        fgd.input_dynamics(HUMANOID, Q, V),
        fgd.diagnose(FIVE_BAR, q),
        fgd.constraints(FIVE_BAR, q, v),
        fgd.spatial_operators(HUMANOID, Q),
        fgd.ordering_cost(RRR, "forward", "aba"),
        fgd.search_orderings(RRR, budget=0.5, objective="blocks", save=False),
    ]


def test_reprs_are_one_line():
    for result in results():
        text = repr(result)
        assert len(text) <= LONGEST_LINE, text
        assert "\n" not in text
        assert any(kind.__name__ in text for kind in type(result).__mro__[:-1]), text


def test_notebooks_show_tables():
    solution, *_ = found = results()
    shown = [result for result in found if hasattr(result, "_repr_html_")]
    assert {type(x).__name__ for x in shown} >= {"Solution", "InputDynamics", "Diagnosis", "SearchResult"}
    shown.append(HUMANOID)
    shown.append(fgd.compare_orderings(RRR, orderings=["aba"], kernels=False))
    for result in shown:
        page = ElementTree.fromstring(f"<div>{result._repr_html_()}</div>")
        assert page.findall(".//td")
    page = ElementTree.fromstring(solution._repr_html_().partition("<p>")[0])
    assert [row[0].text for row in page.find("tbody")] == list(HUMANOID.joint_names)


def test_names_in_tables_are_escaped():
    mechanism = hostile_mechanism()
    q, v = mechanism.random_state(0)
    text = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv))._repr_html_()
    ElementTree.fromstring(f"<div>{text}</div>")
    assert "<b>" not in text
    assert "<img" not in text
    assert html_table([{"a<b": "<script>"}], "<i>", "&") == (
        "<table><caption>&lt;i&gt;</caption><thead><tr><th>a&lt;b</th></tr></thead><tbody><tr>"
        '<td style="text-align: left">&lt;script&gt;</td></tr></tbody></table><p>&amp;</p>'
    )


def test_arrays_are_short():
    assert short(np.array([1.0, 2.5])) == "[1.  2.5]"
    assert short(np.zeros(100)) == "array (100)"
    assert short(np.zeros((3, 4))) == "array (3, 4)"


def test_pictures_show_themselves():
    picture = fgd.draw(RRR, "graph")
    root = ElementTree.fromstring(picture._repr_svg_())
    assert root.tag.endswith("svg")
