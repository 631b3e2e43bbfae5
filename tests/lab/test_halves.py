"""Halves of variables: apart in kernels, joined for GTSAM, refused where one is missing."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.ordering.halves import halves, joined, whole
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
