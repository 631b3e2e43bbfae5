"""What a caller gave, checked: the value as the code wants it, or an error that says what is allowed.

Takes anything; gives a typed value. Messages say what was asked, found and allowed, and what to do. Runs once a
call of a public function.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import FactorGraphDynError, InputError
from factorgraph_dyn.spatial import Floats

Thing = TypeVar("Thing")
LONGEST_SHOWN = 80  # characters of a value that a message shows
LARGEST_WORD = 2**63 - 1  # of the signed words that machine code, NumPy and files of numbers have


def shown(value: object) -> str:
    """The value as messages show it, cut where it is long."""
    try:
        text = repr(value)
    except Exception as error:  # such as a number of more digits than Python writes
        return f"a value of type {type(value).__name__} that cannot be shown ({error})"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def check_kind(
    value: object, kind: type[Thing], what: str, allowed: str, error: type[FactorGraphDynError] = InputError
) -> Thing:
    """The value, if it is of a type; ``allowed`` says what it must be and how to get one."""
    if not isinstance(value, kind):
        raise error(f"{what} is {shown(value)}; it must be {allowed}.")
    return value


def check_parts(
    values: object, kind: type[Thing], what: str, allowed: str, error: type[FactorGraphDynError] = InputError
) -> tuple[Thing, ...]:
    """The values as a tuple, if all of them are of a type; ``allowed`` says what they must be."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise error(f"{what} is {shown(values)}; it must be a sequence of {allowed}.")
    parts = tuple(values)
    for index, part in enumerate(parts):
        check_kind(part, kind, f"Entry {index} of {what}", allowed, error)
    return parts


def as_names(values: object, what: str) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (values,) if isinstance(values, str) else check_parts(values, str, what, "names")


def check_choice(value: object, choices: Iterable[str], what: str) -> str:
    """The value, if it is one of the words that are allowed."""
    words = tuple(choices)
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{what} is {shown(value)}; it must be one of: {', '.join(words)}.")
    return value


def check_count(value: object, what: str, least: int = 1, most: int = LARGEST_WORD) -> int:
    """The value as a whole number between bounds; it always fits a word of machine code."""
    allowed = f"a whole number, {f'{least} or more, below 2**63' if most == LARGEST_WORD else f'{least} to {most}'}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} is {shown(value)}; it must be {allowed}.") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise InputError(f"{what} is {shown(value)}; it must be {allowed}.")
    return number


def check_number(value: object, what: str, error: type[FactorGraphDynError] = InputError) -> float:
    """The value as a finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} is {shown(value)}; it must be a number.") from None
    if not np.isfinite(number):
        raise error(f"{what} is {number}; it must be finite.")
    return number


def check_positive(value: object, what: str, error: type[FactorGraphDynError]) -> float:
    """The value as a positive number, or an error."""
    number = check_number(value, what, error)
    if number <= 0:
        raise error(f"{what} is {number:g}; it must be positive.")
    return number


def as_array(value: npt.ArrayLike, what: str, error: type[FactorGraphDynError], of: str = "") -> npt.NDArray[Any]:
    """The value as an array of its own type, all of whose entries are there."""
    try:
        masked, array = _is_masked(value), np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # such as rows of different lengths
        raise error(f"{what} is {shown(value)}; it must be real numbers{of}.") from None
    if masked:
        raise error(
            f"{what} has masked entries, whose numbers mean nothing; fill them first, as array.filled(0.0) does."
        )
    return array


def _is_masked(value: object) -> bool:
    """Whether an entry is masked, also in lists of arrays, which lose their masks as they are joined."""
    if isinstance(value, list | tuple):
        return any(map(_is_masked, value))
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def real_numbers(value: npt.ArrayLike, what: str, error: type[FactorGraphDynError], of: str = "") -> Floats:
    """The value as an array of real numbers, nan included."""
    array = as_array(value, what, error, of)
    try:
        if array.dtype.kind == "c":
            raise TypeError("complex numbers, of which NumPy would take the real parts")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{what} is {shown(value)}; it must be real numbers{of}.") from None


def check_array(
    value: npt.ArrayLike, shape: tuple[int, ...], what: str, error: type[FactorGraphDynError] = InputError
) -> Floats:
    """The value as an array of real numbers, nan included, of one shape."""
    array = real_numbers(value, what, error, f" of shape {shape}")
    if array.shape != shape:
        raise error(f"{what} has shape {array.shape}; it must be {shape}.")
    return array


def check_finite(
    value: npt.ArrayLike, shape: tuple[int, ...], what: str, error: type[FactorGraphDynError] = InputError
) -> Floats:
    """The value as an array of finite numbers of one shape."""
    array = check_array(value, shape, what, error)
    if not np.isfinite(array).all():
        raise error(f"{what} holds values that are not finite: {array.tolist()}.")
    return array


def check_entries(value: npt.ArrayLike, size: int, what: str) -> Floats:
    """The value as real numbers, nan included, of shape (size,); one number may stand alone."""
    numbers = real_numbers(value, what, InputError)
    return check_array(numbers.reshape(1) if size == 1 and numbers.shape == () else numbers, (size,), what)


def check_apart(arrays: Iterable[object], what: str) -> None:
    """Raise an InputError where two arrays that are to be written to have memory in common."""
    places = [(k, array) for k, array in enumerate(arrays) if isinstance(array, np.ndarray)]
    for (j, first), (k, second) in combinations(places, 2):
        if np.shares_memory(first, second):
            raise InputError(
                f"Arrays {j} and {k} of {what}, of shapes {first.shape} and {second.shape}, have memory in common: one "
                "result would be written over the other. Give each an array of its own, such as np.empty(shape)."
            )


def check_mapping(value: object, what: str, allowed: str) -> None:
    """Raise an InputError unless the value is a mapping, such as a dict."""
    if not isinstance(value, Mapping):
        raise InputError(f"{what} is {shown(value)}; it must be {allowed}.")


def check_path(value: object, what: str, error: type[FactorGraphDynError] = InputError) -> Path:
    """The value as a path."""
    if not isinstance(value, str | PathLike) or not str(value):
        raise error(f"{what} is {shown(value)}; it must be a path, as text or pathlib.Path.")
    return Path(value)


def random_generator(value: object, what: str) -> np.random.Generator:
    """The generator that a seed, a generator or None stands for."""
    try:
        return np.random.default_rng(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(
            f"{what} is {shown(value)}; it must be a whole number, 0 or more, a numpy.random.Generator or None."
        ) from None
