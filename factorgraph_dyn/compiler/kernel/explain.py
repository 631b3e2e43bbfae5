"""Why a kernel answers nan, and what else is wrong with states: sentences in names of joints and links.

Takes a problem's arguments, with any leading axes, and the guarded program of its kernel; gives a sentence for each
fault with the states that have it. Runs when it is asked for, not when kernels are called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.backends.llvm.machine import host
from factorgraph_dyn.compiler.backends.llvm.sincos import farthest
from factorgraph_dyn.compiler.guards import OPEN
from factorgraph_dyn.compiler.program import Program
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.equations.free import GRAVITY, PARAMETERS
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.description import QUATERNION_TOLERANCE
from factorgraph_dyn.model.doubts import doubtful_coordinates
from factorgraph_dyn.model.parameters import impossible_parameters
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.motion.closure import openness, worst_miss
from factorgraph_dyn.spatial import Floats

Where = npt.NDArray[np.bool_]
_LARGEST_SHOWN = 5  # failing states that a message lists


def explain(mechanism: Mechanism, problem: Problem, arguments: Mapping[str, Floats], program: Program) -> list[str]:
    """What is wrong with states, each fault where nothing before explains it; empty where nothing is.

    Args:
        mechanism: The mechanism.
        problem: What the kernel computes.
        arguments: By name, all with the same leading axes.
        program: The kernel's program with guards.
    """
    batch = arguments["q"].shape[:-1]
    flat = {name: array.reshape(*batch, -1) for name, array in arguments.items()}
    finite = {name: np.asarray(np.isfinite(array).all(axis=-1)) for name, array in flat.items()}
    found = [f"{name} is not finite{_where(np.asarray(~good))}." for name, good in finite.items() if not good.all()]
    explained = np.asarray(~np.logical_and.reduce(list(finite.values())))
    for sentence, failed, refused in _faults(mechanism, problem, arguments, explained):
        if np.any(failed):
            found.append(f"{sentence}{_where(failed)}.")
            explained = explained | failed if refused else explained
    found += [f"{sentence}{_where(failed)}." for sentence, failed in _impossible(mechanism, problem, arguments)]
    return found + _refusals(program, flat, explained)


def _impossible(mechanism: Mechanism, problem: Problem, arguments: Mapping[str, Floats]) -> Iterator[tuple[str, Where]]:
    """A sentence for every link, joint and effect whose parameters no body and no joint has, and where they are so."""
    length = natural(mechanism).length
    for k, link in enumerate(problem.free.links):
        wrong = impossible_parameters(arguments[PARAMETERS][..., k, :], length)
        if wrong.any():
            yield (
                f"The parameters of link {link!r} are those of no body: a negative mass, or an inertia that no mass "
                "distribution has. They are used as given"
            ), wrong  # fmt: skip
    for name in problem.free.others:
        negative = np.asarray((arguments[name] < 0).any(axis=-1))
        if name != GRAVITY and negative.any():
            yield f"{name} is negative: it drives where it should hold. It is used as given", negative


def _faults(
    mechanism: Mechanism, problem: Problem, arguments: Mapping[str, Floats], skipped: Where
) -> Iterator[tuple[str, Where, bool]]:
    """Sentences, where each holds, and whether nothing more need be said about the states where it does."""
    q = arguments["q"]
    for joint in mechanism.movable_joints:
        if joint.type.has_quaternion:
            length = np.linalg.norm(q[..., mechanism.q_slices[joint.name]][..., -4:], axis=-1)
            named = f"The quaternion (x, y, z, w) of joint {joint.name!r} has length"
            yield f"{named} 0 and means no rotation: start from mechanism.neutral()", np.asarray(length == 0.0), True
            off = (np.abs(length - 1.0) > QUATERNION_TOLERANCE) & (length > 0.0) & ~skipped
            worst = length[off][np.abs(np.log(length[off])).argmax()] if np.any(off) else 1.0
            yield (
                f"{named} {worst:.6g}; it is taken for the unit one along it. Divide it by its length",
                np.asarray(off),
                False,
            )
    for sentence, where in doubtful_coordinates(mechanism, q):
        yield sentence, where & ~skipped, False
    if mechanism.is_closed_kind and not problem.tree_only:
        yield _missed_closure(mechanism, arguments, skipped)


def _missed_closure(mechanism: Mechanism, arguments: Mapping[str, Floats], skipped: Where) -> tuple[str, Where, bool]:
    """The loop or coupling that the worst state misses, by how much, what is allowed, and where kernels refuse."""
    q = arguments["q"]
    v, parts = arguments.get("v", np.zeros((*q.shape[:-1], mechanism.nv))), np.zeros(q.shape[:-1])
    for state in np.ndindex(parts.shape):
        parts[state] = 0.0 if skipped[state] else _openness(mechanism, q[state], v[state])
    is_open = np.asarray(parts > 1.0)
    if not is_open.any():
        return "", is_open, True
    worst = np.unravel_index(int(parts.argmax()), parts.shape)
    miss = worst_miss(mechanism, q[worst], v[worst])
    line = f"The kernel answers up to {OPEN:g} rad and {OPEN * mechanism.size:.3g} m, and as great a part of the speed"
    return f"{miss} {line}", is_open, True


def _openness(mechanism: Mechanism, q: Floats, v: Floats) -> float:
    with np.errstate(all="ignore"):
        part = openness(mechanism, q, v)
    return part if np.isfinite(part) else 0.0


def _refusals(program: Program, arguments: Mapping[str, Floats], explained: Where) -> list[str]:
    """A sentence for every guard that is the first to refuse some state; those after it only follow."""
    columns = [array[..., k] for array in arguments.values() for k in range(array.shape[-1])]
    interpreter, found = Interpreter(program, columns), []
    limit = farthest(fma=host().fma)
    angles = [np.abs(interpreter.value(angle)) for angle in program.sines_and_cosines]
    far = np.asarray(np.logical_or.reduce([angle > limit for angle in angles]) & ~explained)
    if far.any():
        found.append(
            f"An angle is larger than {limit:g} rad, where it has no digits left{_where(far)}; take off turns."
        )
        explained = explained | far
    for guard, failed in zip(program.guards, interpreter.failures(), strict=True):
        failed = np.asarray(failed & ~explained)
        if failed.any():
            explained = explained | failed
            sizes = np.abs(np.broadcast_to(interpreter.value(guard.ref), failed.shape))[failed]
            worst, relation = (sizes.max(), "at most") if guard.small else (sizes.min(), "more than")
            found.append(
                f"The {guard.label} is {worst:.3g}; it has to be {relation} {guard.threshold:.3g}{_where(failed)}."
            )
    return found


def _where(failed: Where) -> str:
    """Which states of a batch a message is about."""
    if failed.ndim == 0:
        return ""
    places = np.argwhere(failed)
    shown = ", ".join(str(tuple(p.tolist()) if len(p) > 1 else int(p[0])) for p in places[:_LARGEST_SHOWN])
    more = f" and {len(places) - _LARGEST_SHOWN} more" if len(places) > _LARGEST_SHOWN else ""
    return f" at states {shown}{more}"
