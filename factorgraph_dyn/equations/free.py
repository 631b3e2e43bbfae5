"""Which numbers of a mechanism are arguments of a kernel instead of constants.

    words of a user                      arguments
    link names, or "all"                 parameters, shape (links, 10): a row for each link (``model/parameters``)
    armature[joint], damping[joint],     of the same names, shape (freedoms of the joint,)
    friction[joint]
    gravity                              gravity, shape (3,)

Takes the words; gives a checked `Free`. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.checks import as_names
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parameters import ALL, parameter_links

PARAMETERS, GRAVITY = "parameters", "gravity"
EFFECTS = ("armature", "damping", "friction")  # of joints; springs stay as they are


@dataclass(frozen=True)
class Free:
    """What is free.

    Attributes:
        links: Links whose inertial parameters are, in the order of the argument's rows.
        others: Names of what else is, each an argument of its own.
    """

    links: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return (*([PARAMETERS] if self.links else []), *self.others)


NOTHING_FREE = Free()


def free_parameters(mechanism: Mechanism, words: str | Sequence[str]) -> Free:
    """What a user's words name.

    Raises:
        InputError: A word that names nothing, or something twice.
    """
    links: list[str] = []
    others: list[str] = []
    for word in as_names(words, "parameters"):
        if word == ALL and word not in mechanism.link_by_name:
            links += parameter_links(mechanism)
        elif word in mechanism.link_by_name:
            links += parameter_links(mechanism, [word])
        else:
            others.append(_other(mechanism, word))
    for name in (*links, *others):
        if (links + others).count(name) > 1:
            raise InputError(f"parameters names {name!r} twice; name each link and parameter once.")
    return Free(tuple(links), tuple(others))


def _other(mechanism: Mechanism, word: str) -> str:
    kind, owner = split_name(word)
    if word == GRAVITY or (kind in EFFECTS and owner in mechanism.joint_names):
        return word
    raise InputError(
        f"There is no parameter {word!r}. Parameters: the links {', '.join(parameter_links(mechanism))} (or 'all'), "
        f"{', '.join(f'{effect}[joint]' for effect in EFFECTS)} for the joints {', '.join(mechanism.joint_names)}, "
        f"and {GRAVITY}."
    )
