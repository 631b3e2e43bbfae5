"""Kernels beside engines: differences are measured by what rounding acts on."""

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.kernel_agreement import COMPARED, compare_kernel, references
from factorgraph_dyn.compare.peers.engines import engine_of

FREE = """<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint/><geom type="capsule" size=".1 .2"/></body>
    </worldbody></mujoco>"""
ROUNDING = 1e-13


@pytest.mark.parametrize("problem", COMPARED)
@pytest.mark.parametrize("seed", [20, 28])  # at which the forces on the body cancel
def test_forces_that_cancel_are_no_disagreement(tmp_path, problem, seed):
    path = tmp_path / "free.xml"
    path.write_text(FREE)
    mechanism = fgd.load(path)
    expected = references(mechanism, engine_of(mechanism, path), problem, seed=seed)
    found = compare_kernel(mechanism, problem, "auto", expected, ROUNDING)
    assert not found.beyond
    assert max(found.graph, found.engine, found.graph_engine) < ROUNDING
