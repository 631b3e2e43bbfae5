"""The ordering laboratory: orderings compared, and searched for."""

from factorgraph_dyn.lab.compare import compare_orderings

__all__ = ["compare_orderings"]
