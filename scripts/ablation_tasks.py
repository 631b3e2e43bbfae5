"""The questions that ``ablate.py`` asks with and without a tool: those of the cases, and some to ordinary robots."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.problem import make_problem, problem_graph
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from scripts.validate_models import model_files
from tests.cases.case import Frozen, Outcome, all_cases, mechanism_of, outcomes
from tests.cases.writing import question_entry
from tests.stress.kinematics import array
from tests.stress.oracle import Answer, Oracle
from tests.stress.questions import Case, Question, entries_of

ROBOTS: dict[str, dict[str, Any]] = {
    "puma560": {"robot": "puma560"},
    "general_6r": {"robot": "general_6r"},
    "panda": {"robot": "panda"},
    "humanoid": {"robot": "humanoid"},
    "four_bar": {"robot": "four_bar"},
    "five_bar": {"robot": "five_bar"},
    "four_bar_chain": {"robot": "four_bar_chain"},
    "stewart": {"robot": "stewart"},
    "delta": {"robot": "delta"},
    **{
        name: {"example_robot_data": f"{path}.urdf"}
        for name, path in (
            ("ur5", "ur_description/urdf/ur5_robot"),
            ("kinova", "kinova_description/robots/kinova"),
            ("xarm7", "xarm_description/urdf/xarm7"),
            ("z1", "z1_description/urdf/z1"),
            ("so101", "so_arm_description/urdf/so101"),
            ("double_pendulum", "double_pendulum_description/urdf/double_pendulum_continuous"),
            ("finger_edu", "finger_edu_description/robots/finger_edu"),
            ("solo12", "solo_description/robots/solo12"),
            ("anymal", "anymal_c_simple_description/urdf/anymal"),
            ("laikago", "laikago_description/urdf/laikago"),
            ("hyq", "hyq_description/robots/hyq_no_sensors"),
            ("allegro", "allegro_hand_description/urdf/allegro_left_hand"),
            ("baxter", "baxter_description/urdf/baxter"),
            ("tiago", "tiago_description/robots/tiago_no_hand"),
            ("icub", "icub_description/robots/icub_reduced"),
            ("talos", "talos_data/robots/talos_reduced"),
        )
    },
}
HANDFUL = ("puma560", "panda", "four_bar", "five_bar", "double_pendulum", "ur5")
PROBLEMS = ("forward", "inverse", "hybrid", "iwim", "wrench", "contacts", "derivatives", "estimate")
ORDERINGS = ("aba", "crba", "rnea", "colamd", "metis")
STATES = 2  # random ones, beside the neutral one
SPECIAL = 40  # with angles at quarter turns, at most
SHUFFLED_JOINTS = 12  # of robots, up to which random orderings are tried: their code grows fast
NOISE = 0.1  # standard deviations of readings, in usual sizes
SECONDS = 40  # of computing for one question


@dataclass(frozen=True)
class Task:
    """A question with its verdicts of today.

    Attributes:
        name: Of the case or robot.
        label: Route, problem and ordering.
        content: What a case file has, with this question alone.
        is_robot: Whether it is one of the ordinary robots.
        route, problem, ordering, is_closed: Of the question and its mechanism.
    """

    name: str
    label: str
    content: dict[str, Any]
    is_robot: bool
    route: str
    problem: str
    ordering: Any
    is_closed: bool

    @property
    def key(self) -> str:
        """The name in tables."""
        return f"{self.name} {self.label}"


@dataclass(frozen=True)
class Found:
    """The answer to a task: a word for each state, operations of its kernels, and a message."""

    kinds: tuple[str, ...]
    operations: int
    message: str = ""


def case_tasks(word: str, slow: bool) -> Iterator[Task]:
    """The questions of the cases whose names have a word in them."""
    for case in all_cases():
        if word not in case.name or case.mechanism is None:
            continue
        for number, (entry, asked) in enumerate(zip(case.content["questions"], case.asked, strict=True)):
            if not asked.due and (slow or not asked.is_slow):
                content = {**case.content, "questions": [entry]}
                question = asked.question
                yield Task(
                    case.name, f"{number} {asked.name}", content, False, question.way,
                    question.problem, question.ordering, case.mechanism.is_closed_kind,
                )  # fmt: skip


def robot_tasks(
    names: Sequence[str], models: Path | None, problems: Sequence[str], orderings: Sequence[str], shuffled: int
) -> Iterator[Task]:
    """Questions to ordinary robots: every problem in every ordering that fits, by kernels, and once by the graph."""
    robots = {name: ROBOTS[name] for name in names}
    for path in model_files(models) if models else ():
        robots[path.stem] = {"file": str(path)}
    for name, description in robots.items():
        mechanism = mechanism_of(description)
        if mechanism is None:
            print(f"{name}: its package is not installed")
            continue
        states = _states(mechanism)
        for problem in problems:
            for question, extra in _questions(mechanism, problem, orderings, shuffled):
                count = 1 if problem == "estimate" else len(states)
                entry = question_entry(question, list(range(count)), "right", **extra)
                content = {"story": name, "mechanism": description, "states": states, "questions": [entry]}
                label = f"{question.way} {problem} {_named(question.ordering)}"
                yield Task(
                    name, label, content, True, question.way, problem, question.ordering, mechanism.is_closed_kind
                )


def _named(ordering: Any) -> str:
    return f"random {ordering[0]}.." if isinstance(ordering, list) else ordering or "default"


def _states(mechanism: fgd.Mechanism) -> list[dict[str, Any]]:
    """The neutral state at rest and random ones, with torques and the accelerations that motors cause."""
    rng, own, rate = np.random.default_rng(0), natural(mechanism), natural_rate(mechanism) or 1.0
    zero = np.zeros(mechanism.nv)
    places = [(mechanism.neutral(), zero), *(mechanism.random_state(rng) for _ in range(STATES))]
    special = sampled_states(mechanism)
    places += [(q, v) for q, v in zip(special.q[: special.special], special.v, strict=False)][1 : 1 + SPECIAL]
    found = []
    for q, v in places:
        tau = np.where(entries_of(mechanism, mechanism.motors), rng.normal(size=mechanism.nv), 0.0)
        tau = tau * own.tau * rate**2
        none = np.zeros(mechanism.nv, dtype=bool)
        a = np.asarray(Oracle(mechanism, q, v).ask(zero, tau, none, ~none)["a"].value, float)
        found.append({"q": q.tolist(), "v": v.tolist(), "tau": tau.tolist(), "a": a.tolist()})
    return found


def _questions(
    mechanism: fgd.Mechanism, problem: str, orderings: Sequence[str], shuffled: int
) -> Iterator[tuple[Question, dict[str, Any]]]:
    motors = list(mechanism.motors) if mechanism.is_closed_kind else None
    movable = [joint.name for joint in mechanism.movable_joints]
    known = {movable[0]: [True] * (mechanism.v_slices[movable[0]].stop - mechanism.v_slices[movable[0]].start)}
    plain = {
        "forward": Question("kernel", "forward"),
        "inverse": Question("kernel", "inverse", actuated=motors),
        "hybrid": Question("kernel", "hybrid", known=known),
        "iwim": Question("kernel", "iwim"),
        "wrench": Question("kernel", "forward", outputs=["a", f"F[{mechanism.joints[0].name}]"]),
        "contacts": Question("kernel", "iwim"),
        "derivatives": Question("kernel", "derivatives", of="forward", seed=1),
        "estimate": Question("kernel", "estimate", outputs=["a", "tau"]),
    }[problem]
    extra = _sensors(mechanism) if problem == "estimate" else {}
    if problem == "contacts":
        extra = {"contact": mechanism.joints[-1].child}
    if problem not in ("contacts", "wrench"):
        yield Question(**{**vars(plain), "way": "graph"}), extra
    yield plain, extra
    if problem in ("derivatives", "estimate"):
        return
    for ordering in orderings:
        if ordering != "rnea" or problem == "inverse":
            yield Question(**{**vars(plain), "ordering": ordering}), extra
    if shuffled and problem in ("forward", "inverse") and len(mechanism.joints) <= SHUFFLED_JOINTS:
        words = {"actuated": motors} if problem == "inverse" else {}
        names = [str(v) for v in problem_graph(mechanism, make_problem(mechanism, problem, **words)).variables]
        for seed in range(shuffled):
            order = np.random.default_rng(seed).permutation(names).tolist()
            yield Question(**{**vars(plain), "ordering": order}), extra


def _sensors(mechanism: fgd.Mechanism) -> dict[str, Any]:
    """A torque sensor at every motor and an encoder of acceleration at every joint, with readings of usual sizes."""
    own, rng = natural(mechanism), np.random.default_rng(1)
    sensors, sizes = [], []
    for kind, names, usual in (
        ("Torque", mechanism.motors, own.tau),
        ("Acceleration", mechanism.joint_names, own.v),
    ):
        for name in names:
            size = usual[mechanism.v_slices[name]]
            sensors.append({"kind": kind, "place": name, "sigma": (NOISE * size).tolist()})
            sizes.append(size)
    readings = rng.normal(size=sum(map(len, sizes))) * np.concatenate(sizes)
    return {"sensors": sensors, "readings": [readings.tolist()]}


# ---- asking


class _OutOfTimeError(Exception):
    """A question took too long."""


@contextmanager
def _patience(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _OutOfTimeError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def answer(task: Task) -> Found:
    """The answer to a task, with the operations of the kernels that it compiles."""
    counts: list[int] = []
    original = fgd.compile

    def counting(*args: Any, **words: Any) -> Any:
        kernel = original(*args, **words)
        counts.append(kernel.operations.total)
        return kernel

    fgd.compile = counting
    try:
        with warnings.catch_warnings(), _patience(SECONDS):
            warnings.simplefilter("ignore")
            found = _outcomes(task)
    except _OutOfTimeError as error:
        return Found(("slow",), 0, str(error))
    except Exception as error:
        return Found(("foreign",), 0, f"{type(error).__name__}: {error}"[:300])
    finally:
        fgd.compile = original
    bad = next((outcome.message for outcome in found if outcome.kind != "right"), "")
    return Found(tuple(outcome.kind for outcome in found), sum(counts), bad[:300])


def _outcomes(task: Task) -> list[Outcome]:
    content = task.content
    frozen = Frozen(Path(task.name), content)
    entry = content["questions"][0]
    if "contact" in entry:
        return _with_contact(frozen.mechanism, content["states"], entry)
    return outcomes(frozen, frozen.asked[0])


def _with_contact(mechanism: fgd.Mechanism, states: list[dict[str, Any]], entry: dict[str, Any]) -> list[Outcome]:
    """Responses to motors and to forces at a link, beside the oracle's."""
    contact, ordering = entry["contact"], entry.get("ordering")
    q = np.array([state["q"] for state in states])
    try:
        found = fgd.compile(mechanism, "iwim", ordering=ordering, contacts=[contact])(q)
    except fgd.FactorGraphDynError as error:
        return [Outcome("refused", np.inf, str(error))] * len(states)
    motors = np.flatnonzero(entries_of(mechanism, mechanism.motors))
    results, zero = [], np.zeros(mechanism.nv)
    for at, value in zip(q, found, strict=True):
        oracle = Oracle(mechanism, at, zero)
        answered, condition = oracle.respond(np.arange(mechanism.nv))
        body = oracle.bodies[contact]
        forces = np.column_stack([np.eye(mechanism.nv)[:, motors], (body.R.T @ body.U).T])
        known = Answer(answered.value @ forces, answered.bound @ np.abs(forces), answered.unique)
        none = np.zeros(mechanism.nv, dtype=bool)
        case = Case(None, zero, zero, none, none, {"A[x]": known}, condition, answered.unique)  # type: ignore[arg-type]
        results.append(_judged_matrix(mechanism, case, value))
    return results


def _judged_matrix(mechanism: fgd.Mechanism, case: Case, value: Any) -> Outcome:
    """The outcome of a matrix whose rows are accelerations."""
    known, units = case.answers["A[x]"], array(natural(mechanism).v)[:, None]
    if not np.isfinite(value).all():
        return Outcome("nan", np.inf, "nan")
    error = np.abs((value - known.value) / units).max()
    allowed = 1e-8 * np.abs(known.value / units).max() + 1e-13 * np.abs(known.bound / units).max()
    return Outcome("right" if error <= allowed else "wrong", float(error))
