"""Kernels beside the engines people use: time a state in batches and in single calls.

All figures of a table come from one run on one core; each is the best of many repeats after a warm-up, and ratios are
taken between figures of the same run. Pinocchio runs its own C++ loop over the batch (``rneaInParallel`` and
``abaInParallel`` on one thread) and, for single calls, its Python bindings; MuJoCo is called once a state.
If asked for, Pinocchio's algorithms written out as C by CasADi, compiled by gcc and looped over in C, are measured:
they are the nearest rival. Engines written in JAX (MJX, frax) are measured in the same way.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.compare.peers.casadi_code import CasadiCode
from factorgraph_dyn.compare.peers.engines import adapter
from factorgraph_dyn.compare.peers.jax_code import PACKAGES as JAX_ENGINES
from factorgraph_dyn.compare.peers.jax_code import jax_call
from factorgraph_dyn.compare.timing import best_of
from factorgraph_dyn.compiler import Kernel, compile
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.notebook import Rows
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.spatial import Floats

BATCH = 4096
CALLS = 200  # single calls are timed in runs of this many
TIMED = ("inverse", "forward")


def benchmark_kernels(
    mechanism: Mechanism,
    orderings: Mapping[str, OrderingLike] | None = None,
    *,
    repeats: int = 60,
    casadi: bool = False,
    jax: bool = False,
) -> list[dict[str, Any]]:
    """One row a problem: kernels beside Pinocchio and MuJoCo, where these are installed.

    Args:
        mechanism: A mechanism without loops.
        orderings: The ordering of each problem's kernel; by default the classical one.
        repeats: Runs the best time is taken from.
        casadi: Whether to measure CasADi's C, too; the first time takes minutes.
        jax: Whether to measure MJX and frax, too; each is compiled for the batch.

    Returns:
        Rows with operation counts, ns a state in batches of 4096, ns for one state in one Python call, and the
        same of the peers with their ratios.
    """
    rows = Rows()
    for problem in TIMED:
        kernel = compile(mechanism, problem, ordering=(orderings or {}).get(problem))
        rows.append(_row(mechanism, problem, kernel, repeats))
        if casadi:
            rows[-1] |= _casadi(mechanism, problem, rows[-1]["ns a state"], repeats)
        for engine in JAX_ENGINES if jax else ():
            rows[-1] |= _of_jax(engine, mechanism, problem, repeats)
    return rows


def _row(mechanism: Mechanism, problem: str, kernel: Kernel, repeats: int) -> dict[str, Any]:
    batch = _batch(mechanism)
    one = [values[0].copy() for values in batch]
    out = np.empty((BATCH, mechanism.nv))
    ours = 1e9 * best_of(lambda: kernel(*batch, out=out), repeats) / BATCH
    single = 1e9 * best_of(lambda: [kernel(*one) for _ in range(CALLS)], repeats) / CALLS
    count = kernel.operations
    row: dict[str, Any] = {
        "robot": mechanism.name,
        "nv": mechanism.nv,
        "problem": problem,
        "ordering": kernel.ordering.name,
        "operations": count.multiplications + count.additions + count.divisions,
        "ns a state": ours,
        "ns one call": single,
    }
    with suppress(InputError):  # Pinocchio is not installed, or does not have a joint
        in_loop, one_call = adapter("pinocchio").build(mechanism).calls(problem, batch)
        loop = 1e9 * best_of(in_loop, max(repeats // 4, 5)) / BATCH
        call = 1e9 * best_of(lambda: [one_call() for _ in range(CALLS)], repeats) / CALLS
        row |= {
            "Pinocchio ns a state": loop,
            "times faster": loop / ours,
            "Pinocchio ns one call": call,
            "times faster (one call)": call / single,
        }
    with suppress(InputError):
        mujoco_call = adapter("mujoco").build(mechanism).call(problem)
        row["MuJoCo ns one call"] = 1e9 * best_of(lambda: [mujoco_call() for _ in range(CALLS)], repeats) / CALLS
    return row


def _casadi(mechanism: Mechanism, problem: str, ours: float, repeats: int) -> dict[str, Any]:
    """CasADi's C beside a kernel's time, or why it cannot be measured."""
    try:
        run, _ = CasadiCode(mechanism, problem).call(_batch(mechanism))
    except InputError as error:
        return {"CasADi C ns a state": f"skipped: {error}"}
    theirs = 1e9 * best_of(run, max(repeats // 4, 5)) / BATCH
    return {"CasADi C ns a state": theirs, "times faster than CasADi C": theirs / ours}


def _of_jax(engine: str, mechanism: Mechanism, problem: str, repeats: int) -> dict[str, Any]:
    """The time of an engine in JAX, or why it cannot be measured."""
    try:
        run, _ = jax_call(engine, mechanism, problem, _batch(mechanism))
    except InputError as error:
        return {f"{engine} ns a state": f"skipped: {error}"}
    return {f"{engine} ns a state": 1e9 * best_of(run, max(repeats // 4, 5)) / BATCH}


def _batch(mechanism: Mechanism) -> list[Floats]:
    """Random states in the layout a user has them: (batch, n), contiguous."""
    rng = np.random.default_rng(0)
    q = np.array([mechanism.random_configuration(rng) for _ in range(BATCH)])
    return [q, rng.normal(size=(BATCH, mechanism.nv)), rng.normal(size=(BATCH, mechanism.nv))]


def machine_name() -> str:
    """The processor, as the operating system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
