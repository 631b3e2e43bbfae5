"""What all engines have in common.

Each engine reads a model file with its own reader, or is handed the mechanism joint by joint, and gives the mass
matrix M and the forces h of

    M(q) a + h(q, v) = tau

and its own answer for a: of the open tree, loops and couplings left out, in our order of joints, with quaternions
x, y, z, w and body twists [omega; v]. Damping, friction and springs that an engine ignores are added from the
mechanism.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.files.formats import format_of
from factorgraph_dyn.spatial import Floats, stacked

Call = Callable[[], object]
PACKAGES = {"pinocchio": "pin", "mujoco": "mujoco"}  # by adapter, what pip installs


class Engine(Protocol):
    """Another engine with the tree of a mechanism."""

    name: str

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""

    def accelerations(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        """a under tau by the engine's own algorithm, shape (nv,)."""


def engine_of(mechanism: Mechanism, path: Path) -> Engine:
    """The engine that fits a model file: Pinocchio for URDF, MuJoCo for MJCF.

    Raises:
        InputError: The engine is not installed, cannot read the file or reads other joints from it.
    """
    name = "mujoco" if format_of(path) == "MJCF" else "pinocchio"
    engine: Engine = adapter(name).load(mechanism.tree, path)
    return engine


def handed_engine(mechanism: Mechanism) -> Engine:
    """Pinocchio, handed a mechanism's tree joint by joint, without a file."""
    engine: Engine = adapter("pinocchio").build(mechanism.tree)
    return engine


def adapter(name: str) -> Any:
    """The adapter class of an engine.

    Raises:
        InputError: The engine is not installed.
    """
    try:
        module = importlib.import_module(f"factorgraph_dyn.compare.peers.{name}")
    except ImportError:
        raise InputError(f"Checking needs {name}, which is not installed: pip install {PACKAGES[name]}") from None
    return module.ADAPTER


def joint_losses(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    """Damping, friction and springs of all joints, shape (nv,)."""
    forces = joint_effect(mechanism, "damping") * v + joint_effect(mechanism, "friction") * np.sign(v)
    for joint in mechanism.movable_joints:
        if joint.nq == joint.nv:
            away = q[mechanism.q_slice(joint.name)] - np.asarray(joint.rest)
            forces[mechanism.v_slice(joint.name)] += np.asarray(joint.stiffness) * away
    return forces


def joint_effect(mechanism: Mechanism, name: str) -> Floats:
    """One of the joints' per-freedom numbers for the whole mechanism, shape (nv,)."""
    return stacked(getattr(joint, name) for joint in mechanism.movable_joints)
