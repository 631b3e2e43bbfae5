"""An executor of plain child processes that need no guard in the user's script.

Takes functions and arguments that can be pickled; gives futures. Each thread of a pool speaks with one Python
process of its own through pipes. Unlike multiprocessing's, these processes never import the user's main
module, so that a script without ``if __name__ == "__main__"`` works, and they do not hear Ctrl-C.

The work runs once a search: about half a second to start.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_SERVE = "from factorgraph_dyn.search.processes import serve; serve()"


class ProcessExecutor(ThreadPoolExecutor):
    """Runs functions in child processes; an executor like those of ``concurrent.futures``."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, thread_name_prefix="factorgraph_dyn.search")
        self._here = threading.local()
        self._children: list[subprocess.Popen[bytes]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a function in a child process."""
        return super().submit(self._remote, fn, args, kwargs)

    def stop(self) -> None:
        """End all children at once; what they were doing is lost."""
        for child in self._children:
            child.kill()
        self.shutdown(wait=True, cancel_futures=True)
        for child in self._children:
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def _remote(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        child: Any = getattr(self._here, "child", None)  # its pipes are there, whatever Popen's type says
        if child is None or child.poll() is not None:
            child = self._here.child = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            self._children.append(child)
        try:
            pickle.dump((fn, args, kwargs), child.stdin)
            child.stdin.flush()
            succeeded, value = pickle.load(child.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            raise RuntimeError(f"A worker process of the search ended early ({error}).") from error
        if not succeeded:
            raise value
        return value


def serve() -> None:
    """Answer requests on standard input until it closes."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints must not mix with the answers
    while True:
        try:
            fn, args, kwargs = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = (True, fn(*args, **kwargs))
        except Exception as error:  # it is the caller's to handle
            answer = (False, error)
        pickle.dump(answer, answers)
        answers.flush()
