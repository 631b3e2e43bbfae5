"""Nothing overlaps, every equation is tied to its variables, and steps are what GTSAM does."""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.commands.common import find_robot
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.show.pictures.layout import make_layout
from factorgraph_dyn.show.pictures.places import RADIUS
from factorgraph_dyn.show.subject import elimination_steps, make_subject
from tests.helpers import lossy, mixed_tree

ROBOTS = ("rrr", "puma560", "humanoid", "pendulum:30", "four_bar", "five_bar", "stewart", "delta", "four_bar_chain:5")
MANY = [*ROBOTS, *range(8)]


def mechanism_of(robot) -> fgd.Mechanism:
    return find_robot(robot) if isinstance(robot, str) else lossy(mixed_tree(robot), robot)


def gaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.hypot(*(one[:, None, :] - other[None, :, :]).transpose(2, 0, 1))


@pytest.mark.parametrize("robot", MANY, ids=str)
@pytest.mark.parametrize("problem", ["forward", "inverse", "hybrid"])
def test_circles_squares_and_dots_keep_apart(robot, problem):
    layout = make_layout(make_subject(mechanism_of(robot), problem))
    nodes = np.array([node.place for node in layout.nodes.values()])
    dots = np.array([dot.place for dot in layout.dots])
    between = gaps(nodes, nodes) + 10 * np.eye(len(nodes))
    assert between.min() > 2 * RADIUS + 0.02
    assert gaps(nodes, dots).min() > RADIUS + 0.1
    assert (gaps(dots, dots) + 10 * np.eye(len(dots))).min() > 0.2


@pytest.mark.parametrize("robot", MANY, ids=str)
def test_lines_pass_no_circle_on_their_way(robot):
    layout = make_layout(make_subject(mechanism_of(robot), "forward"))
    for dot in layout.dots:
        for name, line in dot.lines.items():
            points = np.array(line)
            t = np.linspace(0, 1, 40)[:, None, None]
            dense = (points[None, :-1] * (1 - t) + points[None, 1:] * t).reshape(-1, 2)
            others = np.array([node.place for other, node in layout.nodes.items() if other != name])
            assert gaps(dense, others).min() > RADIUS + 0.04, (dot.name, name)


@pytest.mark.parametrize("robot", [*ROBOTS, *range(4)], ids=str)
def test_lines_lead_from_the_equation_to_its_variables(robot):
    subject = make_subject(mechanism_of(robot), "hybrid")
    layout = make_layout(subject)
    for dot, factor, known in zip(layout.dots, subject.graph.factors, subject.known_of, strict=True):
        assert set(dot.lines) == {str(variable) for variable, _ in factor.blocks} | set(known)
        for name, line in dot.lines.items():
            assert line[0] == dot.place
            assert line[-1] == layout.nodes[name].place
            assert layout.nodes[name].known == (name in known)


@pytest.mark.parametrize(
    ("problem", "known"),
    [("forward", {"A[base]", "tau[joint1]", "tau[joint2]"}), ("inverse", {"A[base]", "a[joint1]", "a[joint2]"}),
     ("hybrid", {"A[base]", "a[joint1]", "tau[joint2]"})],
)  # fmt: skip
def test_known_variables_are_squares(problem, known):
    layout = make_layout(make_subject(fgd.robots.pendulum(2), problem))
    assert {name for name, node in layout.nodes.items() if node.known} == known


def test_a_loop_has_a_known_torque():
    layout = make_layout(make_subject(fgd.robots.five_bar(), "forward"))
    loop = fgd.robots.five_bar().loops[0]
    assert layout.nodes[f"tau[{loop.name}]"].known
    assert not layout.nodes[f"F[{loop.name}]"].known


def test_known_accelerations_belong_to_hybrid_problems():
    subject = make_subject(fgd.robots.rrr(), "hybrid", ["joint1"])
    assert {str(variable) for variable in subject.graph.known} >= {"a[joint1]", "tau[joint2]", "tau[joint3]"}
    with pytest.raises(InputError, match="hybrid"):
        make_subject(fgd.robots.rrr(), "forward", ["joint1"])
    with pytest.raises(InputError, match="one of: forward, inverse, hybrid"):
        make_subject(fgd.robots.rrr(), "backward")


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "metis", "min_fill", "natural"])
@pytest.mark.parametrize("robot", ["puma560", "humanoid", 3, 5], ids=str)
def test_steps_are_those_of_gtsam(robot, ordering):
    mechanism = mechanism_of(robot)
    subject = make_subject(mechanism, "forward")
    chosen = subject.order(ordering)
    steps = elimination_steps(subject, chosen)
    q, v = mechanism.random_state(0)
    graph = fgd.dynamics_graph(fgd.evaluate_state(mechanism, q, v), fgd.Known.forward(np.zeros(mechanism.nv)))
    net = fgd.eliminate(graph, chosen)
    for step, conditional in zip(steps, net, strict=True):
        assert step.variable == str(conditional.variable)
        assert set(step.parents) == {str(parent) for parent in conditional.parents}


@pytest.mark.parametrize("robot", ["rrr", "humanoid", "five_bar", 2], ids=str)
def test_every_equation_is_used_once(robot):
    subject = make_subject(mechanism_of(robot), "forward")
    steps = elimination_steps(subject, subject.order("colamd"))
    used = [index for step in steps for index in step.gathered]
    made = [step.made for step in steps if step.made is not None]
    assert sorted(used) == sorted([*range(len(subject.graph.factors)), *made])
    assert all(step.rows > 0 for step in steps if step.made is not None)
