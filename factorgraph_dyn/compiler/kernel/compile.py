"""From a mechanism and an ordering to a kernel.

Takes what a user asks for; gives a `Kernel`, from the cache on disk where it has been compiled before.

    problem + ordering -> trace -> program -> LLVM IR -> object code -> proof -> kernel
                                                                        (cache)

A kernel that does not stand its proof is made again by the next more careful route. The work runs once a kernel:
milliseconds from the cache, else some tenths of a second for an arm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache as memoize
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

from factorgraph_dyn.checks import as_names
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import ENTRY_POINTS, emit_module
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.kernel.fastcall import emit_fastcall
from factorgraph_dyn.compiler.kernel.kernel import Kernel, KernelPlan
from factorgraph_dyn.compiler.program import Operand, Operations
from factorgraph_dyn.compiler.proof.proof import Proof, Trial
from factorgraph_dyn.compiler.route import CAREFUL, CHEAP, Route
from factorgraph_dyn.compiler.trace import Traced, trace
from factorgraph_dyn.equations.problem import Mask, Problem, make_problem
from factorgraph_dyn.equations.problem_graph import problem_graph
from factorgraph_dyn.errors import CompileError, OrderingError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering, saved

_ENTRIES = (*ENTRY_POINTS, "fastcall")
_ROOMS = ("model", "motion", "equations", "ordering", "compiler")


def compile(
    mechanism: Mechanism,
    problem: str = "forward",
    *,
    ordering: OrderingLike | None = None,
    known_accelerations: Sequence[str] | Mask = (),
    actuated: Iterable[str] | None = None,
    outputs: Sequence[str] | None = None,
    external_wrenches: Sequence[str] = (),
) -> Kernel:
    """A kernel: machine code for one problem of one mechanism, called like a function.

    Args:
        mechanism: The mechanism.
        problem: "forward" (q, v, tau) -> a; "inverse" (q, v, a) -> tau; "hybrid" (q, v, a, tau) -> (a, tau);
            "iwim" q -> (nv, inputs); "inverse_mass_matrix" and "mass_matrix" q -> (nv, nv) of the tree.
        ordering: Name of an ordering, an `Ordering`, or variable names in the order of elimination; by
            default the classical one, aba or rnea.
        known_accelerations: For hybrid problems, the joints whose acceleration is given (their tau is
            sought), or one boolean an entry of a.
        actuated: For inverse and iwim, the joints that have a motor; by default the joints marked actuated, for
            inverse dynamics of a tree every joint.
        outputs: Results to give instead of the usual ones: any of a, tau, A[link], V[link], F[joint].
        external_wrenches: Links on which a wrench acts from outside; the kernel takes one more argument
            for each, [moment; force] in the link's frame.

    Raises:
        InputError: A problem, joint or output that there is not.
        OrderingError: An ordering that does not fit the problem.
        CompileError: An ordering without safe pivots, an output that is not determined, or a kernel that does not
            satisfy the mechanism's equations.
    """
    actuated = None if actuated is None else as_names(actuated, "actuated")
    asked = make_problem(mechanism, problem, known_accelerations, actuated, outputs, external_wrenches)
    if not mechanism.nv:
        raise CompileError(f"Mechanism {mechanism.name!r} has no movable joint; there is nothing to compile.")
    wanted = _wanted_ordering(mechanism, asked, ordering)
    host = machine.host()
    name = cache.key(_versions(), repr(host).encode(), _described(mechanism), describe(asked), describe(wanted))
    entry = cache.read(name)
    code = None if entry is None else _load_or_none(entry.code, host)
    if entry is None or code is None:
        entry, code = _proved(mechanism, asked, wanted, host)
        cache.write(name, entry)
    words = {
        "ordering": wanted,
        "known_accelerations": asked.known_a if problem == "hybrid" else (),
        "actuated": actuated,
        "outputs": outputs,
        "external_wrenches": external_wrenches,
    }
    return _kernel(mechanism, asked, wanted, entry.facts, code, (_again, (mechanism, problem, words)))


def _kernel(
    mechanism: Mechanism,
    problem: Problem,
    ordering: OrderingLike,
    facts: dict[str, Any],
    code: machine.LoadedCode,
    remake: tuple[Callable[..., Kernel], tuple[Any, ...]],
) -> Kernel:
    route = Route(*facts["route"])
    plan = KernelPlan(
        mechanism,
        problem,
        Ordering(facts["ordering"], tuple(facts["variables"])),
        Operations(*facts["operations"]),
        tuple(Operand(tuple(shape)) for shape in facts["inputs"]),
        tuple(Operand(tuple(shape)) for shape in facts["outputs"]),
        facts["redundant"],
        facts["accuracy"],
        lambda: trace(mechanism, problem, ordering, route).program,
        remake,
    )
    return Kernel(plan, code)


@dataclasses.dataclass(frozen=True)
class _Made:
    """A kernel's code and what its proof found."""

    entry: cache.Entry
    code: machine.LoadedCode
    proof: Proof


def _proved(
    mechanism: Mechanism, problem: Problem, ordering: OrderingLike, host: machine.Machine
) -> tuple[cache.Entry, machine.LoadedCode]:
    """The code of the first route whose proof leaves nothing to wish for, or of the best that holds.

    Raises:
        CompileError: No route has a program, or none that has stands its proof.
    """
    made: list[_Made] = []
    refusals: list[CompileError] = []
    trial = Trial(mechanism, problem)
    for route in (CHEAP, *CAREFUL):
        try:
            made.append(_attempt(trial, mechanism, ordering, route, host))
        except CompileError as refusal:
            refusals.append(refusal)
            if not trial.is_regular:
                break  # it is the problem, and not how it was taken
        except OrderingError:
            if route == CHEAP:
                raise
        else:
            if made[-1].proof.is_good:
                break
    if not made:
        raise refusals[0]
    best = min(made, key=lambda found: found.proof.faults)  # the cheapest of equals
    if not best.proof.holds:
        raise CompileError(
            f"The {problem.name} kernel of mechanism {mechanism.name!r} does not satisfy the mechanism's own equations "
            f"and is not given away: {best.proof}, by the best of {len(made)} routes. Take another ordering, such as "
            "crba or colamd, or look for masses and inertias that differ by many orders of magnitude.",
            proof=best.proof,
        )
    return best.entry, best.code


def _attempt(trial: Trial, mechanism: Mechanism, ordering: OrderingLike, route: Route, host: machine.Machine) -> _Made:
    """The code that a route gives, and its proof."""
    traced = trace(mechanism, trial.problem, ordering, route)
    text = emit_module(traced.program, host) + emit_fastcall(traced.program)
    stored = machine.object_code(text, host)
    code = machine.load(stored, _ENTRIES, host)
    facts = {**_facts(traced), "route": dataclasses.astuple(route), "accuracy": math.nan}
    unproved = _kernel(mechanism, trial.problem, ordering, facts, code, (_again, ()))
    proof = trial.judge(unproved.gufunc)
    return _Made(cache.Entry({**facts, "accuracy": proof.accuracy}, stored), code, proof)


def _again(mechanism: Mechanism, problem: str, words: dict[str, Any]) -> Kernel:
    return compile(mechanism, problem, **words)


def _wanted_ordering(mechanism: Mechanism, problem: Problem, ordering: OrderingLike | None) -> OrderingLike:
    if ordering is None:
        return problem.classical
    if isinstance(ordering, str) and saved.is_saved(ordering):
        return choose_ordering(mechanism, problem_graph(mechanism, problem), ordering, halves=True)
    if isinstance(ordering, str | Ordering):
        return ordering
    if not isinstance(ordering, Iterable):
        return choose_ordering(mechanism, problem_graph(mechanism, problem), ordering)  # refuses in words
    return Ordering(str(getattr(ordering, "name", "custom")), tuple(str(variable) for variable in ordering))


def _facts(traced: Traced) -> dict[str, Any]:
    operations = traced.program.operations
    return {
        "ordering": traced.ordering.name,
        "variables": list(traced.ordering.variables),
        "operations": dataclasses.astuple(operations),
        "inputs": [operand.shape for operand in traced.program.arguments],
        "outputs": [operand.shape for operand in traced.program.results],
        "redundant": traced.redundant,
    }


def _load_or_none(code: bytes, host: machine.Machine) -> machine.LoadedCode | None:
    try:
        return machine.load(code, _ENTRIES, host)
    except RuntimeError:  # stored by a linker that this one does not understand
        return None


def describe(value: Any) -> bytes:
    """Bytes that differ where the contents of two descriptions differ."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    if isinstance(value, tuple | list):
        parts = [describe(item) for item in value]
        return b"(" + b",".join(b"%d:%b" % (len(part), part) for part in parts) + b")"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        contents = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return type(value).__name__.encode() + describe(contents)
    return repr(value).encode()


@lru_cache(maxsize=64)
def _described(mechanism: Mechanism) -> bytes:
    """A mechanism's description; of hundreds of links it takes longer than loading their kernel."""
    return describe(mechanism)


@memoize
def _versions() -> bytes:
    """Everything but the request that the code depends on: sources, interpreter, NumPy, LLVM."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(file.read_bytes())
    digest.update((package / "spatial.py").read_bytes())
    versions = (sys.version_info[:2], np.__version__, llvmlite.__version__)
    return digest.digest() + repr(versions).encode()
