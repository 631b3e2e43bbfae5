"""Make a failure small: take parts away and numbers' digits off for as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

import numpy as np

from tests.stress.asking import mobility
from tests.stress.kinematics import SIZES
from tests.stress.questions import FURTHER, Question, entries_of
from tests.stress.recipe import EFFECTS, Recipe, mechanism_of, states_of
from tests.stress.verdicts import Verdict, judge

Pair = tuple[Recipe, Question]
VECTORS = ("q", "v", "a", "tau")


def shrink(recipe: Recipe, failure: Verdict, seconds: float = 60.0) -> tuple[Recipe, Question, Verdict]:
    """The smallest recipe and question found within some seconds that fail like the given verdict, and how."""
    end = monotonic() + seconds
    best = _at_one_state(recipe, failure), failure.question
    found = fails_alike(*best, failure)
    if found is None:
        best = recipe, failure.question
        found = fails_alike(*best, failure) or failure
    improved = True
    while improved and monotonic() < end:
        improved = False
        for step in (_fewer_parts, _plainer_question, _fewer_effects, _plainer_numbers):
            changed = True
            while changed and monotonic() < end:
                changed = False
                for candidate in step(*best):
                    if monotonic() > end:
                        break
                    verdict = fails_alike(*candidate, failure)
                    if verdict is not None:
                        best, found = candidate, verdict
                        changed = improved = True
                        break
    return *best, found


def fails_alike(recipe: Recipe, question: Question, failure: Verdict) -> Verdict | None:
    """The verdict that resembles the failure, if there is one: an error is to stay within some decades."""
    least, most = min(1e-2 * failure.error, 1e-3), max(1e2 * failure.error, 1.0)
    try:
        if not _is_well_posed(recipe, question):
            return None
        verdicts = judge(recipe, question)
    except Exception:  # what is no mechanism any more is no failure
        return None
    return next((v for v in verdicts if v.signature == failure.signature and least <= v.error <= most), None)


def _is_well_posed(recipe: Recipe, question: Question) -> bool:
    """Whether the mechanism moves, and motors are as many as its freedoms where they shall cause any motion."""
    mechanism = mechanism_of(recipe)
    freedoms, _ = mobility(mechanism, states_of(recipe, mechanism)[0])
    if "inverse" not in (question.problem, question.of) or question.actuated is None:
        return freedoms > 0 and question.actuated != []
    return 0 < freedoms == int(entries_of(mechanism, question.actuated).sum())


def _at_one_state(recipe: Recipe, failure: Verdict) -> Recipe:
    mechanism = mechanism_of(recipe)
    state = states_of(recipe, mechanism)[max(failure.state, 0)]
    moved = recipe.copy()
    moved.further = 0
    for name, joint in moved.joints.items():
        joint["q"] = state.q[mechanism.q_slices[name]]
        joint["v"] = state.v[mechanism.v_slices[name]]
    return moved


def _changed(pair: Pair, change: Callable[[Recipe], None]) -> Pair:
    recipe = pair[0].copy()
    change(recipe)
    return recipe, _fitting(recipe, pair[1])


def _fitting(recipe: Recipe, question: Question) -> Question:
    """The question without what the recipe has no more."""
    joints = {name for name, joint in recipe.joints.items() if SIZES[joint["kind"]][1]}
    known = {n: flags for n, flags in question.known.items() if n in joints and len(flags) == _nv(recipe, n)}
    actuated = None if question.actuated is None else [name for name in question.actuated if name in joints]
    owners = {*recipe.links, *recipe.joints, *recipe.loops}
    outputs = question.outputs
    if outputs is not None:
        outputs = [name for name in outputs if "[" not in name or name[2:-1] in owners] or None
    return replace(question, known=known, actuated=actuated, outputs=outputs)


def _nv(recipe: Recipe, joint: str) -> int:
    return SIZES[recipe.joints[joint]["kind"]][1]


# ---- parts


def _fewer_parts(recipe: Recipe, question: Question) -> Iterator[Pair]:
    pair = recipe, question
    for kind in ("wrenches", "couplings", "loops"):
        for name in getattr(recipe, kind):
            yield _changed(pair, lambda r, kind=kind, name=name: getattr(r, kind).pop(name))
    for name in reversed(recipe.joints):
        if not any(name in (c["joint"], c["source"]) for c in recipe.couplings.values()):
            yield _changed(pair, lambda r, name=name: contract(r, name))
    for name, joint in recipe.joints.items():
        for kind in ("fixed", "revolute"):
            coupled = any(name in (c["joint"], c["source"]) for c in recipe.couplings.values())
            if SIZES[joint["kind"]][1] > SIZES[kind][1] and not (coupled and kind == "fixed"):
                yield _changed(pair, lambda r, name=name, kind=kind: _become(r, name, kind))
    for name, joint in recipe.joints.items():
        if joint["kind"] in ("continuous", "helical"):
            yield _changed(pair, lambda r, name=name: r.joints[name].update(kind="revolute", pitch=0.0))
    for name, loop in recipe.loops.items():
        for kind in ("fixed", "revolute", "spherical"):
            if loop["kind"] != kind and loop["kind"] not in ("fixed", "revolute", "spherical"):
                yield _changed(pair, lambda r, name=name, kind=kind: r.loops[name].update(kind=kind, axis=_z()))


def contract(recipe: Recipe, name: str) -> None:
    """Take a joint and its child away; what hangs on the child comes to hang on the parent."""
    gone = recipe.joints.pop(name)
    child, parent = gone["child"], gone["parent"]
    del recipe.links[child]
    recipe.wrenches.pop(child, None)
    for joint in recipe.joints.values():
        if joint["parent"] == child:
            joint["parent"] = parent
    for key, loop in list(recipe.loops.items()):
        for end in ("predecessor", "successor"):
            if loop[end] == child:
                loop[end] = parent
        if loop["predecessor"] == loop["successor"]:
            del recipe.loops[key]


def _become(recipe: Recipe, name: str, kind: str) -> None:
    joint = recipe.joints[name]
    nq, nv = SIZES[kind]
    joint.update(kind=kind, axis=_z(), pitch=0.0, q=joint["q"][:nq])
    for vector in ("v", "a", "tau"):
        joint[vector] = joint[vector][:nv]
    for effect in EFFECTS:
        joint.pop(effect, None)
    joint.pop("steps", None)
    if recipe.further:
        joint["steps"] = [np.zeros(nv)] * recipe.further


def _z() -> np.ndarray:
    return np.array([0.0, 0.0, 1.0])


# ---- the question


def _plainer_question(recipe: Recipe, question: Question) -> Iterator[Pair]:
    for word in () if question.problem in FURTHER else ("ordering", "outputs", "method"):
        if getattr(question, word) is not None:
            yield recipe, replace(question, **{word: None})
    if question.outputs is not None and len(question.outputs) > 1:
        for name in question.outputs:
            yield recipe, replace(question, outputs=[name])
    for name, flags in question.known.items():
        if any(flags):
            yield recipe, replace(question, known={**question.known, name: [False] * len(flags)})
    if question.problem == "hybrid" and not any(any(flags) for flags in question.known.values()):
        yield recipe, replace(question, problem="forward", known={})


# ---- effects


def _fewer_effects(recipe: Recipe, question: Question) -> Iterator[Pair]:
    pair = recipe, question
    if any(recipe.gravity):
        yield _changed(pair, lambda r: setattr(r, "gravity", (0.0, 0.0, 0.0)))
    for vector in ("v", "tau", "a"):
        if any(np.any(joint[vector]) for joint in recipe.joints.values()):
            yield _changed(pair, lambda r, vector=vector: _zero_all(r, vector))
    for name, joint in recipe.joints.items():
        for effect in ("stiffness", "friction", "damping", "armature"):
            if effect in joint:
                yield _changed(pair, lambda r, name=name, effect=effect: _drop_effect(r, name, effect))


def _zero_all(recipe: Recipe, vector: str) -> None:
    for joint in recipe.joints.values():
        joint[vector] = 0.0 * joint[vector]


def _drop_effect(recipe: Recipe, name: str, effect: str) -> None:
    recipe.joints[name].pop(effect)
    if effect == "stiffness":
        recipe.joints[name].pop("rest", None)


# ---- numbers


def rounded(values, digits: int):
    """The values with so many significant digits of the largest."""
    values = np.asarray(values, dtype=float)
    size = np.abs(values).max(initial=0.0)
    if not size:
        return values
    unit = 10.0 ** (np.floor(np.log10(size)) - digits + 1)
    return np.array([float(f"{round(x / unit)}e{round(np.log10(unit))}") for x in values.flat]).reshape(values.shape)


def _plainer_numbers(recipe: Recipe, question: Question) -> Iterator[Pair]:
    pair = recipe, question
    for digits in (1, 3):
        yield from _if_new(pair, lambda r, digits=digits: _round_all(r, digits))
    for name in recipe.links:
        if recipe.links[name]:
            yield from _if_new(pair, lambda r, name=name: _unit_link(r.links[name]))
            yield from _if_new(pair, lambda r, name=name: r.links[name].update(com=np.zeros(3)))
            yield from _if_new(
                pair, lambda r, name=name: r.links[name].update(inertia=np.diag(np.diag(r.links[name]["inertia"])))
            )
            yield from _if_new(pair, lambda r, name=name: _round_link(r.links[name], 1))
    for group in ("joints", "loops"):
        for name in getattr(recipe, group):
            for plain in (_no_turn, _no_way, _quarter_turn, _plain_axis, _round_place):
                yield from _if_new(pair, lambda r, g=group, n=name, plain=plain: plain(getattr(r, g)[n]))
    for name, joint in recipe.joints.items():
        for vector in VECTORS:
            if joint["kind"] in ("spherical", "floating") and vector == "q":
                yield from _if_new(pair, lambda r, name=name: _no_rotation(r.joints[name]))
                continue
            yield from _if_new(pair, lambda r, n=name, x=vector: r.joints[n].update({x: 0.0 * r.joints[n][x]}))
            yield from _if_new(pair, lambda r, n=name, x=vector: r.joints[n].update({x: rounded(r.joints[n][x], 1)}))
        for effect in EFFECTS:
            if effect in joint:
                yield from _if_new(
                    pair, lambda r, n=name, x=effect: r.joints[n].update({x: rounded(r.joints[n][x], 1)})
                )


def _if_new(pair: Pair, change: Callable[[Recipe], None]) -> Iterator[Pair]:
    candidate = _changed(pair, change)
    if repr(candidate[0]) != repr(pair[0]):
        yield candidate


def _round_all(recipe: Recipe, digits: int) -> None:
    for body in recipe.links.values():
        if body:
            _round_link(body, digits)
    for joint in recipe.joints.values():
        for vector in VECTORS:
            if not (vector == "q" and joint["kind"] in ("spherical", "floating")):
                joint[vector] = rounded(joint[vector], digits)
    for part in (*recipe.joints.values(), *recipe.loops.values()):
        _round_place(part, digits)
    recipe.gravity = tuple(rounded(recipe.gravity, digits).tolist())


def _round_link(body: dict, digits: int) -> None:
    body.update(
        mass=float(rounded([body["mass"]], digits)[0]),
        com=rounded(body["com"], digits),
        inertia=rounded(body["inertia"], digits),
    )


def _unit_link(body: dict) -> None:
    body.update(mass=1.0, com=np.zeros(3), inertia=np.eye(3))


def _no_turn(part: dict) -> None:
    part["placement"] = part["placement"].copy()
    part["placement"][:3, :3] = np.eye(3)


def _quarter_turn(part: dict) -> None:
    nearest = np.round(part["placement"][:3, :3])
    if np.allclose(nearest @ nearest.T, np.eye(3)) and np.linalg.det(nearest) > 0:
        part["placement"] = part["placement"].copy()
        part["placement"][:3, :3] = nearest


def _no_way(part: dict) -> None:
    part["placement"] = part["placement"].copy()
    part["placement"][:3, 3] = 0.0


def _round_place(part: dict, digits: int = 1) -> None:
    part["placement"] = part["placement"].copy()
    part["placement"][:3, 3] = rounded(part["placement"][:3, 3], digits)


def _plain_axis(part: dict) -> None:
    rows = np.atleast_2d(part["axis"])
    nearest = [np.eye(3)[int(np.argmax(np.abs(row)))] for row in rows]
    part["axis"] = nearest[0] if np.ndim(part["axis"]) == 1 else np.stack(nearest)


def _no_rotation(joint: dict) -> None:
    joint["q"] = np.concatenate([rounded(joint["q"][:-4], 1), [0.0, 0.0, 0.0, 1.0]])
