"""Mechanisms that come with the package, each a function that builds one."""

from collections.abc import Callable

from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.robots.arms import pendulum, puma560, rrr
from factorgraph_dyn.model.robots.legged import humanoid
from factorgraph_dyn.model.robots.trees import random_tree

BUILT_IN: dict[str, Callable[[], Mechanism]] = {
    "rrr": rrr,
    "puma560": puma560,
    "pendulum": pendulum,
    "humanoid": humanoid,
}

__all__ = ["BUILT_IN", "humanoid", "pendulum", "puma560", "random_tree", "rrr"]
