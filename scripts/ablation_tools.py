"""The numerics tools that ``ablate.py`` switches off: the place of each one, and its replacement.

A tool is one function or constant (or several that serve one end). `Off.acts` says of a call with the tool switched on
whether it did anything: what never acts on a question need not be asked again without it.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from factorgraph_dyn.errors import CompileError

PACKAGE = "factorgraph_dyn."
ROOMS = ("model", "motion", "equations", "ordering", "solve", "textbook", "compiler")
Task = Any


@dataclass(frozen=True)
class Off:
    """One place that a tool is switched off at.

    Attributes:
        place: Module and name below the package, as "compiler.pivots:Pivots._faint".
        instead: Takes the original and gives its replacement.
        acts: Takes the result and the arguments of a call; whether it did anything. None of constants, which always do.
        word: Tells it from others at the same place.
    """

    place: str
    instead: Callable[[Any], Any]
    acts: Callable[..., bool] | None = None
    word: str = ""

    @property
    def key(self) -> str:
        """Tells the place from others, with its word."""
        return f"{self.place} {self.word}"


@dataclass(frozen=True)
class Tool:
    """Places that are switched off together.

    Attributes:
        name: What the command line calls it.
        about: What it is for, in a few words.
        offs: The places.
        concerns: Whether a question may depend on it: its route, problem, ordering, and whether there are loops.
    """

    name: str
    about: str
    offs: tuple[Off, ...]
    concerns: Callable[[Task], bool]


def returning(value: Any) -> Callable[[Any], Any]:
    """A function that gives the same whatever it is asked."""
    return lambda _: lambda *args, **words: value() if callable(value) else value


def constant(value: Any) -> Callable[[Any], Any]:
    """Another constant."""
    return lambda _: value


def nothing(_: Any) -> Callable[..., None]:
    """A function that does nothing."""
    return lambda *args, **words: None


def first(_: Any) -> Callable[..., Any]:
    """A function that gives its first argument back."""
    return lambda given, *args, **words: given


def always(*_: Any, **__: Any) -> bool:
    """True: a call is enough."""
    return True


def some(result: Any, *_: Any, **__: Any) -> bool:
    """True of a result that is not empty and not zero."""
    return bool(np.any(result)) if isinstance(result, np.ndarray) else bool(result)


def no(result: Any, *_: Any, **__: Any) -> bool:
    """True of a negative answer."""
    return not result


def changed(result: Any, given: Any, *_: Any, **__: Any) -> bool:
    """True where the first argument comes back as something else."""
    if isinstance(given, np.ndarray):
        return not np.array_equal(result, given)
    return result is not given


def of_kernels(task: Task) -> bool:
    """Questions to kernels."""
    return bool(task.route == "kernel")


def of_closed_kernels(task: Task) -> bool:
    """Questions to kernels of mechanisms with loops or couplings."""
    return bool(task.route == "kernel" and task.is_closed)


def of_default_kernels(task: Task) -> bool:
    """Questions to kernels without a word about the ordering."""
    return bool(task.route == "kernel" and task.ordering is None)


def of_graphs(task: Task) -> bool:
    """Questions to the graph."""
    return bool(task.route == "graph")


def of_closed_graphs(task: Task) -> bool:
    """Questions to the graph of mechanisms with loops or couplings."""
    return bool(task.route == "graph" and task.is_closed)


def of_estimates(task: Task) -> bool:
    """Estimates."""
    return bool(task.problem == "estimate")


def of_closed(task: Task) -> bool:
    """Questions about mechanisms with loops or couplings."""
    return bool(task.is_closed)


def without_route(word: str, is_tried: Callable[[Any], bool]) -> Off:
    """One of the careful routes by which a kernel is made again, switched off."""

    def instead(original: Any) -> Any:
        def attempt(trial: Any, mechanism: Any, problem: Any, ordering: Any, route: Any, *others: Any) -> Any:
            if is_tried(route):
                raise CompileError("This route is switched off.")
            return original(trial, mechanism, problem, ordering, route, *others)

        return attempt

    def acts(_: Any, *args: Any) -> bool:
        return is_tried(args[4])

    return Off("compiler.kernel.compile:_attempt", instead, acts, word)


def _not_noisy(original: Any) -> Any:
    return lambda self, graph: {**original(self, graph), "noisy": False}


def _plain_sum(_: Any) -> Any:
    def plain(self: Any, place: tuple[int, int], terms: tuple[int, int], total: int) -> int:
        if all(terms) and not total:  # as guards of silent branches need it
            errors = [self.samples.error(term) for term in terms]
            self.lost[place[0]][place[1]] = np.hypot(*errors)
        return total

    return plain


def _as_asked(_: Any) -> Any:
    return lambda self, step, parameter, ref: bool(ref)


def _unturned(original: Any) -> Any:
    return lambda mechanism, rng, turns: original(mechanism, rng, 0)


def _any_other(result: Any, mechanism: Any, states: Any) -> bool:
    return any(one is not other for one, other in zip(result, states, strict=True))


def _no_errors(_: Any) -> Any:
    return lambda mechanism, q, v, least: (np.zeros(mechanism.nv), np.zeros(mechanism.nv))


def _tiny(_: Any) -> Any:
    return lambda self, asked, tau: np.full((len(self.D), 1, 1), np.finfo(float).tiny)


def _flat(original: Any) -> Any:
    return lambda self, *args: np.zeros_like(original(self, *args))


def _not_hollow(original: Any) -> Any:
    return property(lambda self: np.zeros_like(original.fget(self)))


def _unimproved(_: Any) -> Any:
    return lambda rows, x, nearer: rows.missed(x.vector())


def _usual_tolerance(_: Any) -> Any:
    from factorgraph_dyn.motion.closure import rank_tolerance

    return lambda mechanism, group: rank_tolerance(mechanism)


def _no_units(original: Any) -> Any:
    from factorgraph_dyn.solve.scaling import GraphUnits

    def ones(mechanism: Any) -> Any:
        units = original(mechanism)
        return GraphUnits(*({name: np.ones_like(size) for name, size in part.items()} for part in
                            (units.variables, units.equations)))  # fmt: skip

    return ones


PIVOTS, ELIMINATION = "compiler.pivots:Pivots.", "compiler.eliminate:Elimination."
SYSTEM = "compiler.proof.plain_system:System."
STATES = "compiler.sampled_states:"

YARDSTICKS = {
    "hollow": ("joints that move next to none of what they carry", Off(SYSTEM + "_of_hollow", _not_hollow, some)),
    "levered": ("forces of closure without a lever", Off(SYSTEM + "_levered", _flat, some)),
    "turned by motors": ("motors next to dead points", Off(SYSTEM + "_turned_by_motors", _flat, some)),
    "given blur": ("given accelerations that cancel", Off(SYSTEM + "_given_blur", _flat, some)),
    "held": ("accelerations of locked joints", Off(SYSTEM + "_held", _tiny, lambda _, self, *__: self.rows.size > 0)),
    "without rounding": (
        "rounding of the freedoms that closure leaves",
        Off("compiler.proof.plain_system:_without_rounding", first, changed),
    ),
}
ROUNDING = {
    "is_rounding": (
        "values that rounding of sums explains are zero",
        Off("compiler.tape.samples:SampledTape.is_rounding", returning(False), some),
        of_kernels,
    ),
    "_faint": (
        "entries far smaller than others of their row are no pivots",
        Off(PIVOTS + "_faint", returning(set), some),
        of_closed_kernels,
    ),
    "_blurred": (
        "entries far less exact than others of their column are no pivots",
        Off(PIVOTS + "_blurred", returning(set), some),
        of_closed_kernels,
    ),
    "_matters": (
        "coefficients of undetermined forces that are rounding are zero",
        Off(ELIMINATION + "_matters", _as_asked, lambda result, self, step, parameter, ref: bool(ref) and not result),
        of_closed_kernels,
    ),
    "prepare": (
        "entries of the equations that are rounding are zero before elimination",
        Off(ELIMINATION + "prepare", nothing, lambda _, self: self.noisy),
        of_closed_kernels,
    ),
}


def _tools() -> Iterator[Tool]:
    for name, (about, off, concerns) in ROUNDING.items():
        yield Tool(name, about, (off,), concerns)
    together = tuple(off for _, off, _ in ROUNDING.values())
    yield Tool("rounding tools", "is_rounding, _faint, _blurred, _matters and prepare together", together, of_kernels)
    single: tuple[tuple[str, str, Off, Callable[[Task], bool]], ...] = (
        (
            "lost digits",
            "what cancelled before is inexact in all that comes after it",
            Off(
                ELIMINATION + "_unless_rounding", _plain_sum, lambda result, self, place, terms, total: result != total
            ),
            of_closed_kernels,
        ),
        (
            "is_nothing",
            "pivots below 1e-14 of their row are none",
            Off(PIVOTS + "is_nothing", returning(False), some),
            of_closed_kernels,
        ),
        (
            "row rotation",
            "two rows become one whose pivot vanishes at no sampled state",
            Off(ELIMINATION + "_rotate", nothing, always),
            of_kernels,
        ),
        (
            "keeps_sign",
            "pivots that change their sign are the second choice",
            Off(PIVOTS + "keeps_sign", returning(True), no),
            of_kernels,
        ),
        (
            "row scale floor",
            "rows of which rounding is left have no scale of their own",
            Off("compiler.pivots:_ROW_ROUNDING", constant(0.0)),
            of_kernels,
        ),
        (
            "magnitudes",
            "columns are compared in the units of what joints carry",
            Off(
                "compiler.magnitudes:Magnitudes.of",
                returning(dict),
                lambda sizes, *_: any(s != 1 for s in sizes.values()),
            ),
            of_kernels,
        ),
        (
            "repeated equations",
            "equations of loops may repeat each other up to rounding",
            Off("compiler.trace:Tracer._how", _not_noisy, lambda how, *_: how["noisy"]),
            of_closed_kernels,
        ),
        (
            "errors of constants",
            "constants of a model are as exact as the largest they belong to",
            Off("compiler.known_constants:_know_errors", nothing, always),
            of_kernels,
        ),
        (
            "tidied placements",
            "zeros and ones of placements are exact",
            Off("compiler.trace:tidied", first, always),
            of_kernels,
        ),
        (
            "waiting",
            "the careful route in which unknowns wait for good pivots",
            without_route("patient", lambda route: route.patient),
            of_kernels,
        ),
        (
            "refinement",
            "the careful routes with a step of refinement",
            without_route("refine", lambda route: route.refine),
            of_kernels,
        ),
        (
            "plainer descriptions",
            "the careful routes in frames and inertias as given",
            without_route("plain", lambda route: not (route.reframe or route.patient or route.refine)),
            of_kernels,
        ),
        (
            "general orderings",
            "colamd and metis where the classical orderings are refused or silent",
            Off("compiler.kernel.compile:_GENERAL", constant(())),
            of_default_kernels,
        ),
        (
            "quarter turns",
            "special states of trees at quarter turns",
            Off(STATES + "_turned", _unturned, lambda _, m, rng, turns: turns > 0),
            of_kernels,
        ),
        (
            "quarter turns in loops",
            "special states with hinges of loops at quarter turns",
            Off(STATES + "_neat_places", returning(list), some),
            of_closed_kernels,
        ),
        (
            "loops at zero",
            "special states with joints of loops at zero",
            Off(STATES + "closed_at_zero", returning(list), some),
            of_closed_kernels,
        ),
        ("far states", "special states in any assembly mode", Off(STATES + "_FAR", constant(0)), of_closed_kernels),
        (
            "one mobility",
            "sampled states have as many freedoms as most",
            Off(STATES + "_of_one_mobility", lambda _: lambda mechanism, states: states, _any_other),
            of_closed_kernels,
        ),
        (
            "errors of closing",
            "sampled states close loops up to rounding, which moves joints far",
            Off(STATES + "closing_errors", _no_errors, always),
            of_closed_kernels,
        ),
        (
            "assembly modes",
            "locked loops are tried in every assembly mode",
            Off("motion.random_states:MODE_TRIES", constant(0)),
            of_closed_kernels,
        ),
        (
            "guards of modes",
            "kernels are silent in assembly modes that nobody tried",
            Off("compiler.trace:mode_guards", returning(list), some),
            of_closed_kernels,
        ),
        (
            "silent branches",
            "coefficients that vanish in one branch of loops are watched",
            Off("compiler.trace:Tracer.closed", nothing, lambda result, *_: result is not None),
            of_closed_kernels,
        ),
        (
            "other branches in the proof",
            "kernels are proved in other branches of the loops too",
            Off("compiler.proof.proof:in_any_branch", returning(list), some),
            of_closed_kernels,
        ),
        (
            "explained refusals",
            "refusals of problems without an answer end the search for a route",
            Off("compiler.proof.proof:Trial.explains", returning(False), some),
            of_kernels,
        ),
        (
            "shared wrenches",
            "wrenches that loops share in many ways explain refusals",
            Off("compiler.proof.proof:Trial._shared_wrenches", lambda _: property(lambda self: set()), some),
            of_closed_kernels,
        ),
        (
            "least inertia of the proof",
            "joints are scaled by at least 1e-7 of what they usually move",
            Off("compiler.proof.plain_system:_LEAST_INERTIA", constant(0.0)),
            of_kernels,
        ),
        (
            "least inertia in loops",
            "joints of loops are scaled by at least 1e-6 of what they carry",
            Off("compiler.proof.plain_system:_LEAST_IN_LOOPS", constant(0.0)),
            of_closed_kernels,
        ),
    )
    for name, (about, off) in YARDSTICKS.items():
        yield Tool(f"yardstick: {name}", about, (off,), of_kernels)
    together = tuple(off for _, off in YARDSTICKS.values())
    yield Tool("all yardsticks", "the six exceptions of the proof's yardstick together", together, of_kernels)
    graph: tuple[tuple[str, str, Off, Callable[[Task], bool]], ...] = (
        (
            "moves_little",
            "trees in which a joint moves next to nothing are solved in aba",
            Off("solve.singularity:moves_little", returning(False), some),
            of_graphs,
        ),
        (
            "determined trees",
            "elimination that grows much is looked at for joints without inertia",
            Off("solve.singularity:check_determined", nothing, always),
            of_graphs,
        ),
        (
            "units of graphs",
            "rows and columns are scaled by what joints carry",
            Off("solve.scaling:graph_units", _no_units, always),
            of_graphs,
        ),
        (
            "squares first",
            "Cholesky where the condition allows it",
            Off("solve.elimination:_from_squares", nothing, lambda result, *_: result is not None),
            of_graphs,
        ),
        (
            "refinement of graphs",
            "steps of refinement while rows are missed",
            Off("solve.elimination:improved", _unimproved, always),
            of_graphs,
        ),
        (
            "usual rows",
            "rows of closure that are independent elsewhere are tried first",
            Off("motion.independence:_usual_rows", nothing, always),
            of_closed_graphs,
        ),
        (
            "dense singularity check",
            "suspicious closed answers are looked at by a dense system",
            Off("solve.loops.singularity:check", nothing, always),
            of_closed_graphs,
        ),
        (
            "blunt responses",
            "ill-conditioned J M^-1 J^T makes one system of all",
            Off("solve.loops.response:_is_blunt", returning(False), some),
            of_closed_graphs,
        ),
        (
            "one system of all",
            "responses by one dense system where those of the tree are poor",
            Off("solve.loops.response:_all_at_once", nothing, lambda result, *_: result is not None),
            of_closed_graphs,
        ),
        (
            "couplings by structure",
            "chains of couplings are independent whatever their ratios",
            Off("motion.closure:group_tolerance", _usual_tolerance, always),
            of_closed,
        ),
        ("unfolding", "homes leave folded configurations", Off("motion.homes:_unfolded", first, changed), of_closed),
        (
            "regular homes",
            "of several homes the most regular is taken",
            Off("motion.homes:_most_regular", first, changed),
            of_closed,
        ),
        (
            "keeps freedoms",
            "states that have other freedoms than home are drawn again",
            Off("motion.random_states:keeps_freedoms", returning(True), no),
            of_closed,
        ),
        (
            "hardly vaguer",
            "the longest of readings that say about as much are chosen",
            Off("equations.posterior:HARDLY_VAGUER", constant(1.0)),
            of_estimates,
        ),
        (
            "faintest readings",
            "readings that say 1e-12 of what others do are heard",
            Off("equations.posterior:RANK_ROUNDING", constant(1e-10)),
            of_estimates,
        ),
        (
            "rounding of combinations",
            "readings that take no part have a coefficient of zero",
            Off("equations.posterior:ROUNDING", constant(0.0)),
            of_estimates,
        ),
        (
            "preferred readings",
            "readings of torques, accelerations and wrenches are preferred in kernels",
            Off("compiler.estimator.basis:PREFERENCE", constant(1.0)),
            of_estimates,
        ),
        (
            "readings at special states",
            "readings have to say something where axes line up",
            Off("compiler.estimator.basis:_unseen", returning(1.0), lambda result, *_: result > 1.5),
            of_estimates,
        ),
    )
    for name, about, off, concerns in (*single, *graph):
        yield Tool(name, about, (off,), concerns)


TOOLS = {tool.name: tool for tool in _tools()}


def _resolved(place: str) -> list[tuple[Any, str, Any]]:
    """Where a function or constant is found: in its own module, or class, and in all that imported it by name."""
    module_name, path = place.split(":")
    module = importlib.import_module(PACKAGE + module_name)
    *owners, name = path.split(".")
    owner: Any = module
    for each in owners:
        owner = getattr(owner, each)
    original = owner.__dict__[name]
    found = [(owner, name, original)]
    if not owners:
        others = [m for word, m in list(sys.modules.items()) if word.startswith(PACKAGE) and m is not module]
        sites = [m for m in others if m is not None and m.__dict__.get(name) is original]
        found += [(site, name, original) for site in sites if callable(original)]
    return found


@contextmanager
def patched(place: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Something else in a place while this lasts."""
    found = _resolved(place)
    new = make(found[0][2])
    for owner, name, _ in found:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, original in found:
            setattr(owner, name, original)


@contextmanager
def switched_off(tool: Tool) -> Iterator[None]:
    """A tool switched off while this lasts, with nothing remembered from before or after."""
    with ExitStack() as stack:
        for off in tool.offs:
            stack.enter_context(patched(off.place, off.instead))
        forget()
        try:
            yield
        finally:
            forget()


@contextmanager
def watched(acted: set[str]) -> Iterator[None]:
    """All tools on; those that do something, and constants, put their places into a set."""

    def watching(off: Off) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            function = original.fget if isinstance(original, property) else original

            @wraps(function)
            def call(*args: Any, **words: Any) -> Any:
                result = function(*args, **words)
                if off.key not in acted and _acts(off, result, args, words):
                    acted.add(off.key)
                return result

            for word in ("cache_clear", "cache_info", "__wrapped__"):
                if hasattr(function, word):
                    setattr(call, word, getattr(function, word))
            return property(call) if isinstance(original, property) else call

        return make

    with ExitStack() as stack:
        for off in {off.key: off for tool in TOOLS.values() for off in tool.offs}.values():
            if off.acts is None:
                acted.add(off.key)
            else:
                stack.enter_context(patched(off.place, watching(off)))
        yield


def _acts(off: Off, result: Any, args: tuple[Any, ...], words: dict[str, Any]) -> bool:
    assert off.acts is not None
    try:
        return off.acts(result, *args, **words)
    except (TypeError, ValueError, IndexError):
        return True


def may_act(tool: Tool, acted: set[str]) -> bool:
    """True where a tool did something on a question, by the set that `watched` filled."""
    return any(off.key in acted for off in tool.offs)


def import_all() -> None:
    """Import all that questions may need: a module that is imported while a tool is off would keep the replacement."""
    for room in ROOMS:
        package = importlib.import_module(PACKAGE + room)
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(found.name)


def forget() -> None:
    """Empty every cache of the package's functions."""
    for found in gc.get_objects():
        if type(found).__name__ == "_lru_cache_wrapper" and getattr(found, "__module__", "").startswith(PACKAGE):
            found.cache_clear()
