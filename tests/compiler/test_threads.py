"""Threads that share a batch, in the process that made them and in one forked from it."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import factorgraph_dyn as fgd

PATIENCE = 30.0  # s; the child needs milliseconds


def shared_kernel():
    q, v, tau = np.random.default_rng(0).normal(size=(3, 8, 3))
    return fgd.compile(fgd.robots.rrr(), "forward")(q, v, tau, threads=2)


def shared_rollout():
    q, v = np.random.default_rng(0).normal(size=(2, 8, 3))
    return fgd.rollout(fgd.robots.rrr(), q, v, np.zeros((8, 5, 3)), 1e-3, threads=2)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("compute", [shared_kernel, shared_rollout])
def test_a_forked_process_has_threads_of_its_own(compute):
    expected = compute()  # the pool now has threads, which a fork leaves behind
    fork = multiprocessing.get_context("fork")
    answers, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: theirs.send(compute()))
    child.start()
    try:
        assert answers.poll(PATIENCE), "the forked process hangs"
        np.testing.assert_array_equal(answers.recv(), expected)
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_may_be_written_over_arguments_of_other_threads(threads):
    kernel = fgd.compile(fgd.robots.rrr(), "forward")
    q, v, tau = np.random.default_rng(0).normal(size=(3, 40, 3))
    expected = kernel(q, v, tau)
    later, turned = np.concatenate([tau, np.zeros((1, 3))]), tau.copy()
    kernel(q, v, later[:-1], out=later[1:], threads=threads)
    np.testing.assert_array_equal(later[1:], expected)
    kernel(q, v, turned, out=turned[::-1], threads=threads)
    np.testing.assert_array_equal(turned[::-1], expected)


FORKS = """
import os, signal, sys, threading, time
import numpy as np
import factorgraph_dyn as fgd

os.environ["FACTORGRAPH_DYN_CACHE"] = "off"
x = np.linspace(0.1, 0.7, 3)
answer = lambda: fgd.compile(fgd.robots.rrr(), "forward", ordering="aba")(x, x, x)
expected, over = answer(), threading.Event()

def compile_on():
    while not over.is_set():
        answer()

threads = [threading.Thread(target=compile_on, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
for fork in range(8):
    time.sleep(0.013 * fork)  # at different places of the work
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(answer(), expected) else 3)
    for _ in range(3000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        sys.exit(f"child {fork} hangs")
    if status:
        sys.exit(f"child {fork} ends with status {status}")
over.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_may_be_forked_while_threads_compile():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 12) or not hasattr(os, "fork"), reason="has no such locks, or no forks")
def test_a_forked_process_fills_properties_that_a_thread_was_filling():
    lock = type(fgd.robots.rrr()).joint_names.lock  # of Python 3.11's functools.cached_property
    filling, over = threading.Event(), threading.Event()

    def fill():
        with lock:
            filling.set()
            over.wait(PATIENCE)

    thread = threading.Thread(target=fill)
    thread.start()
    filling.wait(PATIENCE)
    fork = multiprocessing.get_context("fork")
    answers, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: theirs.send(fgd.robots.rrr().joint_names))
    child.start()
    try:
        assert answers.poll(PATIENCE), "the forked process hangs"
        assert answers.recv() == ("joint1", "joint2", "joint3")
    finally:
        over.set()
        thread.join()
        child.kill()
        child.join()
