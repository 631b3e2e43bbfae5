"""Contacts, methods and mechanisms that cannot be answered say so in names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Contact, InputError, SingularSystemError

RRR = fgd.robots.rrr()
Q = np.array([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fgd.iwim(RRR, Q, contacts=["hand"]), "'hand' is not in.*Links or frames: base, link1, link2"),
        (lambda: fgd.iwim(RRR, Q, contacts=[Contact("hand")]), "'hand'"),
        (lambda: fgd.iwim(RRR, Q, contacts=[3]), "A contact is 3"),
        (lambda: fgd.iwim(RRR, Q, actuated=["elbow"]), "'elbow'.*joint1, joint2, joint3"),
        (lambda: fgd.iwim(RRR, Q, actuated=["joint1", "joint1"]), "'joint1' is named twice"),
        (lambda: fgd.iwim(RRR, Q, actuated=[]), "No inputs.*joint1, joint2, joint3"),
        (lambda: fgd.iwim(RRR, Q, method="magic"), "'magic'.*columns, iim, eufm, carpentier"),
        (lambda: fgd.inverse_mass_matrix(RRR, Q, method="magic"), "'magic'.*columns"),
        (lambda: fgd.mass_matrix(RRR, Q, method="magic"), "'magic'.*columns, crba"),
        (lambda: fgd.iwim(RRR, Q[:2]), "q has shape"),
        (lambda: Contact("link1", (0, 0, np.nan)), "point of the contact on 'link1' holds values that are not finite"),
        (lambda: Contact("link1", (0, 0)), "shape"),
        (lambda: Contact("link1", "abc"), "must be real numbers"),
        (lambda: Contact("link1", kind="push"), "'push'.*force, wrench"),
        (lambda: Contact("link1", axes="mine"), "'mine'.*local, world"),
        (lambda: Contact("link1", directions=[(0, 0, np.inf)]), "not finite"),
        (lambda: Contact("link1", directions=[(0, 0, 0)]), "zero row"),
        (lambda: Contact("link1", directions=np.zeros((0, 3))), "rows of 3 numbers"),
        (lambda: Contact("link1", kind="wrench", directions=np.eye(3)), "rows of 6 numbers"),
    ],
)
def test_messages_name_what_was_asked_and_allowed(build, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        build()


@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
def test_massless_tips_are_named(method):
    *links, tip = RRR.links
    massless = replace(RRR, links=(*links, fgd.Link(tip.name)))
    with pytest.raises(SingularSystemError, match="joint3"):
        fgd.iwim(massless, Q, actuated=["joint1"], method=method)
    with pytest.raises(SingularSystemError, match="joint3"):
        fgd.inverse_mass_matrix(massless, Q, method=method)


def test_massless_tips_have_no_operators():
    *links, tip = RRR.links
    massless = replace(RRR, links=(*links, fgd.Link(tip.name)))
    with pytest.raises(SingularSystemError, match="joint3"):
        fgd.spatial_operators(massless, Q)
    with pytest.raises(SingularSystemError, match="joint3"):
        fgd.log_determinant(massless, Q)


def test_inertias_that_no_body_has_are_refused():
    *links, tip = RRR.links
    odd = replace(RRR, links=(*links, fgd.Link(tip.name, 0.0, tip.com, -np.eye(3))))
    with pytest.raises(SingularSystemError, match="not positive definite"):
        fgd.iwim(odd, Q)


def test_open_loops_are_refused():
    five_bar = fgd.robots.five_bar()
    with pytest.raises(fgd.ClosureError):
        fgd.iwim(five_bar, five_bar.neutral() + 0.1 * np.arange(five_bar.nq))


def test_loops_that_leave_a_massless_link_loose_are_refused():
    five_bar = fgd.robots.five_bar()
    loose = fgd.Joint("loose", "revolute", five_bar.link_names[-1], "pointer", axis=(1, 0, 0))
    mechanism = replace(five_bar, links=(*five_bar.links, fgd.Link("pointer")), joints=(*five_bar.joints, loose))
    q, _ = mechanism.random_state(0)
    with pytest.raises(SingularSystemError, match="loose"):
        fgd.iwim(mechanism, q)
