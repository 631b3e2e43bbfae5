"""Halves of variables and steps inside joints: apart in kernels, unknown to GTSAM, refused where they do not fit."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.ordering.halves import halves, joined, step_owner, whole
from tests.helpers import relative_error

RRR = fgd.robots.rrr()
ABA = tuple(fgd.compile(RRR, "forward", ordering="aba").ordering)
SPLIT = (
    "F[joint3].force", "A[link3].linear", "F[joint3].moment", "A[link3].angular", "a[joint3]",
    *ABA[3:],
)  # fmt: skip
AGREEMENT = 1e-10


def test_kernels_with_halves_give_the_same_answers():
    kernel = fgd.compile(RRR, "forward", ordering=SPLIT)
    assert kernel.ordering.variables == SPLIT
    q, v = RRR.random_state(0)
    tau = np.array([1.0, 2.0, 3.0])
    graph = fgd.forward_dynamics(RRR, q, v, tau, ordering=SPLIT)
    assert graph.ordering.variables == joined(SPLIT)
    assert relative_error(kernel(q, v, tau), graph.a) < AGREEMENT


def test_names_of_halves():
    assert halves("A[link.linear]") == ("A[link.linear].angular", "A[link.linear].linear")
    assert halves("a[joint]") == ("a[joint]",)
    assert whole("F[joint].force") == "F[joint]"
    assert whole("A[link.linear]") == "A[link.linear]"
    assert joined(("F[j].force", "a[j]", "F[j].moment")) == ("a[j]", "F[j]")


@pytest.mark.parametrize(
    "ordering",
    [SPLIT[1:], (*SPLIT, "F[joint3]"), (*SPLIT, "F[joint3].force"), ("a[joint3].linear", *ABA)],
    ids=["one half missing", "also whole", "twice", "no halves"],
)
def test_halves_must_be_complete(ordering):
    with pytest.raises(fgd.OrderingError, match=r"half of|not there"):
        fgd.compile(RRR, "forward", ordering=ordering)


UR5 = fgd.robots.ur5()
LISTED = (
    "A[link3]:shift.linear", "F[joint3]:shift", "A[link3]:shift.angular",
    *fgd.compile(UR5, "forward", ordering="crba").ordering,
)  # fmt: skip


def test_kernels_eliminate_steps_where_the_ordering_lists_them():
    kernel = fgd.compile(UR5, "forward", ordering=LISTED)
    assert kernel.ordering.variables == LISTED
    assert kernel.operations != fgd.compile(UR5, "forward", ordering="crba").operations
    q, v = UR5.random_state(0)
    tau = np.arange(6.0)
    graph = fgd.forward_dynamics(UR5, q, v, tau, ordering=LISTED)
    assert graph.ordering.variables == LISTED[3:]
    assert relative_error(kernel(q, v, tau), graph.a) < AGREEMENT


def test_steps_that_a_kernel_has_not_are_passed_over():
    first = UR5.joints[0].child  # the placement of a joint of the base is constant
    listed = fgd.compile(UR5, "forward", ordering=(f"A[{first}]:turn", *LISTED))
    assert listed.operations == fgd.compile(UR5, "forward", ordering=LISTED).operations


def test_names_of_steps():
    assert halves("A[link]:turn") == ("A[link]:turn.angular", "A[link]:turn.linear")
    assert step_owner("F[joint]:shift.moment") == "F[joint]"
    assert step_owner("A[link:shift]") is None
    assert whole("A[link]:shift.linear") == "A[link]:shift"
    assert joined(("F[j]:turn.force", "F[j].force", "F[j]:turn.moment", "F[j].moment")) == ("F[j]",)


@pytest.mark.parametrize(
    "steps",
    [
        ("A[tail]:turn",),
        ("a[joint3]:turn",),
        ("A[link3]:turn",) * 2,
        ("A[link3]:turn.linear",),
        ("A[link3]:roll",),
    ],
    ids=["no such link", "no such kind", "twice", "one half", "no such step"],
)
def test_steps_must_fit(steps):
    with pytest.raises(fgd.OrderingError, match=r"half of|not there|steps"):
        fgd.compile(UR5, "forward", ordering=(*steps, *LISTED[3:]))
