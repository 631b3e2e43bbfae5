"""Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm.

A name is imported from its room when it is first asked for, so that a model loads no GTSAM and a graph no LLVM. Which
names there are, and where each one lives, is said once: in ``__init__.pyi``, which type checkers and editors read too.
"""

import ast as _ast
import importlib as _importlib
import pkgutil as _pkgutil
from pathlib import Path as _Path

__version__ = "0.2.0"

_HOMES = {
    name.name: node.module
    for node in _ast.parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, _ast.ImportFrom)
    for name in node.names
}
_ROOMS = {module.name for module in _pkgutil.iter_modules(__path__)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(_importlib.import_module(_HOMES[name]), name)
    elif name in _ROOMS:
        value = _importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
