"""Times that can be trusted: the best of several runs after a warm-up."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def best_of(work: Callable[[], object], repeats: int, budget: float = 2.0) -> float:
    """The shortest of several runs after a warm-up, s; stops when the budget (s) is used up."""
    work()
    best, start = np.inf, time.perf_counter()
    for _ in range(max(repeats, 1)):
        begin = time.perf_counter()
        work()
        end = time.perf_counter()
        best = min(best, end - begin)
        if end - start > budget:
            break
    return best
