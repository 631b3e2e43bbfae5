"""Halves of variables: a kernel may eliminate the angular part of a link's acceleration apart from the linear.

    A[link]    A[link].angular, A[link].linear
    F[joint]   F[joint].moment, F[joint].force

An ordering lists a variable whole, or both of its halves. GTSAM's variables are whole: there a variable is
eliminated where its second half stands. The work runs once an ordering.
"""

from __future__ import annotations

from collections.abc import Iterable

from factorgraph_dyn.equations import LinearGraph

HALVES = {"A": ("angular", "linear"), "F": ("moment", "force")}


def whole(name: str) -> str:
    """The variable that a name, whole or half, is of."""
    return name.rpartition(".")[0] if half_index(name) is not None else name


def half_index(name: str) -> int | None:
    """0 or 1 for the first or second half of a variable, None for a whole one."""
    variable, _, part = name.rpartition(".")
    names = HALVES.get(variable[:1], ())
    return names.index(part) if part in names and variable.endswith("]") else None


def halves(name: str) -> tuple[str, ...]:
    """The names of the halves of a whole variable; the name itself where it has none or is a half."""
    if name[0] not in HALVES or half_index(name) is not None:
        return (name,)
    return tuple(f"{name}.{part}" for part in HALVES[name[0]])


def joined(names: Iterable[str]) -> tuple[str, ...]:
    """The ordering with whole variables only, each where its last half stands."""
    listed = tuple(names)
    last = {whole(name): k for k, name in enumerate(listed)}
    return tuple(whole(name) for k, name in enumerate(listed) if half_index(name) is None or last[whole(name)] == k)


def columns(name: str, graph: LinearGraph) -> tuple[int, ...]:
    """The columns of a variable or half in the stacked vector of a graph's unknowns."""
    part = graph.column_slices[graph.by_name[whole(name)]]
    everything = tuple(range(part.start, part.stop))
    index = half_index(name)
    middle = len(everything) // 2
    return everything if index is None else (everything[:middle], everything[middle:])[index]
