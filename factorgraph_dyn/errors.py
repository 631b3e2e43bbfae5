"""Every error of the package. Messages say what was asked, found and allowed, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
    "ClosureError",
    "CompileError",
    "FactorGraphDynError",
    "InputError",
    "ModelError",
    "NearSingularWarning",
    "OrderingError",
    "ResidualError",
    "SingularSystemError",
    "check_name",
]


class FactorGraphDynError(Exception):
    """Base class of every error the package raises.

    Attributes:
        details: What failed, for programs: a graph, an ordering, a residual, by name.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries; details may hold what cannot.
        return (type(self), (str(self),))


class ModelError(FactorGraphDynError):
    """A mechanism description that cannot be a mechanism."""


class InputError(FactorGraphDynError):
    """A state, input or option with a wrong shape, value or name."""


class OrderingError(FactorGraphDynError):
    """An ordering that does not fit its graph."""


class SingularSystemError(FactorGraphDynError):
    """A system whose equations leave some variables undetermined."""


class ResidualError(FactorGraphDynError):
    """An answer that does not satisfy its equations."""


class ClosureError(FactorGraphDynError):
    """A state off the closure of a loop or coupling, or a loop that cannot be closed."""


class CompileError(FactorGraphDynError):
    """A problem or ordering that cannot be compiled."""


class NearSingularWarning(UserWarning):
    """An answer close to a singular configuration: correct, but large and sensitive to the state."""


def check_name(name: object, allowed: Iterable[str], noun: str, where: str, error: type[FactorGraphDynError]) -> None:
    """Raise ``error`` unless ``name`` is one of the allowed names, which the message lists."""
    names = list(allowed)
    if not isinstance(name, str) or name not in names:
        listing = ", ".join(names) if names else "none"
        nouns = " or ".join(f"{word}s" for word in noun.split(" or "))
        raise error(f"{noun.capitalize()} {name!r} is not in {where}. {nouns.capitalize()}: {listing}.")
