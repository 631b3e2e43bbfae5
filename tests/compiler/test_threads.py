"""Threads that share a batch, in the process that made them and in one forked from it."""

import multiprocessing
import os

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
