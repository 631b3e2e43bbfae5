"""A description becomes a frozen, validated ``Mechanism``; states, GTSAM and orderings are unknown here."""

from factorgraph_dyn.model import robots
from factorgraph_dyn.model.mechanism import Mechanism, check_mechanism, check_movable
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link, Loop
from factorgraph_dyn.model.visuals import Visual

__all__ = [
    "Coupling",
    "Frame",
    "Joint",
    "Link",
    "Loop",
    "Mechanism",
    "Visual",
    "check_mechanism",
    "check_movable",
    "robots",
]
