"""Engines written in JAX, on one core: MJX, which is MuJoCo's own, and frax.

XLA compiles each for a whole batch, in double precision (``pip install mujoco-mjx frax``). Both need ``XLA_FLAGS`` to
stay on one core, which has to be set before JAX is imported; ``scripts/benchmark.py`` does.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.compare.peers.engines import Call, adapter
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Link, Mechanism
from factorgraph_dyn.model.files.urdf.writer import to_urdf
from factorgraph_dyn.spatial import Floats

PACKAGES = {"MJX": ("mujoco.mjx", "mujoco-mjx"), "frax": ("frax", "frax")}  # modules, and what pip installs


def jax_call(
    engine: str, mechanism: Mechanism, problem: str, batch: Sequence[Floats]
) -> tuple[Call, Callable[[], Floats]]:
    """Forward or inverse dynamics of a batch as a call that waits for its answer, and one that gives it.

    Raises:
        InputError: The engine is not installed, or does not have a joint.
    """
    name, package = PACKAGES[engine]
    try:
        jax, module = importlib.import_module("jax"), importlib.import_module(name)
    except ImportError:
        raise InputError(f"{engine} is not installed: pip install {package}") from None
    jax.config.update("jax_enable_x64", True)
    answer = (_mjx if engine == "MJX" else _frax)(module, mechanism, problem)
    compiled, held = jax.jit(jax.vmap(answer)), [jax.numpy.asarray(values) for values in batch]
    return lambda: compiled(*held).block_until_ready(), lambda: np.asarray(compiled(*held))


def _mjx(mjx: Any, mechanism: Mechanism, problem: str) -> Callable[..., Any]:
    model = adapter("mujoco").build(mechanism).model
    held, start = mjx.put_model(model), mjx.make_data(model)
    if problem == "forward":
        return lambda q, v, tau: mjx.forward(held, start.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc
    return lambda q, v, a: mjx.inverse(held, start.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse


def _frax(frax: Any, mechanism: Mechanism, problem: str) -> Callable[..., Any]:
    other = [joint.name for joint in mechanism.movable_joints if joint.nq != 1 or joint.kind == "helical"]
    if other:
        raise InputError(f"frax is handed hinges and sliders only; mechanism {mechanism.name!r} also has {other[0]!r}.")
    # It wants an inertia of the base, too, which moves nothing.
    base = Link(mechanism.base, 1.0, (0.0, 0.0, 0.0), np.eye(3))
    heavy = replace(mechanism, links=tuple(base if link.name == base.name else link for link in mechanism.links))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(to_urdf(heavy, lossy=True), encoding="utf-8")
        robot = frax.Robot(str(path))
    if problem == "forward":
        return lambda q, v, tau: robot.forward_dynamics(q, v, tau, None)
    upward = np.array([*-mechanism.gravity, 0.0, 0.0, 0.0])  # the linear part comes first
    return lambda q, v, a: robot.rnea(q, v, a, upward, None)
