"""Where rollouts start and what drives them; the numbers of a mechanism that every rollout has its own of.

Takes what a user gives, words of ``compile(parameters=...)`` with arrays; gives one row of numbers a rollout, in the
order in which the forward kernel takes them:

    "all" (..., links, 10)   a link's name (..., 10)   damping[elbow] and its like (..., freedoms)   gravity (..., 3)

Here arrays are checked and laid out, once a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_mapping, real_numbers
from factorgraph_dyn.equations.free import free_parameters
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import shape_of, split_name
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parameters import ALL, COUNT, parameter_links
from factorgraph_dyn.spatial import Array, Floats


class Starts(NamedTuple):
    """Where rollouts start and what drives them.

    Attributes:
        q, v: Shapes (count, nq) and (count, nv).
        tau: Torques of every step, shape (count, steps, nv).
        parameters: What the kernel takes after tau, one after the other, shape (count, numbers).
    """

    q: Floats
    v: Floats
    tau: Floats
    parameters: Floats

    def part(self, which: slice) -> Starts:
        """Some of the rollouts."""
        return Starts(*(array[which] for array in self))

    def arguments(self, k: int, problem: Problem, mechanism: Mechanism) -> list[Floats]:
        """What the kernel of a problem takes after tau, in rollout k."""
        return numbers_apart(self.parameters[k], problem, mechanism)


def numbers_apart(row: Array, problem: Problem, mechanism: Mechanism) -> list[Array]:
    """What the kernel of a problem takes after tau, from all of its numbers one after the other."""
    shapes = [problem.shape_of(mechanism, name) for name in problem.free.arguments]
    ends = np.cumsum([prod(shape) for shape in shapes])
    parts = np.split(row, ends[:-1]) if shapes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


class Given(NamedTuple):
    """A word, its array and the shape that it has for one rollout."""

    word: str
    values: Floats
    shape: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.values.shape[: self.values.ndim - len(self.shape)]


def check_given(mechanism: Mechanism, parameters: Mapping[str, npt.ArrayLike]) -> list[Given]:
    """The arrays by their words, links first as kernels have them.

    Raises:
        InputError: A word that names nothing, a wrong shape, or numbers that are not finite.
    """
    check_mapping(parameters, "parameters", 'a dict, such as {"link3": array of shape (..., 10), "gravity": (..., 3)}')
    free = free_parameters(mechanism, tuple(parameters))
    found = [_checked(mechanism, word, values) for word, values in parameters.items()]
    return sorted(found, key=lambda given: given.word in free.others)


def friction_given(mechanism: Mechanism, given: list[Given], batch: tuple[int, ...]) -> dict[str, Floats]:
    """The friction of the joints that rollouts have their own of, shape (count, freedoms) each."""
    named = ((*split_name(each.word), each) for each in given)
    return {
        joint: np.broadcast_to(each.values, (*batch, *each.shape)).reshape(prod(batch), prod(each.shape))
        for kind, joint, each in named
        if kind == "friction"
    }


def as_rows(given: list[Given], batch: tuple[int, ...]) -> Floats:
    """One row of numbers for every rollout; where all share theirs, it is one in memory."""
    count = prod(batch)
    if all(prod(each.axes) == 1 for each in given):
        row = np.concatenate([np.zeros(0), *(each.values.reshape(-1) for each in given)])
        return np.broadcast_to(row, (count, len(row)))
    wide = (np.broadcast_to(each.values, (*batch, *each.shape)).reshape(count, prod(each.shape)) for each in given)
    return np.concatenate(list(wide), axis=1)


def _checked(mechanism: Mechanism, word: str, values: npt.ArrayLike) -> Given:
    array, shape = real_numbers(values, f"parameters[{word!r}]", InputError), _shape(mechanism, word)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        raise InputError(
            f"parameters[{word!r}] has shape {array.shape}; it must be (..., {', '.join(map(str, shape))}), with "
            "leading axes that broadcast with those of q0, v0 and tau."
        )
    if not np.isfinite(array).all():
        raise InputError(f"parameters[{word!r}] holds values that are not finite.")
    return Given(word, array, shape)


def _shape(mechanism: Mechanism, word: str) -> tuple[int, ...]:
    """The shape of what a word names, of one rollout."""
    if word in mechanism.link_by_name:
        return (COUNT,)
    return (len(parameter_links(mechanism)), COUNT) if word == ALL else shape_of(mechanism, word)
