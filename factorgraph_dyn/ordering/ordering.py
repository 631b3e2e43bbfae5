"""An ordering: the sequence in which variables are eliminated, and so the algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from factorgraph_dyn.checks import check_parts
from factorgraph_dyn.equations import LinearGraph, Variable, check_graph
from factorgraph_dyn.errors import OrderingError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.ordering import classical, general, saved
from factorgraph_dyn.ordering import halves as halving

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
OFFER = (
    f" Orderings: {', '.join(ORDERING_NAMES)}, search (the best one saved), auto (of kernels: the cheapest), the path "
    "of a results file (.json), or a sequence of variable names such as ['F[elbow]', 'A[forearm]', 'a[elbow]']."
)


@dataclass(frozen=True)
class Ordering:
    """Names of variables, first eliminated first, and what the ordering is called.

    Examples:
        >>> fgd.Ordering("mine", ("F[joint1]", "A[link1]", "a[joint1]"))
        <Ordering 'mine' of 3 variables: F[joint1], A[link1], a[joint1]>
    """

    name: str
    variables: tuple[str, ...]

    def __post_init__(self) -> None:
        allowed = "names of variables, such as 'F[elbow]'"
        object.__setattr__(self, "variables", check_parts(self.variables, str, "variables", allowed, OrderingError))

    def __repr__(self) -> str:
        first = ", ".join(self.variables[:3])
        return f"<Ordering {self.name!r} of {len(self)} variables: {first}{', ...' if len(self) > 3 else ''}>"

    @property
    def key(self) -> str:
        """Text that differs wherever two orderings do; what people read is shorter."""
        return repr((self.name, self.variables))

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)


OrderingLike = str | Ordering | Sequence[str]


def choose_ordering(
    mechanism: Mechanism, graph: LinearGraph, ordering: OrderingLike, *, halves: bool = False
) -> Ordering:
    """The ordering of a graph's variables that a name or the user's own sequence stands for.

    Args:
        mechanism: The mechanism.
        graph: Whose variables are ordered.
        ordering: A name, "search", a results file, or names of variables, of their halves and of steps.
        halves: Whether halves may stand apart and steps be listed, as in kernels; variables are whole otherwise.

    Raises:
        OrderingError: An unknown name, an algorithm that does not fit the problem, or a sequence that
            misses, repeats or invents variables.

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> graph = fgd.dynamics_graph(fgd.evaluate_state(arm, [0.0], [0.0]), fgd.Known.forward(np.zeros(1)))
        >>> [str(variable) for variable in fgd.choose_ordering(arm, graph, "aba")]
        ['F[joint1]', 'A[link1]', 'a[joint1]']
    """
    check_mechanism(mechanism)
    check_graph(graph)
    if isinstance(ordering, str):
        if saved.is_saved(ordering):
            return _checked(graph, _saved(mechanism, graph, ordering), halves)
        if ordering in CLASSICAL:
            return _classical(mechanism, graph.variables, ordering)
        if ordering in GENERAL:
            return Ordering(ordering, tuple(str(variable) for variable in GENERAL[ordering](graph)))
        raise OrderingError(f"There is no ordering {ordering!r}.{OFFER}")
    if not isinstance(ordering, Iterable):
        raise OrderingError(f"The ordering is {ordering!r}; give a name or a sequence of variable names.{OFFER}")
    name = str(getattr(ordering, "name", "custom"))
    return _checked(graph, Ordering(name, tuple(str(variable) for variable in ordering)), halves)


def _checked(graph: LinearGraph, ordering: Ordering, halves: bool) -> Ordering:
    """The ordering, if it lists every variable once; whole variables unless halves may stand apart."""
    by_name = graph.by_name
    if len(ordering.variables) == len(by_name) and all(name in by_name for name in ordering.variables):
        _check_permutation(graph, ordering)
        return ordering
    single = Counter(ordering.variables)
    split = {halving.whole(name) for name in single if halving.half_index(name) is not None}
    incomplete = [name for name in split if any(single[half] != 1 for half in halving.halves(name)) or single[name]]
    if incomplete:
        raise OrderingError(
            f"The ordering {ordering.name!r} names a half of {', '.join(sorted(incomplete))}; it must list the "
            "variable whole, or both of its halves once.",
            ordering=ordering,
        )
    joined = Ordering(ordering.name, halving.joined(ordering.variables))
    _check_permutation(graph, joined)
    _check_steps(graph, ordering)
    return ordering if halves else joined


def _check_steps(graph: LinearGraph, ordering: Ordering) -> None:
    """Raise unless the steps that an ordering lists belong to variables of the graph and stand there once."""
    steps = Counter(name for name in ordering.variables if halving.step_owner(name))
    wrong = [name for name, count in steps.items() if count > 1 or halving.step_owner(name) not in graph.by_name]
    if wrong:
        raise OrderingError(
            f"The ordering {ordering.name!r} names the steps {', '.join(wrong)}; a step, such as 'A[forearm]:turn', "
            "belongs to a variable of the problem and is listed once or not at all.",
            ordering=ordering,
        )


def _saved(mechanism: Mechanism, graph: LinearGraph, word: str) -> Ordering:
    """The best ordering that searches have saved, or the one in a results file."""
    if word == saved.BEST:
        found = saved.best(mechanism.fingerprint, mechanism.name, graph.by_name)
    else:
        found = saved.read(Path(word))
        saved.check_found_for(found, mechanism.fingerprint, mechanism.name, Path(word))
    return Ordering(saved.BEST, found.variables)


@kept_with_first
def _classical(mechanism: Mechanism, variables: tuple[Variable, ...], name: str) -> Ordering:
    if name == "rnea":
        unknown = [v.owner for v in variables if v.kind == "a" and v.owner in mechanism.joint_by_name]
        if unknown:
            raise OrderingError(
                f"The rnea ordering needs every joint acceleration; unknown ones: {len(unknown)}. "
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
