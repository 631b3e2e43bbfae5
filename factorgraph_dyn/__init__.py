"""Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm."""

from factorgraph_dyn.errors import (
    ClosureError,
    CompileError,
    FactorGraphDynError,
    InputError,
    ModelError,
    OrderingError,
    ResidualError,
    SingularSystemError,
)
from factorgraph_dyn.model import Coupling, Frame, Joint, Link, Loop, Mechanism

__all__ = [
    "ClosureError",
    "CompileError",
    "Coupling",
    "FactorGraphDynError",
    "Frame",
    "InputError",
    "Joint",
    "Link",
    "Loop",
    "Mechanism",
    "ModelError",
    "OrderingError",
    "ResidualError",
    "SingularSystemError",
]
