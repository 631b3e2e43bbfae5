"""Threads that share a batch: kept from call to call, and made anew in a forked process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that share a batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="factorgraph_dyn")


# A forked process has the pools but none of their threads: it would wait for them for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)
