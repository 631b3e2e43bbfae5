"""An ordering: the sequence in which variables are eliminated, and so the algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from factorgraph_dyn.equations import LinearGraph, Variable
from factorgraph_dyn.errors import OrderingError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import classical, general, saved

CLASSICAL: dict[str, Callable[[Mechanism], Iterator[str]]] = {
    "rnea": classical.rnea,
    "aba": classical.aba,
    "crba": classical.crba,
}
GENERAL: dict[str, Callable[[LinearGraph], Sequence[Variable]]] = {
    "colamd": general.colamd,
    "metis": general.metis,
    "min_degree": general.min_degree,
    "min_fill": general.min_fill,
    "natural": general.natural,
}
ORDERING_NAMES = (*CLASSICAL, *GENERAL)


@dataclass(frozen=True)
class Ordering:
    """Names of variables, first eliminated first, and what the ordering is called."""

    name: str
    variables: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)


OrderingLike = str | Ordering | Sequence[str]


def choose_ordering(mechanism: Mechanism, graph: LinearGraph, ordering: OrderingLike) -> Ordering:
    """The ordering of a graph's variables that a name or the user's own sequence stands for.

    Raises:
        OrderingError: An unknown name, an algorithm that does not fit the problem, or a sequence that
            misses, repeats or invents variables.
    """
    if isinstance(ordering, str):
        if saved.is_saved(ordering):
            return _saved(mechanism, graph, ordering)
        if ordering in CLASSICAL:
            return _classical(mechanism, graph.variables, ordering)
        if ordering in GENERAL:
            return Ordering(ordering, tuple(str(variable) for variable in GENERAL[ordering](graph)))
        raise OrderingError(
            f"There is no ordering {ordering!r}. Orderings: {', '.join(ORDERING_NAMES)}, search (the best one "
            "saved), the path of a results file (.json), or a sequence of variable names such as ['F[elbow]', 'A[forearm]', 'a[elbow]']."
        )
    name = str(getattr(ordering, "name", "custom"))
    chosen = Ordering(name, tuple(str(variable) for variable in ordering))
    _check_permutation(graph, chosen)
    return chosen


def _saved(mechanism: Mechanism, graph: LinearGraph, word: str) -> Ordering:
    """The best ordering that searches have saved, or the one in a results file."""
    if word == saved.BEST:
        found = saved.best(mechanism.fingerprint, mechanism.name, graph.by_name)
    else:
        found = saved.read(Path(word))
        saved.check_mechanism(found, mechanism.fingerprint, mechanism.name, Path(word))
    chosen = Ordering(saved.BEST, found.variables)
    _check_permutation(graph, chosen)
    return chosen


@lru_cache(maxsize=256)
def _classical(mechanism: Mechanism, variables: tuple[Variable, ...], name: str) -> Ordering:
    if name == "rnea":
        unknown = [v.owner for v in variables if v.kind == "a" and v.owner in mechanism.joint_by_name]
        if unknown:
            raise OrderingError(
                f"The rnea ordering needs every joint acceleration; {len(unknown)} are unknown. "
                f"Unknown here: {', '.join(unknown)}. Use it for inverse dynamics, or take another ordering "
                "(aba, crba, colamd, metis, min_degree, min_fill, natural)."
            )
    names = {str(variable) for variable in variables}
    return Ordering(name, tuple(variable for variable in CLASSICAL[name](mechanism) if variable in names))


def _check_permutation(graph: LinearGraph, ordering: Ordering) -> None:
    counts = Counter(ordering.variables)
    faults = []
    if unknown := [name for name in counts if name not in graph.by_name]:
        faults.append(f"names variables that are not there: {', '.join(unknown)}")
    if repeated := [name for name, count in counts.items() if count > 1]:
        faults.append(f"repeats {', '.join(repeated)}")
    if missing := [name for name in graph.by_name if name not in counts]:
        faults.append(f"misses {', '.join(missing)}")
    if faults:
        raise OrderingError(
            f"The ordering {ordering.name!r} {'; '.join(faults)}. The variables of this problem are: "
            f"{', '.join(graph.by_name)}.",
            ordering=ordering,
        )
