"""The ordering laboratory: orderings compared, and searched for."""

from factorgraph_dyn.lab.compare import compare_orderings
from factorgraph_dyn.lab.cost import OrderingCost, ordering_cost
from factorgraph_dyn.lab.results import SearchResult
from factorgraph_dyn.lab.search import search_orderings

__all__ = ["OrderingCost", "SearchResult", "compare_orderings", "ordering_cost", "search_orderings"]
