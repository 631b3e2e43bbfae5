"""Pinocchio's algorithms written out by CasADi as C: the nearest there is to this package's kernels.

Pinocchio runs once with CasADi's symbols, CasADi writes what it met as straight-line C, and gcc compiles that for the
machine at hand (-O3 -march=native), with a loop over a batch around it. Needs gcc, CasADi and Pinocchio's headers
(``pip install casadi pin``); the program that writes the code is compiled once, which takes a minute or two.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.compare.peers.engines import Call, adapter
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.storage import FOLDERS

_SOURCE = Path(__file__).with_suffix(".cpp")
_BOOST = (  # as Pinocchio's own build files say
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)
_LOOP = """
void batch(long long states, const double *q, const double *v, const double *x, double *y) {{
  long long iw[1 + {iw}];
  double w[1 + {w}];
  for (long long k = 0; k < states; ++k) {{
    const double *arg[{arg}] = {{q + {nq} * k, v + {nv} * k, x + {nv} * k}};
    double *res[{res}] = {{y + {nv} * k}};
    dynamics(arg, res, iw, w, 0);
  }}
}}
"""


class CasadiCode:
    """Forward or inverse dynamics of a mechanism's tree in CasADi's C."""

    def __init__(self, mechanism: Mechanism, problem: str) -> None:
        """Write, compile and load the code.

        Raises:
            InputError: Something that it needs is missing or fails, or the tree has a joint that it does not take.
        """
        generator = _generator()
        self.engine = adapter("pinocchio").build(mechanism)
        text = _model_text(self.engine.model)
        name = hashlib.sha256(f"{problem} {text} {_SOURCE.read_text()} {_LOOP}".encode()).hexdigest()[:24]
        library = _folder() / f"code_{name}.so"
        if not library.exists():
            source = library.with_suffix(".c")
            _run([str(generator), problem, source.name], text, "CasADi")
            source.write_text(source.read_text() + self._loop(source))
            _run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", source.name, "-o", library.name], "", "gcc")
        self._batch = ctypes.CDLL(str(library)).batch

    def _loop(self, source: Path) -> str:
        """The loop over a batch, with the room that CasADi says its function needs."""
        probe = source.with_suffix(".work.so")
        _run(["gcc", "-O0", "-shared", "-fPIC", source.name, "-o", probe.name], "", "gcc")
        sizes = [ctypes.c_longlong() for _ in range(4)]
        ctypes.CDLL(str(probe)).dynamics_work(*map(ctypes.byref, sizes))
        arg, res, iw, w = (size.value for size in sizes)
        model = self.engine.model
        return _LOOP.format(arg=arg, res=res, iw=iw, w=w, nq=model.nq, nv=model.nv)

    def call(self, batch: Sequence[Floats]) -> tuple[Call, Floats]:
        """A call that evaluates a batch, and where its results then are, in Pinocchio's order."""
        columns = self.engine.columns(batch)
        rows = [np.ascontiguousarray(values.T) for values in columns]
        out = np.empty_like(rows[1])
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*rows, out)]
        states = ctypes.c_longlong(len(out))

        def run() -> object:
            return self._batch(states, *pointers), rows

        return run, out


def _folder() -> Path:
    folder = Path(FOLDERS.user_cache_dir) / "casadi"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _generator() -> Path:
    """The program that writes the code, compiled where it is not yet.

    Raises:
        InputError: gcc, CasADi or Pinocchio's headers are missing.
    """
    if not (shutil.which("gcc") and shutil.which("g++")):
        raise InputError("CasADi's C needs gcc and g++, which are not installed.")
    spec = importlib.util.find_spec("casadi")
    if spec is None or spec.origin is None:
        raise InputError("CasADi is not installed: pip install casadi")
    casadi = Path(spec.origin).parent
    headers = _pinocchio_headers()
    made = _folder() / f"generator_{hashlib.sha256(_SOURCE.read_bytes() + bytes(casadi)).hexdigest()[:16]}"
    if not made.exists():
        folders = [f"-I{folder}" for folder in (headers, casadi / "include", casadi / "include" / "eigen3")]
        link = [f"-L{casadi}", "-lcasadi", f"-Wl,-rpath,{casadi}"]
        _run(["g++", "-O0", "-std=c++17", "-w", *_BOOST, *folders, str(_SOURCE), *link, "-o", made.name], "", "g++")
    return made


def _pinocchio_headers() -> Path:
    spec = importlib.util.find_spec("pinocchio")
    above = Path(spec.origin).parents if spec is not None and spec.origin else ()
    for folder in above:
        if (folder / "include" / "pinocchio" / "autodiff" / "casadi.hpp").exists():
            return folder / "include"
    raise InputError("Pinocchio's headers are not installed beside it: pip install pin")


def _run(command: list[str], text: str, who: str) -> None:
    done = subprocess.run(command, input=text, text=True, capture_output=True, cwd=_folder(), check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise InputError(f"{who} fails for CasADi's C: {next((line for line in lines if 'error' in line), lines[-1])}")


def _model_text(model: Any) -> str:
    """A model of Pinocchio as the generator reads it."""
    words: list[Any] = [*model.gravity.linear, model.njoints - 1]
    for k in range(1, model.njoints):
        joint, inertia = model.joints[k], model.inertias[k]
        words += [joint.shortname(), model.parents[k], *np.ravel(model.jointPlacements[k].homogeneous)]
        words += [inertia.mass, *inertia.lever, *np.ravel(inertia.inertia)]
    words += [*model.armature]
    return " ".join(word if isinstance(word, str) else repr(float(word)) for word in words)
