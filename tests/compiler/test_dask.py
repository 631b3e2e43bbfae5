"""Kernels, rollouts and mechanisms in dask's worker processes: what a graph holds is what can be pickled."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import factorgraph_dyn as fgd

da = pytest.importorskip("dask.array", reason="needs Dask: pip install dask distributed")
COUNT, BLOCK = 1000, 128
ARM = fgd.robots.rrr()
STATES = np.random.default_rng(0).normal(size=(4, COUNT, 3))


def lazy(arrays):
    return [da.from_array(array, chunks=(BLOCK, 3)) for array in arrays]


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; the client is the default one of all that is computed."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with distributed.LocalCluster(**options) as workers, distributed.Client(workers) as client:
        yield client


def test_a_graph_holds_the_kernel_which_pickles():
    kernel = fgd.compile(ARM, "forward")
    graph = kernel(*lazy(STATES[:3])).mean(axis=0)
    sent = pickle.dumps(graph)
    assert len(sent) < 200_000 + STATES[:3].nbytes
    np.testing.assert_allclose(pickle.loads(sent).compute(scheduler="sync"), kernel(*STATES[:3]).mean(axis=0))


@pytest.mark.slow
def test_processes_that_dask_starts():
    kernel = fgd.compile(ARM, "forward")
    found = kernel(*lazy(STATES[:3])).mean(axis=0).compute(scheduler="processes", num_workers=2)
    np.testing.assert_allclose(found, kernel(*STATES[:3]).mean(axis=0), rtol=1e-12)


@pytest.mark.slow
def test_kernels_on_a_cluster(cluster):
    for problem, count in (("forward", 3), ("hybrid", 4)):
        words = {"known_accelerations": ["joint1"]} if problem == "hybrid" else {}
        kernel = fgd.compile(ARM, problem, **words)
        found, expected = kernel(*lazy(STATES[:count])), kernel(*STATES[:count])
        for part, wanted in zip(*([x] if count == 3 else x for x in (found, expected)), strict=True):
            np.testing.assert_array_equal(part.compute(), wanted)
            np.testing.assert_allclose(part.mean(axis=0).compute(), wanted.mean(axis=0), rtol=1e-12)
    assert len(cluster.scheduler_info()["workers"]) == 2


def ends(q, arm):
    return fgd.rollout(arm, q, np.zeros(3), np.zeros((20, 3)), 1e-3, record_every=20)[0][:, -1]


@pytest.mark.slow
def test_rollouts_on_a_cluster(cluster):
    (q,) = lazy(STATES[:1])
    found = q.map_blocks(ends, ARM, meta=np.empty((0, 3)))
    np.testing.assert_array_equal(found.compute(), ends(STATES[0], ARM))
