"""The structure of a graph becomes an ordering; matrix entries are unknown here."""

from factorgraph_dyn.ordering.ordering import (
    OFFER,
    ORDERING_NAMES,
    Ordering,
    OrderingLike,
    choose_ordering,
)
from factorgraph_dyn.ordering.structure import Structure, eliminate_structure

__all__ = [
    "OFFER",
    "ORDERING_NAMES",
    "Ordering",
    "OrderingLike",
    "Structure",
    "choose_ordering",
    "eliminate_structure",
]
