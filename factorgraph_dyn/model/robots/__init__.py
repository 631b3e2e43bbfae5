"""Mechanisms that come with the package, each a function that builds one."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn

from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.robots.classic_arms import pendulum, puma560, rrr
from factorgraph_dyn.model.robots.legged import humanoid
from factorgraph_dyn.model.robots.linkages import delta, five_bar, four_bar, four_bar_chain, stewart
from factorgraph_dyn.model.robots.modern_arms import general_6r, panda, ur5
from factorgraph_dyn.model.robots.trees import random_tree

BUILT_IN: dict[str, Callable[[], Mechanism]] = {
    "rrr": rrr,
    "puma560": puma560,
    "ur5": ur5,
    "panda": panda,
    "general_6r": general_6r,
    "pendulum": pendulum,
    "humanoid": humanoid,
    "four_bar": four_bar,
    "five_bar": five_bar,
    "four_bar_chain": four_bar_chain,
    "stewart": stewart,
    "delta": delta,
}

ALIKE = 0.5  # how much of its letters a name shares with one that may be meant


def __getattr__(name: str) -> NoReturn:
    meant = get_close_matches(name, [*BUILT_IN, "random_tree"], 1, ALIKE)
    guess = f" Did you mean robots.{meant[0]}()?" if meant else ""
    raise AttributeError(f"There is no robot {name!r}.{guess} Robots: {', '.join(BUILT_IN)}, random_tree.", name=name)


__all__ = [
    "BUILT_IN",
    "delta",
    "five_bar",
    "four_bar",
    "four_bar_chain",
    "general_6r",
    "humanoid",
    "panda",
    "pendulum",
    "puma560",
    "random_tree",
    "rrr",
    "stewart",
    "ur5",
]
