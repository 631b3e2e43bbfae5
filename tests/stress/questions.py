"""Questions about a mechanism, how the package answers them, and what the oracle says.

A question is asked of the graph (``fgd.forward_dynamics`` and so on) or of a compiled kernel, at every state of a
recipe. Everything in it goes by joint and link names, so that it survives when the shrinker takes parts away.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import factorgraph_dyn as fgd
from tests.stress.constraints import is_faint
from tests.stress.kinematics import array, slices
from tests.stress.oracle import ROUNDING, Answer, Oracle, freedom_units, own_length
from tests.stress.recipe import Recipe, State, stacked

PROBLEMS = ("forward", "inverse", "hybrid", "iwim", "mass_matrix", "inverse_mass_matrix")
DERIVED = ("derivatives", "parameters", "assembly", "branches")  # of forward or inverse dynamics
FURTHER = (*DERIVED[:2], "kinematics", "rollout", *DERIVED[2:], "estimate")  # asked now and then, see `further`
MATRICES = ("iwim", "mass_matrix", "inverse_mass_matrix")
NAMED = ("rnea", "aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")
SEARCH = "search"
SHUFFLED = "shuffled"
REPEATED = 9  # times a batch of one state, so that there is more than one vector of them
SEARCH_BUDGET = 4.0  # seconds; rounds end it sooner and make it repeatable


@dataclass
class Question:
    """What is asked.

    Attributes:
        way: "graph" or "kernel".
        problem: One of PROBLEMS or FURTHER.
        ordering: None for the default, a name, SHUFFLED (a random permutation), SEARCH (one that a search found).
        known: Of hybrid problems, whether a is given, one boolean a freedom, by joint.
        actuated: Joints with motors, or None.
        outputs: What a kernel shall give, or the graph's results to look at; None for the usual ones.
        method: Of the graph's matrices, or the integrator.
        seed: Of the permutation, or of what else is drawn.
        of: Of further questions, the problem that they are about.
    """

    way: str
    problem: str
    ordering: str | None = None
    known: dict = field(default_factory=dict)
    actuated: list | None = None
    outputs: list | None = None
    method: str | None = None
    seed: int = 0
    of: str = ""


@dataclass
class Case:
    """A question at one state: the arguments, the oracle's answers by result, and what further questions give."""

    state: State
    a: np.ndarray
    tau: np.ndarray
    a_known: np.ndarray
    tau_known: np.ndarray
    answers: dict[str, Answer]
    condition: float
    regular: bool
    given: dict = field(default_factory=dict)


def cases_of(recipe: Recipe, mechanism, states: list[State], question: Question) -> list[Case]:
    return [case_of(recipe, mechanism, state, question) for state in states]


def case_of(recipe: Recipe, mechanism, state: State, question: Question) -> Case:
    """The question at one state."""
    nv = mechanism.nv
    everything, nothing = np.ones(nv, dtype=bool), np.zeros(nv, dtype=bool)
    if question.problem in MATRICES:
        return _matrix_case(mechanism, state, question)
    oracle = Oracle(mechanism, state.q, state.v, state.wrenches)
    tau, a = state.tau, stacked(recipe, "a")
    closed = bool(mechanism.loops or mechanism.couplings)
    sought = everything
    if question.problem == "inverse" and question.actuated is not None:
        sought = entries_of(mechanism, question.actuated)
        tau = np.where(sought, tau, 0.0)
    possible = True
    # Accelerations have to keep loops closed, and to be what motors cause.
    if question.problem != "forward" and (closed or question.actuated is not None):
        caused = oracle.ask(a, tau, nothing, everything)
        possible = _is_regular(caused)
        value, bound = caused["a"].value, caused["a"].bound
        a = np.asarray(np.where(np.abs(value) > ROUNDING * bound, value, 0), dtype=float)  # what nothing causes is zero
    a_known, tau_known = {
        "forward": (nothing, everything),
        "inverse": (everything, ~sought),
        "hybrid": (known := known_of(mechanism, question), ~known),
    }[question.problem]
    answered = oracle.ask(a, tau, a_known, tau_known)
    answers = {name: answered[name] for name in ("a", "tau", *(question.outputs or ()))}
    condition = answered.condition if possible and not _is_open(oracle, question) else np.inf
    return Case(state, a, tau, a_known, tau_known, answers, condition, _is_regular(answered))


def _is_open(oracle: Oracle, question: Question) -> bool:
    """Whether the graph, which warns then, may take as free what loops hold faintly, or finds no digits of inertia."""
    if question.way != "graph" or not oracle.rows:
        return False
    return is_faint(oracle.rows, oracle.units) or (question.problem != "inverse" and oracle.has_needles)


def _is_regular(answered) -> bool:
    unique = answered["a"].unique and answered["tau"].unique
    return unique and answered.contradiction < 1e-10 and answered.solved.own_error < 1e-12


def _matrix_case(mechanism, state: State, question: Question) -> Case:
    nv = mechanism.nv
    oracle = Oracle(mechanism, state.q, np.zeros(nv))
    if question.problem == "iwim":
        sought = entries_of(mechanism, motors(mechanism, question))
        answer, condition = oracle.respond(np.flatnonzero(sought))
    elif question.problem == "inverse_mass_matrix":
        answer, condition = oracle.tree().respond(np.arange(nv))
    else:
        answer, condition = Answer(oracle.M, oracle.M_terms, True), 1.0
    if question.problem == "iwim" and _is_open(oracle, question):
        condition = np.inf
    none = np.zeros(nv, dtype=bool)
    name = response(question)
    return Case(state, np.zeros(nv), np.zeros(nv), none, none, {name: answer}, condition, answer.unique)


def motors(mechanism, question: Question) -> list[str]:
    if question.actuated is not None:
        return question.actuated
    return list(mechanism.motors)


def entries_of(mechanism, names) -> np.ndarray:
    mask = np.zeros(mechanism.nv, dtype=bool)
    at = slices(mechanism, 1)
    for name in names:
        mask[at[name]] = True
    return mask


def known_of(mechanism, question: Question) -> np.ndarray:
    mask = np.zeros(mechanism.nv, dtype=bool)
    at = slices(mechanism, 1)
    for name, flags in question.known.items():
        mask[at[name]] = flags
    return mask


# ---- what the package says


def ask_graph(mechanism, case: Case, question: Question, ordering) -> dict[str, np.ndarray]:
    """The graph's answer, by result."""
    q, v, state = case.state.q, case.state.v, case.state
    words = {} if ordering is None else {"ordering": ordering}
    if state.wrenches and question.problem not in MATRICES:
        words["external_wrenches"] = state.wrenches
    if question.problem == "forward":
        solution = fgd.forward_dynamics(mechanism, q, v, case.tau, **words)
    elif question.problem == "inverse":
        solution = fgd.inverse_dynamics(mechanism, q, v, case.a, actuated=question.actuated, **words)
    elif question.problem == "hybrid":
        a = np.where(case.a_known, case.a, np.nan)
        tau = np.where(case.tau_known, case.tau, np.nan)
        solution = fgd.hybrid_dynamics(mechanism, q, v, a=a, tau=tau, **words)
    else:
        return _graph_matrix(mechanism, q, question)
    found = {"a": solution.a, "tau": solution.tau}
    for name in question.outputs or ():
        if name not in found:
            kind, owner = name[0], name[2:-1]
            found[name] = {"A": solution.accelerations, "V": solution.twists, "F": solution.wrenches}[kind][owner]
    return found


def _graph_matrix(mechanism, q, question: Question) -> dict[str, np.ndarray]:
    words = {} if question.method is None else {"method": question.method}
    if question.problem == "iwim":
        return {"a": fgd.iwim(mechanism, q, actuated=question.actuated, **words)}
    if question.problem == "mass_matrix":
        return {"tau": fgd.mass_matrix(mechanism, q, **words)}
    return {"a": fgd.inverse_mass_matrix(mechanism, q, **words)}


def compile_kernel(mechanism, question: Question, wrenches, ordering):
    words = {}
    if question.problem == "hybrid":
        words["known_accelerations"] = known_of(mechanism, question)
    if question.problem in ("inverse", "iwim"):
        words["actuated"] = question.actuated
    if question.problem not in MATRICES:
        words["outputs"] = question.outputs
        words["external_wrenches"] = list(wrenches)
    return fgd.compile(mechanism, question.problem, ordering=ordering, **words)


def ask_kernel(kernel, cases: list[Case], question: Question) -> list[dict[str, np.ndarray]]:
    """The kernel's answers at all states, as one batch; it is repeated where states share what is loaded once."""
    arguments: dict[str, Any] = {
        "q": np.stack([case.state.q for case in cases]),
        "v": np.stack([case.state.v for case in cases]),
        "a": np.stack([case.a for case in cases]),
        "tau": np.stack([case.tau for case in cases]),
    }
    for link in cases[0].state.wrenches:
        arguments[f"wrench[{link}]"] = np.stack([np.asarray(case.state.wrenches[link], float) for case in cases])
    if "parameters" in cases[0].given:
        bodies = np.stack([case.given["parameters"] for case in cases])
        if (bodies == bodies[0]).all():
            arguments = {name: np.concatenate([values] * REPEATED) for name, values in arguments.items()}
            bodies = bodies[0]
        arguments["parameters"] = bodies
    results = kernel(*(arguments[name] for name in kernel.arguments))
    results = results if isinstance(results, tuple) else (results,)
    names = (response(question),) if question.problem in MATRICES else kernel.outputs
    last = range(-len(cases), 0)
    return [{name: result[i] for name, result in zip(names, results, strict=True)} for i in last]


def response(question: Question) -> str:
    """What responds to units, by which the answer of a matrix is called here."""
    return "tau" if question.problem == "mass_matrix" else "a"


def chosen_ordering(mechanism, cases: list[Case], question: Question):
    """The ordering to ask with; permutations and searches start from what the default ordering lists."""
    if question.ordering == SHUFFLED:
        plain = Question(**{**vars(question), "ordering": None})
        if question.way == "kernel":
            names = compile_kernel(mechanism, plain, cases[0].state.wrenches, None).ordering.variables
        else:
            names = default_names(mechanism, cases[0], plain)
        return list(np.random.default_rng(question.seed).permutation(list(names)))
    if question.ordering == SEARCH:
        words = {}
        if question.problem == "hybrid":
            known = [name for name, flags in question.known.items() if all(flags)]
            words["known_accelerations"] = known
        if question.problem in ("inverse", "iwim"):
            words["actuated"] = question.actuated
        with ThreadPoolExecutor(1) as pool:
            return fgd.search_orderings(
                mechanism,
                question.problem,
                budget=SEARCH_BUDGET,
                executor=pool,
                seed=question.seed,
                lanes=1,
                rounds=1,
                progress=False,
                save=False,
                **words,
            )
    return question.ordering


def default_names(mechanism, case: Case, question: Question) -> list[str]:
    q, v = case.state.q, case.state.v
    if question.problem == "forward":
        return fgd.forward_dynamics(mechanism, q, v, case.tau).ordering.variables
    if question.problem == "inverse":
        return fgd.inverse_dynamics(mechanism, q, v, case.a, actuated=question.actuated).ordering.variables
    a, tau = np.where(case.a_known, case.a, np.nan), np.where(case.tau_known, case.tau, np.nan)
    return fgd.hybrid_dynamics(mechanism, q, v, a=a, tau=tau).ordering.variables


def result_units(mechanism, name: str, question: Question) -> np.ndarray:
    """Units of a result's entries that make them comparable: turning and sliding ones differ by a length."""
    v, length = freedom_units(mechanism), own_length(mechanism)
    if question.problem in MATRICES:
        columns = v[entries_of(mechanism, motors(mechanism, question))] if question.problem == "iwim" else v
        return np.outer(v, columns) if name == "a" else 1 / np.outer(v, columns)
    if name in ("a", "tau"):
        return v if name == "a" else 1 / v
    lengths = array([1, 1, 1, length, length, length])
    return lengths if name[0] in "AV" else length / lengths


def quietly(function, *arguments):
    """The result, and whether a near-singular state was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, any(issubclass(entry.category, fgd.NearSingularWarning) for entry in caught)
