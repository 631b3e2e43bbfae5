"""From a mechanism and an ordering to a kernel.

Takes what a user asks for; gives a `Kernel`, from the cache on disk where it has been compiled before.

    problem + ordering -> trace -> program -> LLVM IR -> object code -> proof -> kernel
                                                                        (cache)

Where no ordering is asked for, it is the one of fewest operations (`cheapest`) whose kernel stands its proof at once.

A kernel that does not stand its proof is made again by the next more careful route. The work runs once a kernel:
milliseconds from the cache, else some tenths of a second for an arm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache as memoize
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import ENTRY_POINTS, emit_module
from factorgraph_dyn.compiler.estimator.tracer import trace_estimate
from factorgraph_dyn.compiler.estimator.trial import EstimateTrial
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.kernel.cheapest import AUTO, Candidate, candidates
from factorgraph_dyn.compiler.kernel.fastcall import emit_fastcall
from factorgraph_dyn.compiler.kernel.kernel import Kernel, KernelPlan
from factorgraph_dyn.compiler.kernel.refusals import refused, unproved
from factorgraph_dyn.compiler.program import Operand, Operations
from factorgraph_dyn.compiler.proof.proof import Proof, Trial
from factorgraph_dyn.compiler.route import CAREFUL, CAREFUL_ESTIMATES, CHEAP, Route
from factorgraph_dyn.compiler.trace import Traced, trace
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.inputs import ContactLike
from factorgraph_dyn.equations.problem import Problem, make_problem, problem_graph, with_closing_derivatives
from factorgraph_dyn.equations.quantities import shape_of, split_derivative
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.errors import CompileError, OrderingError
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.model.joint_kinds import is_shipped
from factorgraph_dyn.motion.questions import Axes
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering, saved

_ENTRIES = (*ENTRY_POINTS, "fastcall")
_GENERAL = ("colamd", "metis")  # orderings for what the classical ones have no safe pivots for
_MOST_AXES = 24 if np.__version__.startswith("1.") else 56  # of all results; NumPy's 32 or 64, without 8 for batches
_ROOMS = ("model", "motion", "equations", "ordering", "compiler")


def compile(
    mechanism: Mechanism,
    problem: str = "forward",
    *,
    ordering: OrderingLike | None = AUTO,
    known_accelerations: Sequence[str] | Mask = (),
    actuated: Iterable[str] | None = None,
    outputs: Sequence[str] | None = None,
    external_wrenches: Sequence[str] = (),
    axes: Axes = "local",
    contacts: Sequence[ContactLike] = (),
    guards: bool = True,
    parameters: str | Sequence[str] | None = None,
    measurements: Sequence[Sensor] = (),
) -> Kernel:
    """A kernel: machine code for one problem of one mechanism, called like a function.

    Args:
        mechanism: The mechanism.
        problem: "forward" (q, v, tau) -> a; "inverse" (q, v, a) -> tau; "hybrid" (q, v, a, tau) -> (a, tau);
            "iwim" q -> (nv, inputs); "inverse_mass_matrix" and "mass_matrix" q -> (nv, nv) of the tree; "kinematics"
            (q, v) -> what is asked for, by default the poses and Jacobians of the last moving links; "regressor"
            (q, v, a) -> (nv, 10 links), with which tau = Y parameters (see ``fgd.regressor``).
        ordering: Name of an ordering, an `Ordering`, or variable names in the order of elimination; by default, "auto",
            that of fewest operations among the classical ones, those shipped with the package and, for loops, colamd,
            whose kernel has an answer at all regular states that are tried.
        known_accelerations: For hybrid problems, the joints whose acceleration is given (their tau is
            sought), or one boolean an entry of a.
        actuated: For inverse, iwim and estimate, the joints that have a motor; by default the joints marked actuated,
            for inverse dynamics of a tree every joint, marked or not, without a warning (``fgd.inverse_dynamics``
            warns); of joints coupled to each other, as by mimic, one.
        outputs: Results to give instead of the usual ones. Of links and frames: T[tool] the pose in the world (4, 4),
            J[tool] the Jacobian (6, nv), V[tool] the twist and A[tool] the acceleration, all in the frame's own axes
            and A with gravity's -g; F[joint] the wrench of a joint; a, tau; com, momentum (about the com, in world
            axes), kinetic_energy, potential_energy, as the functions of these names give them; regressor
            (nv, 10 links), kinetic_regressor and potential_regressor (10 links,). Of each of these
            d<output>/d<argument>, such as "da/dq" or "dF[elbow]/dtau": the derivative, with the axes of the
            argument after those of the output, for q its freedoms (see docs/understand/derivatives.md). Problems that
            give one matrix, such as "mass_matrix", have the outputs matrix and dmatrix/dq.
        external_wrenches: Links and frames on which a wrench acts from outside; the kernel takes one more argument
            for each, [moment; force] about its origin.
        axes: Of these wrenches, not of results. "local": the link's or frame's own axes; "world": those of the world.
        contacts: For iwim, places where forces act, columns after the motors': names of links or frames, or
            ``Contact``, as ``fgd.iwim`` takes them.
        guards: Whether it answers nan at states it cannot answer: far from closing loops, accelerations that
            contradict them, pivots that vanish. Without, such states get numbers that mean nothing, and kernels of
            loops cost less: forward dynamics 4 to 20 %, inverse 24 to 58 % (see ``compiler/guards.py``). For those who
            make sure of their states themselves.
        parameters: What the kernel takes as further arguments instead of constants, so that every state of a batch may
            have its own; where all share them, what they alone need is computed once a call. Links by name, or "all"
            (every link but the base): one argument ``parameters``, shape (..., links, 10), as
            ``mechanism.parameters(links)`` gives them. ``armature[joint]``, ``damping[joint]``, ``friction[joint]``
            and ``gravity``: an argument each. They follow all others, in this order.
        measurements: For "estimate" (q, v, values) -> (a, tau, W[frame], ...), the most probable ones: sensors
            without values, such as fgd.sensors.Torque("elbow", sigma=0.1). Their readings, one after the other, are
            the argument values. Outputs are also W[frame] and gains, such as gain[tau], shape (nv, readings); of
            readings with covariance R, the covariance of tau is gain R gain^T.

    Raises:
        InputError: A problem, joint or output that there is not.
        OrderingError: An ordering that does not fit the problem.
        CompileError: An ordering without safe pivots, an output that is not determined, or a kernel that does not
            satisfy the mechanism's equations.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> forward = fgd.compile(arm, "forward")
        >>> forward(np.zeros((1000, 2)), np.zeros(2), np.zeros(2)).shape  # leading axes broadcast
        (1000, 2)
        >>> kernel = fgd.compile(arm, "inverse", outputs=["tau", "dtau/dq", "T[link2]"])
        >>> [result.shape for result in kernel(np.zeros(2), np.zeros(2), np.zeros(2))]
        [(2,), (2, 2), (4, 4)]
    """
    asked = make_problem(
        mechanism,
        problem,
        known_accelerations,
        actuated,
        outputs,
        external_wrenches,
        guards,
        axes=axes,
        contacts=contacts,
        parameters=parameters,
        measurements=measurements,
    )
    return compile_problem(mechanism, asked, ordering)


def compile_problem(mechanism: Mechanism, problem: Problem, ordering: OrderingLike | None = AUTO) -> Kernel:
    """The kernel of a problem in an ordering, by default that of fewest operations; raises as `compile` does."""
    check_movable(mechanism, "compile", CompileError)
    _check_axes(mechanism, problem)
    wanted = _wanted_ordering(mechanism, problem, ordering)
    host = machine.host()
    return (_cheapest if wanted == AUTO else _compiled)(mechanism, problem, wanted, host)


def _compiled(
    mechanism: Mechanism,
    problem: Problem,
    ordering: OrderingLike,
    host: machine.Machine,
) -> Kernel:
    """The kernel in an ordering, from the cache or made."""
    name = _key(mechanism, problem, ordering, host)
    entry = cache.read(name)
    code = None if entry is None else machine.load_or_none(entry.code, _ENTRIES, host)
    if entry is None or code is None:
        made = _proved(mechanism, problem, ordering, host)
        entry, code = made.entry, made.code
        cache.write(name, entry)
    return _kernel(mechanism, problem, ordering, entry.facts, code)


def _cheapest(mechanism: Mechanism, problem: Problem, auto: OrderingLike, host: machine.Machine) -> Kernel:
    """The kernel of fewest operations that stands its proof at once, or the classical one; the choice is remembered."""
    name = _key(mechanism, problem, auto, host)
    if (remembered := cache.read(name)) is not None:
        word, variables = remembered.facts["name"], remembered.facts["variables"]
        wanted = word if variables is None else Ordering(word, tuple(variables))
        return _compiled(mechanism, problem, wanted, host)
    kernel, chosen = _first_good(mechanism, problem, host)
    word, variables = (chosen, None) if isinstance(chosen, str) else (chosen.name, list(chosen.variables))
    cache.write(name, cache.Entry({"name": word, "variables": variables}, b""))
    return kernel


def _first_good(mechanism: Mechanism, problem: Problem, host: machine.Machine) -> tuple[Kernel, str | Ordering]:
    """The kernel of the first candidate whose proof leaves nothing to wish for, else the classical one's; its ordering.

    Where that is refused although the equations have an answer, as loops may have it, general orderings are tried, and
    where it has none at some regular states.

    Raises:
        CompileError: As the classical ordering does.
    """
    *cheaper, classical = candidates(mechanism, problem)
    trial = _trial(mechanism, problem)

    def kept(made: _Made, ordering: str | Ordering) -> tuple[Kernel, str | Ordering]:
        cache.write(_key(mechanism, problem, ordering, host), made.entry)
        return _kernel(mechanism, problem, ordering, made.entry.facts, made.code), ordering

    def good_ones(several: Iterable[Candidate]) -> Iterator[tuple[_Made, str | Ordering]]:
        for candidate in several:
            with suppress(CompileError):
                made = _attempt(trial, mechanism, problem, candidate.ordering, CHEAP, host, candidate.traced)
                if made.proof.is_good:
                    yield made, candidate.ordering

    for good in good_ones(cheaper):
        return kept(*good)
    try:
        made = _proved(mechanism, problem, classical.ordering, host, classical.traced, trial)
    except CompileError as refusal:
        if not trial.explains(refusal):  # nobody asked for this ordering
            for ordering in _GENERAL:
                with suppress(CompileError):
                    return kept(_proved(mechanism, problem, ordering, host, None, trial), ordering)
        raise
    if any(made.proof.silent):
        tried = [candidate.ordering for candidate in cheaper]
        for good in good_ones(Candidate(ordering) for ordering in _GENERAL if ordering not in tried):
            return kept(*good)
    return kept(made, classical.ordering)


def _key(mechanism: Mechanism, problem: Problem, ordering: OrderingLike, host: machine.Machine) -> str | None:
    """Where a kernel is kept."""
    words = ordering.key if isinstance(ordering, Ordering) else str(ordering)
    return kept_name(mechanism, host, problem.key, words)


def kept_name(mechanism: Mechanism, host: machine.Machine, *request: str) -> str | None:
    """Where code of a mechanism is kept on disk; None where it is not.

    A fingerprint has the names of joint kinds. What a kind of that name does is in the package's files, unless someone
    has registered it from elsewhere: then it may do something else the next time.
    """
    if not all(is_shipped(joint.type) for joint in (*mechanism.joints, *mechanism.loops)):
        return None
    return cache.key(_versions(), repr(host), mechanism.fingerprint, *request)


def _check_axes(mechanism: Mechanism, problem: Problem) -> None:
    """Raise a CompileError where results have more axes than NumPy's functions can have."""
    axes = sum(len(shape_of(mechanism, name)) for name in problem.outputs)
    derived = filter(None, map(split_derivative, problem.derivatives))
    axes += sum(len(problem.shape_of(mechanism, argument)) for _, argument in derived)
    if axes > _MOST_AXES:
        raise CompileError(
            f"The {len(problem.outputs)} outputs have {axes} axes together; NumPy's functions have up to {_MOST_AXES}. "
            "Ask for fewer outputs, in several kernels."
        )


def _kernel(
    mechanism: Mechanism,
    problem: Problem,
    ordering: OrderingLike,
    facts: dict[str, Any],
    code: machine.LoadedCode,
) -> Kernel:
    route = Route(*facts["route"])
    plan = KernelPlan(
        mechanism,
        problem,
        Ordering(facts["ordering"], tuple(facts["variables"])),
        Operations(*facts["operations"]),
        Operations(*facts["shared_operations"]),
        tuple(Operand(tuple(shape)) for shape in facts["inputs"]),
        tuple(Operand(tuple(shape)) for shape in facts["outputs"]),
        facts["redundant"],
        facts["accuracy"],
        lambda guarded: _trace(mechanism, dataclasses.replace(problem, guarded=guarded), ordering, route).program,
        (compile_problem, (mechanism, problem, ordering)),
    )
    return Kernel(plan, code)


@dataclasses.dataclass(frozen=True)
class _Made:
    """A kernel's code and what its proof found."""

    entry: cache.Entry
    code: machine.LoadedCode
    proof: Proof


def _proved(
    mechanism: Mechanism,
    problem: Problem,
    ordering: OrderingLike,
    host: machine.Machine,
    traced: Traced | None = None,
    trial: Trial | EstimateTrial | None = None,
) -> _Made:
    """What the first route makes whose proof leaves nothing to wish for, or the best of those that hold.

    What has been traced or set up already is not made again.

    Raises:
        CompileError: No route has a program, or none that has stands its proof.
    """
    made: list[_Made] = []
    refusals: list[CompileError] = []
    trial = trial or _trial(mechanism, problem)
    for route in (CHEAP, *(CAREFUL_ESTIMATES if problem.measurements else CAREFUL)):
        try:
            known = traced if route == CHEAP else None
            made.append(_attempt(trial, mechanism, problem, ordering, route, host, known))
        except CompileError as refusal:
            refusals.append(refusal)
            if trial.explains(refusal):
                break
        except OrderingError:
            if route == CHEAP:
                raise
        else:
            if made[-1].proof.is_good or (route.refine and made[-1].proof.holds):  # others would not be better
                break
    if not made:
        raise refused(mechanism, refusals[0])
    best = min(made, key=lambda found: found.proof.faults)  # the cheapest of equals
    if not best.proof.holds:
        raise unproved(mechanism, problem, best.proof, len(made))
    return best


def _trial(mechanism: Mechanism, problem: Problem) -> Trial | EstimateTrial:
    """What any kernel of the problem is proved by."""
    if problem.measurements:
        return EstimateTrial(mechanism, problem)
    return Trial(mechanism, with_closing_derivatives(mechanism, problem))


def _trace(mechanism: Mechanism, problem: Problem, ordering: OrderingLike, route: Route) -> Traced:
    return (trace_estimate if problem.measurements else trace)(mechanism, problem, ordering, route)


def _attempt(
    trial: Trial | EstimateTrial,
    mechanism: Mechanism,
    problem: Problem,
    ordering: OrderingLike,
    route: Route,
    host: machine.Machine,
    traced: Traced | None = None,
) -> _Made:
    """The code that a route gives, and its proof; what has been traced already is not traced again."""
    traced = traced or _trace(mechanism, problem, ordering, route)
    kernel, entry, code = _unproved(mechanism, problem, ordering, route, host, traced)
    function: Callable[..., Any] = kernel.gufunc
    if trial.problem is not problem:  # it is proved together with the derivatives that its own have a meaning with
        more = _trace(mechanism, trial.problem, ordering, route)
        whole, _, _ = _unproved(mechanism, trial.problem, ordering, route, host, more)
        function = _together(kernel.gufunc, whole.gufunc, len(problem.outputs))
    proof = trial.judge(function)
    return _Made(cache.Entry({**entry.facts, "accuracy": proof.accuracy}, entry.code), code, proof)


def _together(first: Callable[..., Any], second: Callable[..., Any], count: int) -> Callable[..., tuple[Any, ...]]:
    """All results of one function, and those of another after as many as the first one has."""

    def both(*arguments: Any) -> tuple[Any, ...]:
        found = first(*arguments)
        return (*(found if isinstance(found, tuple) else (found,)), *second(*arguments)[count:])

    return both


def _unproved(
    mechanism: Mechanism, problem: Problem, ordering: OrderingLike, route: Route, host: machine.Machine, traced: Traced
) -> tuple[Kernel, cache.Entry, machine.LoadedCode]:
    """The kernel of what a route gave."""
    text = emit_module(traced.program, host) + emit_fastcall(traced.program)
    stored = machine.object_code(text, host)
    code = machine.load(stored, _ENTRIES, host)
    facts = {**_facts(traced), "route": dataclasses.astuple(route), "accuracy": math.nan}
    return _kernel(mechanism, problem, ordering, facts, code), cache.Entry(facts, stored), code


def _wanted_ordering(mechanism: Mechanism, problem: Problem, ordering: OrderingLike | None) -> OrderingLike:
    automatic = ordering is None or (isinstance(ordering, str) and ordering == AUTO)
    if automatic and problem.measurements:
        return problem.classical
    if problem.solves_nothing and (automatic or ordering == problem.classical):
        return problem.classical
    problem.check_solved()
    if automatic:
        return AUTO
    assert ordering is not None
    if isinstance(ordering, str) and saved.is_saved(ordering):
        graph = problem_graph(mechanism, problem)
        if ordering == saved.BEST and problem.free.arguments:
            with suppress(OrderingError):  # none was searched for: that of constant parameters will do
                known = saved.best(mechanism.fingerprint, mechanism.name, graph.by_name, free=True)
                return Ordering(saved.BEST, known.variables)
        return choose_ordering(mechanism, graph, ordering, halves=True)
    if isinstance(ordering, str | Ordering):
        return ordering
    if not isinstance(ordering, Iterable):
        return choose_ordering(mechanism, problem_graph(mechanism, problem), ordering)  # refuses in words
    return Ordering(str(getattr(ordering, "name", "custom")), tuple(str(variable) for variable in ordering))


def _facts(traced: Traced) -> dict[str, Any]:
    program = traced.program
    return {
        "ordering": traced.ordering.name,
        "variables": list(traced.ordering.variables),
        "operations": dataclasses.astuple(program.operations),
        "shared_operations": dataclasses.astuple(program.shared_operations),
        "inputs": [operand.shape for operand in program.arguments],
        "outputs": [operand.shape for operand in program.results],
        "redundant": traced.redundant,
    }


@memoize
def _versions() -> str:
    """Everything but the request that the code depends on: sources, interpreter, NumPy, LLVM."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[2]
    for room in _ROOMS:
        for file in sorted(file for ending in ("py", "json") for file in (package / room).rglob(f"*.{ending}")):
            digest.update(file.read_bytes())
    digest.update((package / "spatial.py").read_bytes())
    versions = (sys.version_info[:2], np.__version__, llvmlite.__version__)
    return f"{digest.hexdigest()} {versions}"
