"""Further questions, each asked now and then: derivatives, free parameters, kinematics, rollouts, assembly
and estimates.

derivatives   of kernels or of the graph, along one random direction that keeps closure: the answer is the difference of
              the oracle's answers at six places along it
parameters    kernels with ``parameters="all"`` at random bodies, each state's own or the same for all of a long batch,
              beside the oracle on the mechanism that has them
kinematics    poses, Jacobians, twists, centre of mass, momentum and energies, beside the oracle's own
rollout       three steps, beside a loop over the oracle's accelerations
assembly      the same program as assembly and as LLVM's code: bit by bit
branches      kernels at states that close loops next to random ones, in whatever branch: silent or right
estimate      of random sensors, by kernels or the graph: see ``estimates``
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import ENTRY_POINTS, emit_module
from factorgraph_dyn.compiler.kernel.fastcall import emit_fastcall
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.motion.closure import nearest_velocity
from tests.stress import constraints, estimates, questions
from tests.stress.asking import independent_joints
from tests.stress.kinematics import LD, SIZES, array, bodies, cross, norm, outward, slices
from tests.stress.oracle import ROUNDING, Answer, Oracle, freedom_units, own_length
from tests.stress.questions import DERIVED, FURTHER, Case, Question, ask_kernel, entries_of
from tests.stress.recipe import Recipe, State, normalised

SHARES = (0.34, 0.24, 0.15, 0.14, 0.04, 0.04, 0.05)
STEP = 1e-4  # between places, in radians, the mechanism's length and usual speeds
PLACES = (-3, -2, -1, 1, 2, 3)
SIXTH = array([-1, 9, -45, 45, -9, 1]) / (60 * LD(STEP))  # of sixth order
FOURTH = array([0, 1, -8, 8, -1, 0]) / (12 * LD(STEP))
WORST_CONDITION = 1e6  # above, what is inverted twice has too few digits left to say much
STEPS, TURN = 3, 1e-3  # of rollouts
SLOW = 1e-2  # of usual speeds
ANYWHERE = 12  # starts from which loops are closed in any branch
LLVM = 1 << 40  # operations a function of IR may have: all of them


def random_further(rng, mechanism, states, problem: str | None = None) -> Question | None:
    """A question of one of the further kinds, or None where the mechanism has none of it."""
    problem = problem or str(rng.choice(FURTHER, p=SHARES))
    question = Question("kernel", problem, of="forward", seed=int(rng.integers(1 << 30)))
    if problem in ("derivatives", "parameters", "assembly") and rng.random() < 0.5:
        question.of = "inverse"
        if mechanism.loops or mechanism.couplings:
            question.actuated = independent_joints(rng, mechanism, states)
            if question.actuated is None:
                return None
    if problem == "derivatives" and question.actuated is None and rng.random() < 0.4:
        question.way = "graph"
    if problem == "kinematics":
        question.outputs = _kinematic_names(rng, mechanism)
    elif problem == "rollout":
        question.method = str(rng.choice(["semi_implicit", "rk4"]))
        if any(loop.kind == "helical" for loop in mechanism.loops):
            return None  # which rollouts do not cover, as they say
    elif problem == "branches" and not mechanism.loops:
        return None
    elif problem == "estimate":
        question.way = "graph" if rng.random() < 0.5 else "kernel"
    return question


def cases_of(recipe: Recipe, mechanism, states: list[State], question: Question) -> list[Case]:
    if question.problem == "estimate":
        return estimates.cases_of(mechanism, states, question)
    made = {"derivatives": _derived, "parameters": _varied, "kinematics": _kinematic, "rollout": _rolled}
    case = made.get(question.problem, _plain)
    there = states_for(mechanism, states, question)
    return [case(recipe, mechanism, state, question, index) for index, state in enumerate(there)]


def states_for(mechanism, states: list[State], question: Question) -> list[State]:
    """Where a question is asked: at the recipe's states, or anywhere that loops close next to random places."""
    return (_anywhere(mechanism, states[0], question) or states) if question.problem == "branches" else states


def ask(mechanism, cases: list[Case], question: Question) -> list[dict[str, np.ndarray]]:
    """What the package says at all states."""
    if question.problem == "derivatives":
        return (_graph_derivatives if question.way == "graph" else _kernel_derivatives)(mechanism, cases, question)
    if question.problem == "estimate":
        return estimates.ask(mechanism, cases, question)
    if question.problem == "rollout":
        return _rollouts(mechanism, cases, question)
    if question.problem == "assembly":
        return _both_codes(mechanism, cases, question)
    if question.problem == "branches":
        return _or_silent(mechanism, cases, question)
    words = {"outputs": question.outputs} if question.problem == "kinematics" else _words(cases, question)
    if question.problem == "parameters":
        words["parameters"] = "all"
    name = "kinematics" if question.problem == "kinematics" else question.of
    kernel = fgd.compile(mechanism, name, **words)
    return ask_kernel(kernel, cases, question)


def result_units(mechanism, name: str, question: Question) -> np.ndarray:
    """As for other questions."""
    if question.problem == "estimate":
        return estimates.result_units(mechanism, name, question)
    v, length = freedom_units(mechanism), own_length(mechanism)
    if question.problem in DERIVED:
        return questions.result_units(mechanism, name, replace(question, problem=question.of))
    rows = array([1, 1, 1, length, length, length])
    pose = np.ones((4, 4), dtype=LD)
    pose[:3, 3] = length
    units = {
        "T": pose,
        "J": rows[:, None] / v,
        "V": rows,
        "c": array(length),
        "m": rows[::-1],
        "q": _q_units(mechanism),
    }
    return units.get(name[0], v if name == "v" else array(1))


def _words(cases: list[Case], question: Question) -> dict:
    words = {"external_wrenches": list(cases[0].state.wrenches)}
    return words | ({"actuated": question.actuated} if question.of == "inverse" else {})


def _plain(recipe, mechanism, state, question, _=0) -> Case:
    """The question that this one is about."""
    return questions.case_of(recipe, mechanism, state, replace(question, problem=question.of, outputs=None))


def _unjudged(case: Case) -> Case:
    """A case that differences or steps cannot judge."""
    case.condition, case.regular = np.inf, False
    return case


# ---- derivatives


def _derived(recipe, mechanism, state, question, index) -> Case:
    """How the answer changes along a direction, and the direction."""
    units, base = freedom_units(mechanism), _plain(recipe, mechanism, state, question)
    closed, forward = bool(mechanism.loops or mechanism.couplings), question.of == "forward"
    if not forward:
        base.tau = base.answers["tau"].value  # which cause the accelerations
    speed = _speed(state.v, base.a, units)
    base.given = _direction(mechanism, state, base, question, np.random.default_rng([question.seed, index]), speed)
    path = [_at(mechanism, state, base, k * LD(STEP), units, closed or forward) for k in PLACES]
    is_lost = any(place is None for place in path) or _may_stick(mechanism, state.v, speed)
    if is_lost or base.condition > WORST_CONDITION:
        return _unjudged(base)
    places = {name: np.stack([place[k] for place in path]) for k, name in enumerate(("v", "a", "tau"))}
    base.given |= {name: SIXTH @ values for name, values in places.items()}
    result, unit = ("a", units) if forward else ("tau", 1 / units)
    value, known = base.given[result], base.answers[result]
    error = np.abs((SIXTH - FOURTH) @ places[result])
    size = np.abs(value / unit).max(initial=LD(0))
    bound = base.condition * (known.bound + size * unit) + error / ROUNDING
    base.answers = {result: Answer(value, bound, known.unique, known.bound)}
    return base


def _direction(mechanism, state, base, question, rng, speed) -> dict:
    """A random change of every argument, of the order of what is usual."""
    units, oracle = freedom_units(mechanism), Oracle(mechanism, state.q, state.v, state.wrenches)
    force = max(np.abs(base.tau * units).max(initial=LD(0)), (oracle.h_terms * units).max(initial=LD(0))) or LD(1)
    drawn = array(rng.normal(size=(3, mechanism.nv)))
    dq, dtau = drawn[0] * units, drawn[2] / units * force
    if question.actuated is not None:
        dtau = np.where(entries_of(mechanism, question.actuated), dtau, 0)
    if mechanism.loops or mechanism.couplings:
        dq = constraints.closing_velocity(mechanism, state.q, dq, units)
    return {"q": dq, "v": drawn[1] * units * speed, "a": drawn[2] * units * speed**2, "tau": dtau}


def _at(mechanism, state, base, way, units, is_caused: bool):
    """v, a and tau so far along the direction, closed; None where they cannot be, or are not unique.

    Accelerations are caused by the torques, or the torques are those that the accelerations ask for.
    """
    q = constraints.moved(mechanism, state.q, way * base.given["q"])
    v = array(state.v) + way * base.given["v"]
    if mechanism.loops or mechanism.couplings:
        rows = constraints.constraint_rows(mechanism, state.q, state.v)
        q = constraints.close(mechanism, q, units, constraints.scaled_pseudo_inverse(rows, units)[1])
        if q is None:
            return None
        v = constraints.closing_velocity(mechanism, q, v, units)
    known = np.full(mechanism.nv, not is_caused)
    a, tau = (array(given) + way * base.given[name] for name, given in (("a", base.a), ("tau", base.tau)))
    answered = Oracle(mechanism, q, v, state.wrenches).ask(a, tau, known, ~known)
    is_unique = answered["a"].unique and answered["tau"].unique
    return (v, answered["a"].value, answered["tau"].value) if is_unique else None


def _speed(v, a, units):
    """A usual speed, in own units."""
    return max(np.abs(v / units).max(initial=LD(0)), np.sqrt(np.abs(a / units).max(initial=LD(0)))) or LD(1)


def _may_stick(mechanism, v, speed) -> bool:
    """Whether a joint with friction is so slow that it may turn round."""
    rubbing = np.concatenate([np.zeros(0), *(joint.friction for joint in mechanism.joints)]) > 0
    return bool((np.abs(v / freedom_units(mechanism))[rubbing] < SLOW * speed).any())


def _along(case: Case, slopes: dict) -> np.ndarray:
    return sum(np.asarray(slope, dtype=LD) @ case.given[argument] for argument, slope in slopes.items())


def _asked(question: Question) -> tuple[str, tuple[str, str, str]]:
    return ("a", ("q", "v", "tau")) if question.of == "forward" else ("tau", ("q", "v", "a"))


def _kernel_derivatives(mechanism, cases, question):
    result, arguments = _asked(question)
    names = {argument: f"d{result}/d{argument}" for argument in arguments}
    kernel = fgd.compile(mechanism, question.of, outputs=list(names.values()), **_words(cases, question))
    found = ask_kernel(kernel, cases, question)
    return [
        {result: _along(case, {argument: each[name] for argument, name in names.items()})}
        for case, each in zip(cases, found, strict=True)
    ]


def _graph_derivatives(mechanism, cases, question):
    result, arguments = _asked(question)
    answers = []
    for case in cases:
        given = {"tau": case.tau} if question.of == "forward" else {"a": case.a}
        state = case.state
        found = fgd.derivatives(mechanism, state.q, state.v, external_wrenches=state.wrenches or None, **given)
        answers.append({result: _along(case, {name: found[f"d{result}/d{name}"] for name in arguments})})
    return answers


# ---- free parameters


def _varied(recipe, mechanism, state, question, index) -> Case:
    """The question on a mechanism with other bodies, for every second question the same ones at all states."""
    rng = np.random.default_rng([question.seed, index * (question.seed % 2)])
    length = float(own_length(mechanism))
    base = next(link.name for link in mechanism.links if all(link.name != j.child for j in mechanism.joints))
    links = [link if link.name == base or not link.mass else _other(rng, link, length) for link in mechanism.links]
    other = replace(mechanism, links=links)
    case = _plain(recipe, other, state, question)
    case.given = {"parameters": other.parameters()}
    return case


def _other(rng, link, length):
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    com = np.asarray(link.com) + rng.normal(size=3) * 0.2 * (np.linalg.norm(link.com) or 0.1 * length)
    size = float(np.exp(0.5 * rng.normal()))
    inertia = turn @ np.asarray(link.inertia) @ turn.T
    return replace(link, mass=size * link.mass, com=com, inertia=size * (inertia + inertia.T) / 2)


# ---- kinematics


def _kinematic_names(rng, mechanism) -> list[str]:
    links = [link.name for link in mechanism.links]
    names = [f"{kind}[{rng.choice(links)}]" for kind in rng.choice(["T", "J", "V"], int(rng.integers(1, 4)))]
    others = ["momentum", "kinetic_energy", "potential_energy"] + ["com"] * _has_mass(mechanism)
    names += list(rng.choice(others, int(rng.integers(0, 3)), replace=False)) if _has_mass(mechanism) else []
    return [str(name) for name in dict.fromkeys(names)]


def _moving(mechanism) -> list:
    """The links that are not fixed to the base."""
    still = {link.name for link in mechanism.links} - {joint.child for joint in mechanism.joints}
    for joint in outward(mechanism):
        if joint.parent in still and not SIZES[joint.kind][1]:
            still.add(joint.child)
    return [link for link in mechanism.links if link.name not in still]


def _has_mass(mechanism) -> bool:
    return any(link.mass for link in _moving(mechanism))


def _kinematic(recipe, mechanism, state, question, _) -> Case:
    nothing, none = np.zeros(mechanism.nv), np.zeros(mechanism.nv, dtype=bool)
    there = _Kinematics(mechanism, state)
    answers = {name: there.answer(name, result_units(mechanism, name, question)) for name in question.outputs}
    return Case(state, nothing, nothing, none, none, answers, 1.0, True)


class _Kinematics:
    """Values and the sizes of their terms, from the bodies in the world."""

    def __init__(self, mechanism, state):
        self.mechanism, self.state = mechanism, state
        self.bodies = bodies(mechanism, state.q, state.v)
        self.links = _moving(mechanism)
        self.mass = sum((LD(link.mass) for link in self.links), start=LD(0))
        self.length = own_length(mechanism)
        ways = [norm(self.bodies[j.child].p - self.bodies[j.parent].p) for j in mechanism.joints]
        self.reach = self.length + sum(ways, start=LD(0))
        self.speed = np.abs(state.v / freedom_units(mechanism)).sum()

    def answer(self, name: str, units) -> Answer:
        kind, owner = name[0], name[2:-1]
        more = self.reach / self.length
        if kind in "TJV" and "[" in name:
            body = self.bodies[owner]
            if kind == "T":
                value = np.eye(4, dtype=LD)
                value[:3, :3], value[:3, 3] = body.R, body.p
                return Answer(value, units * more, True)
            if kind == "J":
                return Answer(np.concatenate([body.R.T @ body.W, body.R.T @ body.U]), units * more, True)
            return Answer(np.concatenate([body.R.T @ body.w, body.R.T @ body.u]), units * more * self.speed, True)
        value, bound = {"com": self.com, "momentum": self.momentum}.get(name, lambda: self.energy(name))()
        return Answer(value, bound, True)

    def _centre(self, link):
        body = self.bodies[link.name]
        arm = body.R @ array(link.com)
        return body, body.p + arm, body.u + cross(body.w, arm)

    def com(self):
        value = sum(LD(link.mass) * self._centre(link)[1] for link in self.links) / self.mass
        return value, np.full(3, self.reach)

    def momentum(self):
        centre, _ = self.com()
        linear, angular = np.zeros(3, dtype=LD), np.zeros(3, dtype=LD)
        for link in self.links:
            body, p, u = self._centre(link)
            linear += LD(link.mass) * u
            angular += LD(link.mass) * cross(p - centre, u) + body.R @ array(link.inertia) @ (body.R.T @ body.w)
        turning = self._inertia() * self.speed
        return np.concatenate([angular, linear]), np.repeat(array([turning, turning / self.reach]), 3)

    def _inertia(self):
        own = sum((np.abs(array(link.inertia)).max() for link in self.links), start=LD(0))
        return self.mass * self.reach**2 + own

    def energy(self, name):
        q, v = array(self.state.q), array(self.state.v)
        at_q, at_v = slices(self.mechanism, 0), slices(self.mechanism, 1)
        kinetic = potential = springs = turning = LD(0)
        for joint in self.mechanism.joints:
            own = (array(joint.armature) * v[at_v[joint.name]] ** 2).sum() / 2
            kinetic, turning = kinetic + own, turning + own
            if np.any(joint.stiffness):
                here, rest = q[at_q[joint.name]], array(joint.rest)
                potential += (array(joint.stiffness) * (here - rest) ** 2).sum() / 2
                springs += (array(joint.stiffness) * (np.abs(here) + np.abs(rest)) ** 2).sum() / 2
        gravity = array(self.mechanism.gravity)
        for link in self.links:
            body, p, u = self._centre(link)
            turn = body.R.T @ body.w
            kinetic += LD(link.mass) * (u @ u) / 2 + turn @ array(link.inertia) @ turn / 2
            potential -= LD(link.mass) * (gravity @ p)
        if name == "kinetic_energy":
            return kinetic, self._inertia() * self.speed**2 + turning
        return potential, self.mass * norm(gravity) * self.reach + springs


# ---- rollouts


def _q_units(mechanism) -> np.ndarray:
    length, units = own_length(mechanism), []
    for joint in mechanism.joints:
        nq, _ = SIZES[joint.kind]
        slides = {"prismatic": 1, "planar": 2, "floating": 3}.get(joint.kind, 0)
        units += [length] * slides + [LD(1)] * (nq - slides)
    return array(units)


def _rolled(recipe, mechanism, state, question, _) -> Case:
    """The last state of some steps, where accelerations are the oracle's and the rest is plain."""
    state = replace(state, wrenches={})
    case = _plain(recipe, mechanism, state, question)
    units = freedom_units(mechanism)
    speed = _speed(state.v, case.a if case.a.any() else case.answers["a"].value, units)
    case.given["step"] = step = float(LD(TURN) / speed)
    q, v, sticks, known = state.q, state.v, False, np.zeros(mechanism.nv, dtype=bool)
    unsure, flight = np.zeros(mechanism.nv, dtype=LD), _Flight.of(mechanism, state, case.tau)

    def accelerate(q, v):
        nonlocal unsure, sticks
        sticks = sticks or _may_stick(mechanism, v, speed)
        answered = Oracle(mechanism, q, v).ask(np.zeros(mechanism.nv), case.tau, known, ~known)
        unsure = unsure + answered["a"].bound * step
        case.condition = max(case.condition, answered.condition)
        return np.asarray(answered["a"].value, float)

    for _ in range(STEPS):
        if flight is None:
            q, v = _integrated(partial(fgd.integrate, mechanism), q, v, accelerate, step, question.method)
        else:
            q, v, *centre = flight.integrated(q, v, accelerate, step, question.method)
        if mechanism.loops or mechanism.couplings:
            q = mechanism.close(q)
            v = nearest_velocity(mechanism, q, v)
        if flight is not None:
            q, v = flight.settled(q, v, *centre)
    q_units = _q_units(mechanism)
    if flight is not None:  # the floating joint is set from how the farthest link moves
        units, q_units = units * flight.reach, q_units * flight.reach
    wide = np.abs(unsure / units).max(initial=LD(0)) + np.abs(v / units).max(initial=LD(0))
    places = np.abs(q / q_units).max(initial=LD(0)) + wide * step
    case.answers = {"q": Answer(array(q), places * q_units, True), "v": Answer(array(v), wide * units, True)}
    return _unjudged(case) if sticks or case.condition > WORST_CONDITION else case


@dataclass
class _Flight:
    """A mechanism that one floating joint alone ties to the world: its centre of mass goes through the same step."""

    mechanism: fgd.Mechanism
    joint: fgd.Joint
    state: State
    tau: np.ndarray
    reach: LD

    @classmethod
    def of(cls, mechanism, state, tau):
        still = {link.name for link in mechanism.links} - {link.name for link in _moving(mechanism)}
        leaving = [joint for joint in mechanism.joints if joint.parent in still and joint.child not in still]
        held = any({loop.predecessor, loop.successor} & still for loop in mechanism.loops if loop.kind != "floating")
        if held or [joint.kind for joint in leaving] != ["floating"] or not _has_mass(mechanism):
            return None
        there = _Kinematics(mechanism, state)
        return cls(mechanism, leaving[0], state, tau, there.reach / there.length)

    def centre(self, q, v):
        there = _Kinematics(self.mechanism, replace(self.state, q=q, v=v))
        return there, there.com()[0], there.momentum()[0][3:] / there.mass

    def pushed(self, q, v, a):
        joint, (there, _, _) = self.joint, self.centre(q, v)
        here = slices(self.mechanism, 1)[joint.name]
        tau = array(self.tau)[here] - array(joint.damping) * v[here] - array(joint.friction) * np.sign(v[here])
        force = (tau - array(joint.armature) * a[here])[3:]
        return array(self.mechanism.gravity) + there.bodies[joint.child].R @ force / there.mass

    def integrated(self, q, v, accelerate, h, method):
        (_, c, u), nq, nv = self.centre(q, v), len(q), len(v)

        def move(z, w):
            q = fgd.integrate(self.mechanism, np.asarray(z[:nq], float), np.asarray(w[:nv], float))
            return np.concatenate([q, z[nq:] + w[nv:]])

        def both(z, w):
            q, v = np.asarray(z[:nq], float), np.asarray(w[:nv], float)
            a = accelerate(q, v)
            return np.concatenate([a, self.pushed(q, v, a)])

        z, w = _integrated(move, np.concatenate([q, c]), np.concatenate([v, u]), both, h, method)
        return np.asarray(z[:nq], float), np.asarray(w[:nv], float), z[nq:], w[nv:]

    def settled(self, q, v, c, u):
        there, c_there, u_there = self.centre(q, v)
        joint, at_q, at_v = self.joint, slices(self.mechanism, 0), slices(self.mechanism, 1)
        R_fixed = there.bodies[joint.parent].R @ array(joint.placement)[:3, :3]
        q, v = array(q), array(v)
        q[at_q[joint.name]][:3] += R_fixed.T @ (c - c_there)
        v[at_v[joint.name]][3:] += there.bodies[joint.child].R.T @ (u - u_there)
        return np.asarray(q, float), np.asarray(v, float)


def _integrated(move, q, v, accelerate, h, method):
    """One step as the package documents it."""
    a1 = accelerate(q, v)
    if method == "semi_implicit":
        return move(q, h * (v + h * a1)), v + h * a1
    v2 = v + h / 2 * a1
    q2 = move(q, h / 2 * v)
    a2 = accelerate(q2, v2)
    v3 = v + h / 2 * a2
    a3 = accelerate(move(q, h / 2 * v2), v3)
    v4 = v + h * a3
    a4 = accelerate(move(q2, h * v3 - h / 2 * v), v4)
    first, second = (3 * v + 2 * v2 + 2 * v3 - v4) * h / 12, (-v + 2 * v2 + 2 * v3 + 3 * v4) * h / 12
    return move(move(q, first), second), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def _rollouts(mechanism, cases, question):
    answers = []
    for case in cases:
        tau = np.broadcast_to(case.tau, (STEPS, mechanism.nv))
        state, step = case.state, case.given["step"]
        q, v = fgd.rollout(mechanism, state.q, state.v, tau, step, integrator=question.method)
        answers.append({"q": q[-1], "v": v[-1]})
    return answers


# ---- assembly


def _both_codes(mechanism, cases, question):
    """The kernel's answers; those that LLVM's code gives otherwise, by a bit, are moved far off."""
    kernel = fgd.compile(mechanism, question.of, **_words(cases, question))
    found, host = ask_kernel(kernel, cases, question), machine.host()
    program = kernel.program()
    text = emit_module(program, host, segment=LLVM) + emit_fastcall(program)
    code = machine.load(machine.object_code(text, host), (*ENTRY_POINTS, "fastcall"), host)
    other = ask_kernel(Kernel(kernel._plan, code), cases, question)
    return [
        {
            name: np.where((value == two[name]) | np.isnan(value) & np.isnan(two[name]), value, 1e300)
            for name, value in one.items()
        }
        for one, two in zip(found, other, strict=True)
    ]


# ---- branches


def _anywhere(mechanism, state: State, question: Question) -> list[State]:
    """States that close loops next to random places."""
    rng, units = np.random.default_rng(question.seed), freedom_units(mechanism)
    found = []
    for _ in range(ANYWHERE):
        start = constraints.moved(mechanism, state.q, rng.uniform(-np.pi, np.pi, mechanism.nv) * units)
        q = constraints.close(mechanism, start, units)
        if q is not None:
            v = constraints.closing_velocity(mechanism, q, state.v, units)
            q, v = np.asarray(normalised(mechanism, q), float), np.asarray(v, float)
            found.append(replace(state, q=q, v=v))
    return found


def _or_silent(mechanism, cases, question):
    """The kernel's answers; where it has none, the right ones: in other branches it may be silent."""
    kernel = fgd.compile(mechanism, question.of, **_words(cases, question))
    return [
        {name: np.where(np.isnan(value), case.answers[name].value, value) for name, value in found.items()}
        for case, found in zip(cases, ask_kernel(kernel, cases, question), strict=True)
    ]
