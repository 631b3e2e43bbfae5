"""A failure as a script that needs the package and NumPy only, with the expected numbers written in it."""

from __future__ import annotations

import numpy as np

from tests.stress.further import states_for
from tests.stress.questions import (
    FURTHER,
    MATRICES,
    SEARCH,
    SHUFFLED,
    Question,
    cases_of,
    chosen_ordering,
    known_of,
    response,
)
from tests.stress.recipe import EFFECTS, Recipe, mechanism_of, stacked, states_of
from tests.stress.verdicts import TOLERANCE, Verdict, result_units


def write_script(recipe: Recipe, question: Question, verdict: Verdict, origin: str) -> str:
    """The script's text; it ends with 1 where the answer is refused or off by more than the tolerance."""
    mechanism = mechanism_of(recipe)
    states = states_of(recipe, mechanism)
    if question.problem in FURTHER:
        state = states_for(mechanism, states, question)[max(verdict.state, 0)]
        return _bare(recipe, mechanism, state, question, verdict, origin)
    case = cases_of(recipe, mechanism, states, question)[max(verdict.state, 0)]
    names = list(case.answers) if question.outputs is None else question.outputs
    if question.outputs is None and question.problem not in MATRICES:
        names = {"forward": ["a"], "inverse": ["tau"], "hybrid": ["a", "tau"]}[question.problem]
    names = [name for name in names if case.answers[name].unique]
    words = verdict.words.splitlines()[0][:100] if verdict.words else f"error {verdict.error:.1e} of {verdict.result}"
    lines = [
        f'"""{question.way} {question.problem}: {verdict.kind}, {words}',
        "",
        f"The condition is {verdict.condition:.0e}. From {origin}.",
        '"""',
        "",
        "import sys",
        "",
        "import numpy as np",
        "",
        "import factorgraph_dyn as fgd",
        "",
        *_mechanism(mechanism),
        *_arguments(case, question),
        *_call(mechanism, case, question, names),
        "expected = {",
        *(f"    {name!r}: {literal(case.answers[name].value)}," for name in names),
        "}",
        "units = {  # that make entries which turn and entries which slide comparable",
        *(f"    {name!r}: {literal(result_units(mechanism, name, question))}," for name in names),
        "}",
        "worst = 0.0",
        "for name in expected:",
        "    unit = np.array(units[name])",
        "    right = np.array(expected[name])",
        "    size = max(np.abs(right / unit).max(initial=0.0), 1e-300)",
        "    error = np.abs((found[name] - right) / unit).max(initial=0.0) / size",
        '    print(name, "found", found[name], "expected", right, "relative error", error)',
        "    worst = max(worst, error) if np.isfinite(error) else np.inf",
        f"sys.exit(int(not worst < {TOLERANCE:g}))",
        "",
    ]
    return "\n".join(lines)


def _bare(recipe: Recipe, mechanism, state, question: Question, verdict: Verdict, origin: str) -> str:
    """The mechanism and the state of a further question, which only the stress test itself can answer."""
    lines = [
        f'"""{verdict.kind}, error {verdict.error:.1e}, condition {verdict.condition:.0e}. {verdict.words[:200]!r}',
        "",
        f"From {origin}. {question}",
        '"""',
        "",
        "import numpy as np",
        "",
        "import factorgraph_dyn as fgd",
        "",
        *_mechanism(mechanism),
        f"q, v = np.array({literal(state.q)}), np.array({literal(state.v)})",
        f"a, tau = np.array({literal(stacked(recipe, 'a'))}), np.array({literal(state.tau)})",
        f"wrenches = { {name: np.asarray(w).tolist() for name, w in state.wrenches.items()}!r}",
        "",
    ]
    return "\n".join(lines)


def literal(value) -> str:
    """Numbers as Python source that reads back the same."""
    return repr((np.asarray(value, dtype=float) + 0.0).tolist())  # + 0.0: no negative zeros


def _mechanism(mechanism) -> list[str]:
    lines = ["links = ["]
    for link in mechanism.links:
        words = [repr(link.name)]
        if link.mass or np.any(link.inertia):
            words += [repr(float(link.mass)), literal(link.com), literal(link.inertia)]
        lines.append(f"    fgd.Link({', '.join(words)}),")
    lines += ["]", "joints = ["]
    lines += [f"    {_joint(joint)}," for joint in mechanism.joints]
    lines.append("]")
    for kind, written, parts in (("loops", _loop, mechanism.loops), ("couplings", _coupling, mechanism.couplings)):
        lines += [f"{kind} = [", *(f"    {written(part)}," for part in parts), "]"]
    gravity = literal(mechanism.gravity)
    lines.append(f'mechanism = fgd.Mechanism("stress", links, joints, loops, couplings, gravity={gravity})')
    return lines


def _joint(joint) -> str:
    words = [repr(joint.name), repr(joint.kind), repr(joint.parent), repr(joint.child)]
    words.append(f"placement={literal(joint.placement)}")
    words.append(f"axis={literal(joint.axis)}")
    if joint.pitch:
        words.append(f"pitch={joint.pitch!r}")
    words += [f"{effect}={literal(getattr(joint, effect))}" for effect in EFFECTS if np.any(getattr(joint, effect))]
    if not joint.actuated:
        words.append("actuated=False")
    return f"fgd.Joint({', '.join(words)})"


def _loop(loop) -> str:
    words = [repr(loop.name), repr(loop.kind), repr(loop.predecessor), repr(loop.successor)]
    words += [literal(loop.predecessor_placement), literal(loop.successor_placement), literal(loop.axis)]
    return f"fgd.Loop({', '.join(words)}, pitch={loop.pitch!r})"


def _coupling(coupling) -> str:
    words = (coupling.name, coupling.joint, coupling.source, coupling.ratio, coupling.offset)
    return f"fgd.Coupling({', '.join(map(repr, words))})"


def _arguments(case, question: Question) -> list[str]:
    lines = [f"q = np.array({literal(case.state.q)})", f"v = np.array({literal(case.state.v)})"]
    lines += [f"a = np.array({literal(case.a)})", f"tau = np.array({literal(case.tau)})"]
    if case.state.wrenches:
        wrenches = ", ".join(f"{name!r}: np.array({literal(w)})" for name, w in case.state.wrenches.items())
        lines.append(f"wrenches = {{{wrenches}}}")
    return lines


def _call(mechanism, case, question: Question, names) -> list[str]:
    words = []
    ordering = question.ordering
    if ordering in (SHUFFLED, SEARCH):
        try:
            chosen = chosen_ordering(mechanism, [case], question)
            ordering = [str(name) for name in getattr(chosen, "variables", chosen)]
        except Exception:
            ordering = None
    if ordering is not None:
        words.append(f"ordering={ordering!r}")
    if question.problem in ("inverse", "iwim") and question.actuated is not None:
        words.append(f"actuated={question.actuated!r}")
    pushed = case.state.wrenches if question.problem not in MATRICES else {}
    if question.way == "kernel":
        return _kernel_call(mechanism, question, words, pushed)
    if pushed:
        words.append("external_wrenches=wrenches")
    if question.method is not None:
        words.append(f"method={question.method!r}")
    rest = "".join(f", {word}" for word in words)
    if question.problem in MATRICES:
        return [f"found = {{{response(question)!r}: fgd.{question.problem}(mechanism, q{rest})}}"]
    if question.problem == "hybrid":
        lines = [f"known = np.array({case.a_known.tolist()!r})"]
        given = "a=np.where(known, a, np.nan), tau=np.where(known, np.nan, tau)"
        lines.append(f"solution = fgd.hybrid_dynamics(mechanism, q, v, {given}{rest})")
    else:
        given = "tau" if question.problem == "forward" else "a"
        lines = [f"solution = fgd.{question.problem}_dynamics(mechanism, q, v, {given}{rest})"]
    lines.append('found = {"a": solution.a, "tau": solution.tau}')
    words = {"A": "accelerations", "V": "twists", "F": "wrenches"}
    lines += [f"found[{n!r}] = solution.{words[n[0]]}[{n[2:-1]!r}]" for n in names if n not in ("a", "tau")]
    return lines


def _kernel_call(mechanism, question: Question, words, pushed) -> list[str]:
    if question.problem == "hybrid":
        words.append(f"known_accelerations=np.array({known_of(mechanism, question).tolist()!r})")
    if question.outputs is not None and question.problem not in MATRICES:
        words.append(f"outputs={question.outputs!r}")
    if pushed:
        words.append(f"external_wrenches={list(pushed)!r}")
    rest = "".join(f", {word}" for word in words)
    names = repr([response(question)]) if question.problem in MATRICES else "kernel.outputs"
    given = '{"q": q, "v": v, "a": a, "tau": tau}'
    if pushed:
        given = '{"q": q, "v": v, "a": a, "tau": tau, **{f"wrench[{link}]": w for link, w in wrenches.items()}}'
    return [
        f"kernel = fgd.compile(mechanism, {question.problem!r}{rest})",
        f"given = {given}",
        "results = kernel(*(given[name] for name in kernel.arguments))",
        "results = results if isinstance(results, tuple) else (results,)",
        f"found = dict(zip({names}, results))",
    ]
