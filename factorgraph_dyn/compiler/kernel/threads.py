"""Threads that share a batch: kept from call to call, and made anew in a forked process."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from threading import Event

MOST_THREADS = 1024  # that a caller may ask for: far more than cores, far fewer than systems refuse to start


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that share a batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="factorgraph_dyn")


def in_threads(run: Callable[[int], None], parts: int, stop: Event) -> None:
    """Run parts side by side; if one of them fails, or a signal comes, the others are stopped and waited for."""
    running: list[Future[None]] = []
    try:
        running.extend(thread_pool(parts).submit(run, part) for part in range(parts))
        for future in running:
            future.result()
    except BaseException:
        stop.set()
        wait(running)
        raise


# A forked process has the pools but none of their threads: it would wait for them for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)
