"""Orderings and engines side by side: costs, times, errors, the papers' tables."""

from factorgraph_dyn.compare.cost import OrderingCost, ordering_cost
from factorgraph_dyn.compare.orderings import compare_orderings

__all__ = ["OrderingCost", "compare_orderings", "ordering_cost"]
