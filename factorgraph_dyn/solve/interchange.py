"""Graphs and orderings for people who go on in GTSAM: equations are exact there, readings have their noise.

Variables are in SI units; what makes exact equations safe there is in ``gtsam_rows``. Once a state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gtsam
import numpy as np

from factorgraph_dyn.checks import check_parts, check_positive, shown
from factorgraph_dyn.equations import LinearGraph, Variable, check_graph
from factorgraph_dyn.errors import InputError, OrderingError, check_name
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.gtsam_factors import gtsam_factor, unit_noise
from factorgraph_dyn.solve.gtsam_rows import weighed_rows

Keys = Mapping[Variable, int] | Mapping[str, int] | Callable[[Variable], int]
MOST_KEY = 2**64 - 1
ALLOWED_NOISES = (
    '"constrained" (equations are exact), "unit" (every row as it is, with a standard deviation of 1) or a positive '
    "number (with that standard deviation)"
)


def to_gtsam(
    graph: LinearGraph, *, noise: Literal["constrained", "unit"] | float = "constrained", keys: Keys | None = None
) -> gtsam.GaussianFactorGraph:
    """The graph as GTSAM factors, over variables in SI units.

    Equations of motion are exact in GTSAM as here, so that readings beside them are weighed against each other alone.
    GTSAM knows no units: of exact rows it sees entries above 1e-9, and of readings beside them what is above 1e-4 of
    their standard deviation. Exact rows are scaled for that. Where an equation, or a hundredth of a deviation for an
    unknown of a natural size, would be lost all the same in the order that GTSAM takes by itself (COLAMD), an error
    says so. Micrometres and grams in SI units are such a case.

    Args:
        graph: The equations; ``graph.with_factors(sensor.factor(state) for sensor in sensors)`` has readings, too.
        noise: Of equations that have none of their own. "constrained": none, they are exact. "unit": every row as it
            is, with a standard deviation of 1 N m, N, rad/s^2 or m/s^2, as suits square systems and EliminateQR. A
            number: with that standard deviation in the same units. Readings keep their own noise in any case.
        keys: GTSAM's key of a variable: a mapping from variables or their names, or a function of a variable, so that
            several graphs have keys of their own. By default key i is ``graph.variables[i]``.

    Raises:
        InputError: Another noise, keys that are missing or shared, or equations that GTSAM would lose.

    Examples:
        A wrench and an acceleration are read with noise; what GTSAM makes of them is what ``fgd.estimate`` does.

        >>> arm, S = fgd.robots.rrr(), fgd.sensors
        >>> q, v = np.array([0.3, -0.5, 0.8]), np.array([1.0, 0.5, -0.2])
        >>> wrench = S.ForceTorque("joint1", (0, -35, 0, 15, 0, 18), (0.5, 0.5, 0.5, 2, 2, 2))
        >>> sensors = [wrench, S.Accelerometer("link3", (7.0, 0.0, 8.5), 0.5)]
        >>> state = fgd.evaluate_state(arm, q, v)
        >>> graph = fgd.dynamics_graph(state, fgd.Known.nothing(3)).with_factors(s.factor(state) for s in sensors)
        >>> keys = {str(variable): index for index, variable in enumerate(graph.variables)}
        >>> order = fgd.gtsam_ordering(graph, fgd.choose_ordering(arm, graph, "colamd"), keys=keys)
        >>> x = fgd.to_gtsam(graph, keys=keys).optimize(order)
        >>> a = [float(x.at(keys[f"a[{name}]"])[0].round(3)) for name in arm.joint_names]
        >>> a, fgd.estimate(arm, q, v, sensors).a.round(3).tolist()
        ([-9.022, 19.098, -10.897], [-9.022, 19.098, -10.897])
    """
    key_of = _keys(check_graph(graph), keys)
    converted = gtsam.GaussianFactorGraph()
    for factor, exact in weighed_rows(graph, _checked_noise(noise)):
        mixed = gtsam.noiseModel.Diagonal.Sigmas(np.where(exact, 0.0, 1.0)) if exact.any() else None
        converted.push_back(gtsam_factor(factor, key_of, mixed or unit_noise(factor.rows)))
    return converted


def gtsam_ordering(
    graph: LinearGraph, ordering: Ordering | Sequence[str], *, keys: Keys | None = None
) -> gtsam.Ordering:
    """The ordering as GTSAM's, over the keys that ``to_gtsam`` gives.

    Args:
        graph: Whose variables are ordered.
        ordering: Names of all or some of them, first eliminated first, such as ``fgd.choose_ordering`` gives.
        keys: As for ``to_gtsam``.

    Raises:
        OrderingError: Names that are not in the graph.
        InputError: Keys that are missing or shared.

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> graph = fgd.dynamics_graph(fgd.evaluate_state(arm, [0.0], [0.0]), fgd.Known.forward(np.zeros(1)))
        >>> order = fgd.gtsam_ordering(graph, fgd.choose_ordering(arm, graph, "aba"))
        >>> [str(graph.variables[order.at(i)]) for i in range(order.size())]
        ['F[joint1]', 'A[link1]', 'a[joint1]']
    """
    key_of, converted = _keys(check_graph(graph), keys), gtsam.Ordering()
    for name in check_parts(ordering, str, "The ordering", "names of variables, such as 'F[elbow]'", OrderingError):
        check_name(name, graph.by_name, "variable", "the graph", OrderingError)
        converted.push_back(key_of[graph.by_name[name]])
    return converted


def _checked_noise(noise: object) -> float:
    """The standard deviation of equations that have none of their own."""
    if isinstance(noise, str) and noise in ("constrained", "unit"):
        return float(noise == "unit")
    if isinstance(noise, bool | str):
        raise InputError(f"The noise is {shown(noise)}; it must be {ALLOWED_NOISES}.")
    return check_positive(noise, "The noise", InputError)


def _keys(graph: LinearGraph, keys: Keys | None) -> dict[Variable, int]:
    """GTSAM's key of each variable."""
    if keys is None:
        return {variable: index for index, variable in enumerate(graph.variables)}
    if not (_takes_one(keys) if callable(keys) else isinstance(keys, Mapping)):
        raise InputError(f"keys is {shown(keys)}; give a mapping from variables or names, or a function of a variable.")
    find: Callable[[object], Any] = keys if callable(keys) else dict(keys).get  # type: ignore[assignment]
    by_key: dict[int, Variable] = {}
    for x in graph.variables:
        key = find(x) if callable(keys) or x in keys else find(str(x))
        if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key <= MOST_KEY:
            raise InputError(f"The key of {x} is {shown(key)}; every variable needs an integer from 0 to 2**64 - 1.")
        if (other := by_key.setdefault(int(key), x)) != x:
            raise InputError(f"{other} and {x} have the same key {key}; give every variable of a graph its own.")
    return {variable: key for key, variable in by_key.items()}


def _takes_one(function: Callable[..., object]) -> bool:
    """Whether a function can be called with one argument, as far as it says."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True
