"""Every error of the package. Messages say what was asked, found and allowed, and what to do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import FrozenInstanceError, fields
from typing import Any, NoReturn, TypeVar

from factorgraph_dyn.text import printable

__all__ = [
    "ClosureError",
    "CompileError",
    "DoubtfulInputWarning",
    "FactorGraphDynError",
    "FrozenError",
    "InputError",
    "ModelError",
    "NearSingularWarning",
    "OrderingError",
    "ResidualError",
    "SingularSystemError",
    "UnmodelledWarning",
    "check_name",
    "says_how_to_change",
]

Class = TypeVar("Class", bound=type[Any])
LONGEST = 10_000  # characters of a message


class FactorGraphDynError(Exception):
    """Base class of every error the package raises.

    Messages hold words of files: characters that act on terminals are shown as their escapes, and what is too long to
    be read is cut.

    Attributes:
        details: What failed, for programs: a graph, an ordering, a residual, by name.
    """

    def __init__(self, message: str, **details: Any) -> None:
        cut = len(message) - LONGEST
        super().__init__(printable(message if cut <= 0 else f"{message[:LONGEST]}... ({cut} characters more)"))
        self.details = details

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries; details may hold what cannot.
        return (type(self), (str(self),))


class ModelError(FactorGraphDynError):
    """A mechanism description that cannot be a mechanism."""


class FrozenError(ModelError, FrozenInstanceError):
    """A value assigned to a part or mechanism, which never change."""


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


class DoubtfulInputWarning(UserWarning):
    """Input that is allowed and hardly meant, such as angles in degrees, or a motion that lacks a motor."""


class NearSingularWarning(UserWarning):
    """An answer close to a singular configuration: correct, but large and sensitive to the state."""


class UnmodelledWarning(UserWarning):
    """A motion that does what is not modelled: a joint leaves its limits, or reverses under Coulomb friction."""


def check_name(name: object, allowed: Collection[str], noun: str, where: str, error: type[FactorGraphDynError]) -> None:
    """Raise ``error`` unless ``name`` is one of the allowed names, which the message lists."""
    if not isinstance(name, str) or name not in allowed:
        listing = ", ".join(allowed) if allowed else "none"
        nouns = " or ".join(f"{word}s" for word in noun.split(" or "))
        raise error(f"{noun.capitalize()} {name!r} is not in {where}. {nouns.capitalize()}: {listing}.")


def says_how_to_change(cls: Class) -> Class:
    """Make a frozen dataclass say, where a field is assigned to, how to get one that differs."""

    def refuse(self: Any, name: str, *value: object) -> NoReturn:
        kind, named = type(self).__name__, getattr(self, "name", "?")
        known = [item.name for item in fields(self)]
        field = name if name in known else known[0]
        raise FrozenError(
            f"{kind} {named!r} never changes, and {name!r} cannot be set. Make another one: "
            f"dataclasses.replace({kind.lower()}, {field}=...)."
        )

    for method in ("__setattr__", "__delattr__"):
        setattr(cls, method, refuse)
    return cls
