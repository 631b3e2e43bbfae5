"""Orderings searched for: annealed, proved optimal where the graph is small, judged by the compiler's own count."""

from factorgraph_dyn.search.results import SearchResult
from factorgraph_dyn.search.search import search_orderings

__all__ = ["SearchResult", "search_orderings"]
