"""Estimates, as further questions: random sensors of a mechanism, and weighted least squares in extended precision.

The unknowns are x = [a; tau; lambda; W], with wrenches W from outside at some links. Physics holds exactly, and
readings have a noise of covariance Sigma:

    M a + h = tau + J^T lambda + G W      J a = gamma      tau = 0 of joints without motor      H x + c = y + noise

The most probable x is that of the optimality conditions, with P x = p for the physics,

    [0  P^T    H^T ] [x ]   [0    ]
    [P   0      0  ] [mu] = [p    ]
    [H   0  -Sigma ] [nu]   [y - c]

one more linear system for the oracle's ``solve``, which tells rank, condition, uniqueness and what rounding does. Rows
of readings are in their standard deviations, so that exact ones are those without noise. Other right-hand sides give
the covariance, what is asked for in the first rows, and how x follows the readings, units in the last.

Sensors are drawn for each part by its name, so that those of other parts stay when the shrinker takes it away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple
from zlib import crc32

import numpy as np

import factorgraph_dyn as fgd
from tests.stress import questions
from tests.stress.constraints import TINY
from tests.stress.kinematics import LD, SIZES, array, cross, norm
from tests.stress.oracle import NOTHING, Answer, Oracle, _carried, _rotated, solve
from tests.stress.questions import Case, Question, entries_of
from tests.stress.recipe import State

S = fgd.sensors
DECADES = (-2.0, 0.5)  # of standard deviations, beside what is usual
LEAST = 1e-3  # of what is usual in the mechanism, that is usual at any joint
WORST_CONDITION = 1e6  # above, optimality conditions have too few digits left to say much
FAINT = 1e-9  # of the terms of a reading: what it says of something else that nothing tells, if more than rounding
DRAWN_OUTPUTS = 0.25  # share of wrenches and of links' accelerations that are looked at


def cases_of(mechanism, states: list[State], question: Question) -> list[Case]:
    """The answers to the same sensors at all states, each with readings of its own."""
    if question.way == "kernel":
        states = [replace(state, wrenches={}) for state in states]
    usual = Usual.at(mechanism, states[0])
    sensors = random_sensors(mechanism, usual, question.seed)
    return [case_of(mechanism, state, question, sensors, usual, index) for index, state in enumerate(states)]


def ask(mechanism, cases: list[Case], question: Question) -> list[dict[str, np.ndarray]]:
    """What the package says at all states."""
    names = [name for name in cases[0].answers if all(case.answers[name].unique for case in cases)]
    names = list(dict.fromkeys(["a", "tau", *names]))
    if question.way == "graph":
        return [_estimated(mechanism, case, names) for case in cases]
    kernel = fgd.compile(mechanism, "estimate", measurements=cases[0].given["sensors"], outputs=names)
    q, v, y = (np.stack(parts) for parts in zip(*((c.state.q, c.state.v, c.given["y"]) for c in cases), strict=True))
    results = kernel(q, v, y)
    results = results if isinstance(results, tuple) else (results,)
    found = [dict(zip(names, (result[i] for result in results), strict=True)) for i in range(len(cases))]
    return [_scaled(case, each) for case, each in zip(cases, found, strict=True)]


def _estimated(mechanism, case: Case, names: list[str]) -> dict[str, np.ndarray]:
    """The graph's answers."""
    sensors, start, state = [], 0, case.state
    for sensor in case.given["sensors"]:
        size = sensor.size(mechanism)
        sensors.append(replace(sensor, value=case.given["y"][start : start + size]))
        start += size
    found = fgd.estimate(mechanism, state.q, state.v, sensors, external_wrenches=state.wrenches or None)
    kinds = {"covariance": found.covariance, "gain": found.gain}
    return _scaled(case, {name: kinds.get(name.split("[")[0], found.mean)(_about(name)) for name in names})


def _about(name: str) -> str:
    """What a covariance or gain is of; of others the name itself."""
    return name.split("[")[1][:-1] if name.startswith(("covariance", "gain")) else name


def _scaled(case: Case, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Covariances and gains in the units of their answers."""
    units = case.given["units"]
    return {name: value / units[name] if name in units else value for name, value in found.items()}


def result_units(mechanism, name: str, question: Question) -> np.ndarray:
    """As for other questions; covariances and gains have been scaled before."""
    if name.startswith(("covariance", "gain")):
        return array(1)
    return questions.result_units(mechanism, name, question)


# ---- sensors


@dataclass(frozen=True)
class Usual:
    """Sizes that are usual: a and tau by freedom (nv,), accelerations of points and of turning, wrenches (6,)."""

    a: np.ndarray
    tau: np.ndarray
    point: LD
    turn: LD
    wrench: np.ndarray

    @classmethod
    def at(cls, mechanism, state: State) -> Usual:
        here = Oracle(mechanism, state.q, state.v, state.wrenches)
        units, length = here.units, here.length
        caused = _caused(here, mechanism, state)["a"].value
        sizes = [(state.v / units) ** 2, caused / units, [norm(here.gravity) / length]]
        turn = max(np.abs(part).max(initial=LD(0)) for part in sizes) or LD(1)
        tau = here.M_terms @ (units * turn) + here.h_terms + np.abs(state.tau)
        work = (tau * units).max(initial=LD(0)) or LD(1)
        force = work / length * array([length, length, length, 1, 1, 1])
        return cls(units * turn, np.maximum(tau, LEAST * work / units), length * turn, turn, force)


def _caused(here: Oracle, mechanism, state: State):
    """The motion that the motors' torques cause, from which readings differ by noise."""
    nothing = np.zeros(mechanism.nv, dtype=bool)
    tau = np.where(entries_of(mechanism, mechanism.motors), state.tau, 0.0)
    return here.ask(np.zeros(mechanism.nv), tau, nothing, ~nothing)


def random_sensors(mechanism, usual: Usual, seed: int) -> list:
    """Sensors of a mechanism's joints, links and loops that determine its motion, mostly; without values."""
    at, closed = usual, bool(mechanism.loops or mechanism.couplings)
    found = []
    for joint in mechanism.joints:
        rng = _rng(seed, joint.name)
        if SIZES[joint.kind][1]:
            found += _of_joint(rng, mechanism, joint, at, closed)
        if rng.random() < 0.15:
            found.append(S.ForceTorque(joint.name, None, *_some(rng, S.ForceTorque.names, at.wrench)))
        found += _of_link(_rng(seed, joint.child), joint.child, at)
    for loop in mechanism.loops:
        rng = _rng(seed, loop.name)
        if rng.random() < 0.3:
            found.append(S.ForceTorque(loop.name, None, *_some(rng, S.ForceTorque.names, at.wrench)))
    return found


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(name.encode())])


def _of_joint(rng, mechanism, joint, usual: Usual, closed: bool) -> list:
    """Its torque or acceleration, or both; loops need torques where motors work against each other."""
    here = mechanism.v_slices[joint.name]
    torque, acceleration, exact = rng.random(3) < (0.9 if closed else 0.6, 0.4, 0.1)
    torque = torque or not acceleration  # without a motor it says nothing, and does no harm
    found = [S.Torque(joint.name, None, _noise(rng, usual.tau[here]))] if torque else []
    found += [S.Acceleration(joint.name, None, _noise(rng, usual.a[here]))] if acceleration else []
    if exact and not closed and joint.actuated:  # one of them, which nothing else that is exact can contradict
        found[0] = replace(found[0], sigma=0.0)
    return found


def _of_link(rng, link: str, usual: Usual) -> list:
    found = []
    for share, kind, size in (
        (0.2, S.Accelerometer, np.full(3, usual.point)),
        (0.2, S.AngularAcceleration, np.full(3, usual.turn)),
        (0.15, S.ExternalWrench, usual.wrench),
    ):
        if rng.random() < share:
            sigma, components = _some(rng, kind.names, size, of_all=kind is S.ExternalWrench)
            axes = "world" if rng.random() < 0.3 else "local"
            found.append(kind(link, None, sigma, components, axes))
    return found


def _some(rng, names, sizes, of_all: bool = False) -> tuple:
    """A noise, and the components that it is of; None for all."""
    if of_all or rng.random() < 0.6:
        return _noise(rng, sizes), None
    drawn = rng.random(len(names)) < 0.5
    drawn[rng.integers(len(names))] = True
    return _noise(rng, sizes[drawn]), tuple(name for name, is_in in zip(names, drawn, strict=True) if is_in)


def _noise(rng, sizes):
    """Standard deviations, or a covariance."""
    s = np.asarray(sizes, float) * 10.0 ** rng.uniform(*DECADES, len(sizes))
    if rng.random() > 0.2:
        return s
    X = rng.normal(size=(len(s), 2 * len(s)))
    C = X @ X.T
    d = np.sqrt(np.diag(C)) / s
    return C / np.outer(d, d)


# ---- what the answers are


class Rows(NamedTuple):
    """A result as rows over x: L x + c, and the sizes of the terms of c."""

    L: np.ndarray
    c: np.ndarray
    terms: np.ndarray


class Unknowns:
    """Physics and results at a state, as rows over x."""

    def __init__(self, mechanism, state: State, frames: list[str]):
        self.mechanism, self.frames = mechanism, frames
        self.here = Oracle(mechanism, state.q, state.v, state.wrenches)
        self.caused = _caused(self.here, mechanism, state)
        self.forces = 2 * mechanism.nv + len(self.here.J)
        self.size = self.forces + 6 * len(frames)

    def place(self, name: str) -> slice:
        nv = self.mechanism.nv
        if name in ("a", "tau"):
            return slice(0, nv) if name == "a" else slice(nv, 2 * nv)
        first = self.forces + 6 * self.frames.index(name[2:-1])
        return slice(first, first + 6)

    def rows(self, name: str) -> Rows:
        """A result by name."""
        if name[0] == "F":
            return self._wrench(name[2:-1])
        if name[0] == "A":
            body = self.here.bodies[name[2:-1]]
            turn, point = self.motion(name[2:-1])
            bias = cross(body.R.T @ body.w, body.R.T @ body.u)
            terms = np.append(turn.terms, point.terms + norm(body.w) * norm(body.u))
            return Rows(np.vstack([turn.L, point.L]), np.append(turn.c, point.c - bias), terms)
        L = np.eye(self.size, dtype=LD)[self.place(name)]
        return Rows(L, np.zeros(len(L), dtype=LD), np.zeros(len(L), dtype=LD))

    def motion(self, link: str) -> tuple[Rows, Rows]:
        """The turning acceleration of a link and the proper acceleration of its origin, in its axes."""
        here, body = self.here, self.here.bodies[link]
        parts = []
        for J, c, size in (
            (body.W, body.alpha, body.alpha_terms),
            (body.U, body.beta - here.gravity, body.beta_terms + norm(here.gravity)),
        ):
            L = np.zeros((3, self.size), dtype=LD)
            L[:, : here.nv] = body.R.T @ J
            parts.append(Rows(L, body.R.T @ c, np.full(3, size)))
        return parts[0], parts[1]

    def _wrench(self, owner: str) -> Rows:
        """What a joint or loop passes on: less of what pushes links beyond it."""
        own, c, terms = self.caused._wrenches[owner]
        L = np.zeros((6, self.size), dtype=LD)
        L[:, : self.forces] = own
        joint = self.mechanism.joint_by_name.get(owner)
        for frame in self.frames:
            if joint is not None and joint.child in self._inward(frame):
                body, child = self.here.bodies[frame], self.here.bodies[joint.child]
                L[:, self.place(f"W[{frame}]")] = -_rotated(_carried(_turned(body.R), body.p - child.p), child.R)
        return Rows(L, c, terms + self.caused._usual_wrench)

    def _inward(self, link: str) -> list[str]:
        """The link and those between it and the base."""
        parents = {joint.child: joint.parent for joint in self.mechanism.joints}
        found = [link]
        while found[-1] in parents:
            found.append(parents[found[-1]])
        return found

    def physics(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """P, p, and what they are summed from."""
        here, nv, m = self.here, self.here.nv, len(self.here.J)
        passive = np.eye(nv, dtype=LD)[~entries_of(self.mechanism, self.mechanism.motors)]
        P = np.zeros((nv + m + len(passive), self.size), dtype=LD)
        P[:nv, self.place("tau")] = -np.eye(nv)
        P[nv + m :, self.place("tau")] = passive
        for frame in self.frames:
            body = here.bodies[frame]
            P[:nv, self.place(f"W[{frame}]")] = -np.concatenate([body.W, body.U]).T @ _turned(body.R)
        terms = np.abs(P)
        P[:nv, :nv], P[nv : nv + m, :nv], P[:nv, 2 * nv : self.forces] = here.M, here.J, -here.J.T
        terms[:nv, :nv], terms[nv : nv + m, :nv] = here.M_terms, here.J_terms
        terms[:nv, 2 * nv : self.forces] = here.J_terms.T
        nothing = np.zeros(len(passive), dtype=LD)
        p = np.concatenate([-here.h, here.gamma, nothing])
        return P, p, terms, np.concatenate([here.h_terms, here.gamma_terms, nothing])

    def scales(self, usual: Usual, P_terms) -> np.ndarray:
        """Of x and of the rows of P: what is usual, so that all is of order one beside rows of readings."""
        nv, held = self.here.nv, slice(2 * self.here.nv, self.forces)
        rows = np.concatenate([1 / usual.tau, _inverse((P_terms[nv:, :nv] * usual.a).max(axis=1, initial=LD(0)))])
        passive = ~entries_of(self.mechanism, self.mechanism.motors)
        rows[nv + len(self.here.J) :] = 1 / usual.tau[passive]
        forces = _inverse((P_terms[:nv, held] / usual.tau[:, None]).max(axis=0, initial=LD(0)))
        return np.concatenate([usual.a, usual.tau, forces, *(usual.wrench for _ in self.frames), rows])

    def read(self, sensor) -> Rows:
        """What a sensor reads."""
        kind, place = type(sensor), sensor.place
        if kind in (S.Torque, S.Acceleration):
            here = self.mechanism.v_slices[place]
            return Rows(*(part[here] for part in self.rows("tau" if kind is S.Torque else "a")))
        if kind is S.ForceTorque:
            whole = self.rows(f"F[{place}]")
        elif kind is S.ExternalWrench:
            whole = self.rows(f"W[{place}]")
        else:
            whole = self.motion(place)[kind is S.Accelerometer]
        if getattr(sensor, "axes", "local") == "world":
            R = self.here.bodies[place].R
            R = R if len(whole.c) == 3 else _turned(R)
            whole = Rows(R @ whole.L, R @ whole.c, whole.terms)
        chosen = [sensor.names.index(name) for name in sensor.components or sensor.names]
        return Rows(*(part[chosen] for part in whole))


def _turned(R) -> np.ndarray:
    """The same rotation of a wrench's moment and force."""
    nothing = np.zeros((3, 3), dtype=LD)
    return np.block([[R, nothing], [nothing, R]])


def _inverse(sizes) -> np.ndarray:
    return 1 / np.where(sizes > 0, sizes, LD(1))


class Readings:
    """All readings below each other, in standard deviations, or in usual sizes of exact ones."""

    def __init__(self, unknowns: Unknowns, sensors: list, usual: Usual):
        rows = [unknowns.read(sensor) for sensor in sensors]
        self.L, self.c, self.terms = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        Sigma, start = np.zeros((len(self.c), len(self.c)), dtype=LD), 0
        for sensor, (_, c, _) in zip(sensors, rows, strict=True):
            here, sigma = slice(start, start + len(c)), array(sensor.sigma)
            Sigma[here, here] = sigma if sigma.ndim == 2 else np.diag(np.broadcast_to(sigma, len(c)) ** 2)
            start += len(c)
        self.s = np.sqrt(np.diag(Sigma))
        sizes = np.concatenate([_size(unknowns, sensor, usual) for sensor in sensors])
        self.units = np.where(self.s > 0, self.s, sizes)
        self.H = self.L / self.units[:, None]
        self.Sigma = Sigma / np.outer(self.units, self.units)


def _size(unknowns: Unknowns, sensor, usual: Usual) -> np.ndarray:
    """What readings usually are, where they are exact: those of joints; anything of others."""
    if isinstance(sensor, S.Torque | S.Acceleration):
        return (usual.tau if isinstance(sensor, S.Torque) else usual.a)[unknowns.mechanism.v_slices[sensor.joint]]
    return np.ones(sensor.size(unknowns.mechanism), dtype=LD)


def case_of(mechanism, state: State, question: Question, sensors, usual: Usual, index: int) -> Case:
    """The question at a state."""
    frames = [sensor.place for sensor in sensors if isinstance(sensor, S.ExternalWrench)]
    unknowns = Unknowns(mechanism, state, frames)
    readings = Readings(unknowns, sensors, usual)
    rng = np.random.default_rng([question.seed, index])
    true = np.concatenate([unknowns.caused.all, np.zeros(6 * len(frames), dtype=LD)])
    y = np.asarray(readings.L @ true + readings.c + readings.s * rng.normal(size=len(readings.s)), float)
    optimum = Optimum(unknowns, readings, y, usual)
    names = ["a", "tau", *(f"W[{frame}]" for frame in frames)]
    answers = {name: optimum.answer(name, usual) for name in (*names, *_others(mechanism, question.seed))}
    units = {}
    for name in ("a", "tau") if question.seed % 2 else ():
        word = f"{'covariance' if question.way == 'graph' else 'gain'}[{name}]"
        answers[word], units[word] = (optimum.covariance if question.way == "graph" else optimum.gain)(name, usual)
    found = optimum.solved
    is_regular = all(answers[name].unique for name in names)
    is_regular = is_regular and optimum.contradiction < 1e-10 and found.own_error < 1e-12
    none = np.zeros(mechanism.nv, dtype=bool)
    condition = found.condition if found.condition < WORST_CONDITION and not optimum.is_faint else np.inf
    given = {"y": y, "sensors": sensors, "units": units}
    return Case(state, true[: mechanism.nv], state.tau, none, none, answers, condition, is_regular, given)


def _others(mechanism, seed: int) -> list[str]:
    """Some wrenches and accelerations of links, the same at all states."""
    names = [f"F[{part.name}]" for part in (*mechanism.joints, *mechanism.loops)]
    names += [f"A[{joint.child}]" for joint in mechanism.joints]
    return [name for name in names if _rng(seed, name).random() < DRAWN_OUTPUTS]


class Optimum:
    """The most probable x, and what else follows from the same matrix."""

    def __init__(self, unknowns: Unknowns, readings: Readings, y, usual: Usual):
        self.unknowns, self.readings = unknowns, readings
        P, p, P_terms, p_terms = unknowns.physics()
        H, Sigma, n, m = readings.H, readings.Sigma, unknowns.size, len(P)
        self.n, self.first = n, n + m  # where the rows of readings are
        self.K = self._matrix(P, H, Sigma)
        self.terms = self._matrix(P_terms, np.abs(H), np.abs(Sigma))
        self.scales = [np.append(unknowns.scales(usual, P_terms), np.ones(len(H), dtype=LD))] * 2
        nothing = np.zeros(n, dtype=LD)
        b = np.concatenate([nothing, p, (y - readings.c) / readings.units])
        sizes = np.concatenate([nothing, p_terms, (np.abs(y) + readings.terms) / readings.units])
        self.solved = solve(self.K, b, self.terms, sizes, self.scales)
        # Only closure can contradict itself; of conditions of optimality often nothing but rounding is left.
        spread = self.scales[0][n : n + m] * (P_terms @ np.abs(self.solved.x[:n]) + p_terms)
        missed = self.scales[0][n : n + m] * np.abs(P @ self.solved.x[:n] - p)
        self.contradiction = (missed / np.maximum(spread, NOTHING * spread.max(initial=TINY))).max(initial=LD(0))

    @staticmethod
    def _matrix(P, H, Sigma) -> np.ndarray:
        n, m, k = P.shape[1], len(P), len(H)
        K = np.zeros((n + m + k, n + m + k), dtype=LD)
        K[n : n + m, :n], K[n + m :, :n] = P, H
        K += K.T
        K[n + m :, n + m :] = -Sigma
        return K

    @property
    def is_faint(self) -> bool:
        """Whether readings say next to nothing of what is taken as open: there are squares of it in the conditions."""
        H = self.readings.H
        said = np.abs(H @ self.solved.null[: self.n]).max(axis=1, initial=LD(0))
        return bool((said > FAINT * (np.abs(H) @ self.solved.columns[: self.n])).any())

    def _wide(self, L) -> np.ndarray:
        wide = np.zeros((len(L), len(self.K)), dtype=LD)
        wide[:, : self.n] = L
        return wide

    def answer(self, name: str, usual: Usual) -> Answer:
        """A result."""
        L, c, terms = self.unknowns.rows(name)
        wide, solved = self._wide(L), self.solved
        sizes = {"a": usual.a, "tau": usual.tau, "W": usual.wrench, "F": usual.wrench}
        bound = np.abs(wide) @ solved.bound + terms
        return Answer(wide @ solved.x + c, bound, solved.is_unique(wide), sizes.get(name.split("[")[0]))

    @cached_property
    def _unit_noises(self):
        b = np.zeros((len(self.K), len(self.K) - self.first), dtype=LD)
        b[self.first :] = np.eye(b.shape[1])
        return solve(self.K, b, self.terms, np.abs(b), self.scales)

    def gain(self, name: str, usual: Usual) -> tuple[Answer, np.ndarray]:
        """How a result follows the readings, and the units of it that make its entries comparable."""
        size = getattr(usual, name)
        wide, found = self._wide(self.unknowns.rows(name).L), self._unit_noises
        units = size[:, None] / self.readings.units
        value, bound = wide @ found.x / size[:, None], np.abs(wide) @ found.bound / size[:, None]
        return Answer(value, bound, found.is_unique(wide)), np.asarray(units, float)

    def covariance(self, name: str, usual: Usual) -> tuple[Answer, np.ndarray]:
        """The covariance of a result, in its standard deviations, and the units of it that make it so."""
        size = getattr(usual, name)
        wide = self._wide(self.unknowns.rows(name).L)
        b = wide.T / size
        found = solve(self.K, b, self.terms, np.abs(b), self.scales)
        value, bound = wide @ found.x / size[:, None], np.abs(wide) @ found.bound / size[:, None]
        s = np.sqrt(np.maximum(np.diag(value), LEAST**2))  # of what is exact, something
        units = np.outer(s * size, s * size)
        return Answer(value / np.outer(s, s), bound / np.outer(s, s), found.is_unique(wide)), np.asarray(units, float)
