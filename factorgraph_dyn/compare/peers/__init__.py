"""Rival engines, fed with our mechanisms and answering in our conventions: one adapter an engine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from factorgraph_dyn.compare.peers.engines import Engine
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.files.load import format_of

PACKAGES = {"pinocchio": "pin", "mujoco": "mujoco"}  # by adapter, what pip installs


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
