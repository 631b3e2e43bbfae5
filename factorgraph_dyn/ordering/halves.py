"""Parts of variables that kernels may eliminate by themselves: halves, and the steps inside a joint.

    A[link]    A[link].angular, A[link].linear     halves: angular and linear part of an acceleration,
    F[joint]   F[joint].moment, F[joint].force     moment and force of a wrench
    A[link]    A[link]:shift, A[link]:turn         steps: the same on the way from the parent to the link,
    F[joint]   F[joint]:shift, F[joint]:turn       where its placement shifts and turns; these have halves, too

An ordering lists a variable whole, or both of its halves. Steps need not be listed: the compiler puts those that
are not where they belong, and passes over those that a kernel has not. GTSAM's variables are whole and know no
steps: there a variable is eliminated where its second half stands. The work runs once an ordering.
"""

from __future__ import annotations

from collections.abc import Iterable

from factorgraph_dyn.equations import LinearGraph

HALVES = {"A": ("angular", "linear"), "F": ("moment", "force")}
STEPS = ("shift", "turn")


def whole(name: str) -> str:
    """The variable or step that a name, whole or half, is of."""
    return name.rpartition(".")[0] if half_index(name) is not None else name


def half_index(name: str) -> int | None:
    """0 or 1 for the first or second half of a variable, None for a whole one."""
    variable, _, part = name.rpartition(".")
    names = HALVES.get(variable[:1], ())
    return names.index(part) if part in names and _without_step(variable).endswith("]") else None


def halves(name: str) -> tuple[str, ...]:
    """The names of the halves of a whole variable; the name itself where it has none or is a half."""
    if name[0] not in HALVES or half_index(name) is not None:
        return (name,)
    return tuple(f"{name}.{part}" for part in HALVES[name[0]])


def step_owner(name: str) -> str | None:
    """The variable that a step, or half of one, is on the way to; None for what is no step."""
    step = whole(name)
    variable = _without_step(step)
    return variable if variable != step and variable[:1] in HALVES else None


def joined(names: Iterable[str]) -> tuple[str, ...]:
    """The ordering with whole variables only, each where its last half stands, and without steps."""
    listed = tuple(name for name in names if step_owner(name) is None)
    last = {whole(name): k for k, name in enumerate(listed)}
    return tuple(whole(name) for k, name in enumerate(listed) if half_index(name) is None or last[whole(name)] == k)


def columns(name: str, graph: LinearGraph) -> tuple[int, ...]:
    """The columns of a variable or half in the stacked vector of a graph's unknowns."""
    part = graph.column_slices[graph.by_name[whole(name)]]
    everything = tuple(range(part.start, part.stop))
    index = half_index(name)
    middle = len(everything) // 2
    return everything if index is None else (everything[:middle], everything[middle:])[index]


def _without_step(name: str) -> str:
    variable, _, part = name.rpartition(":")
    return variable if part in STEPS and variable.endswith("]") else name
