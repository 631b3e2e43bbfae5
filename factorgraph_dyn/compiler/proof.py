"""A kernel's answers, put into the equations of the mechanism as the user gave it.

Takes a mechanism, a problem and a compiled function; gives how exact its answers are, in plain floats and by code
that shares nothing with the way the kernel was made (`newton_euler`). With M and J, the responses to unit
accelerations, and the kernel's answer x, which is what was unknown of a and tau,

    J a + c = 0                      closure, reduced to independent rows V^T of the scaled J
    N^T (M a + h - tau) = 0          balance along the freedoms N that closure leaves

are missed by some residual; B dx = residual is the error that it stands for. Joints are scaled by the inertia that
they move (a sqrt(M_jj), tau / sqrt(M_jj)), so that a light finger on a heavy arm counts like the arm and no unit
matters. An entry's error is measured by

    |B^-1| |B x|              what the answer is made of, or, where that is larger, by
    |B^-1| size / 1000        what rounding of the equations' terms can do to it

and `ALLOWED` is the largest error of a kernel that is given away. The work runs once a kernel: milliseconds for an arm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.newton_euler import Loads, ManyStates, Response
from factorgraph_dyn.compiler.problem import Mask, Problem
from factorgraph_dyn.compiler.trials import SEED, Trials, make_trials
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.units import natural
from factorgraph_dyn.spatial import Floats

ALLOWED = 1e-9  # largest relative error of a kernel that is given away
GOOD = 1e-11  # error above which a more careful route is tried
CANCELLED = 1e-3  # of the terms that make an answer, below which it is measured by them instead
REGULAR = 1e8  # condition up to which an ordinary state has to be answered
SOLVABLE = 1e12  # condition beyond which plain floats know no better
SILENT = 0.25  # share of the special states that may go unanswered
_RANK = 1e-8  # of the largest singular value of closure, below which a row repeats others
_REFINEMENTS = 3  # of what a kernel does not say; each gains as many digits as the condition leaves

Function = Callable[..., Any]


@dataclass(frozen=True)
class Proof:
    """How exact a kernel is.

    Attributes:
        accuracy: The largest relative error over the states and outputs that were tried.
        worst: The output and entry it is found in.
        regular: How many special and ordinary states have an answer that plain floats find easily.
        silent: How many of them the kernel answers by nan.
    """

    accuracy: float
    worst: str
    regular: tuple[int, int]
    silent: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether the kernel may be given away."""
        special, ordinary = self.silent
        return self.accuracy <= ALLOWED and not ordinary and special <= SILENT * self.regular[0]

    @property
    def is_good(self) -> bool:
        """Whether a more careful route has nothing to gain."""
        return self.accuracy <= GOOD and not any(self.silent)

    @property
    def faults(self) -> tuple[bool, int, float]:
        """What speaks against the kernel, the worst first."""
        return not self.holds, sum(self.silent), max(self.accuracy, GOOD)

    def __str__(self) -> str:
        said = f"a relative error of {self.accuracy:.1e} in {self.worst} (allowed {ALLOWED:g})"
        if any(self.silent):
            said += f", nan at {sum(self.silent)} of {sum(self.regular)} regular states ({self.silent[1]} ordinary)"
        return said


def prove(mechanism: Mechanism, problem: Problem, function: Function) -> Proof:
    """How exact a kernel's function is, by its residuals in the mechanism's own equations.

    Args:
        mechanism: The mechanism as the user gave it.
        problem: What the function computes.
        function: Takes arrays of arguments with a leading axis of states; gives a result, or a tuple of them.
    """
    shown = mechanism.tree if problem.tree_only else mechanism
    with np.errstate(all="ignore"):  # states beyond numbers are judged by what comes out
        return _Trial(shown, problem, np.random.default_rng(SEED)).judge(function)


class _Trial:
    """The equations of a problem at trial states."""

    def __init__(self, mechanism: Mechanism, problem: Problem, rng: np.random.Generator) -> None:
        self.mechanism, self.problem = mechanism, problem
        self.units = natural(mechanism)
        self.trials: Trials = make_trials(mechanism, rng)
        self.still = problem.kept is not None
        self.count = len(self.trials.q)
        speed = np.zeros(self.trials.v.shape) if self.still else self.trials.v
        self.here = ManyStates(mechanism, self.trials.q, speed, self.units.length)
        self.loads = self._loads(rng)
        self.system = _System(mechanism, problem, self.here)
        self.a, self.tau = self._inputs(rng)

    def _loads(self, rng: np.random.Generator) -> dict[str, Floats]:
        weight = 1.0 + float(np.linalg.norm(self.mechanism.gravity)) / self.units.length
        return {link: rng.normal(size=(self.count, 6)) * weight * self.units.wrench for link in self.problem.pushed}

    def _inputs(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Accelerations that keep closure, and torques that answer them or are of their terms' size."""
        nv = self.mechanism.nv
        if self.problem.kept is not None:
            motors = ~self.problem.known_tau if self.problem.name == "iwim" else np.ones(nv, dtype=bool)
            units = np.broadcast_to(np.eye(nv)[motors], (self.count, motors.sum(), nv))
            nothing = np.zeros(units.shape)
            return (units, nothing) if self.problem.kept == "a" else (nothing, units)
        a = self.trials.a[:, None]
        a = a - self.system.closing(self.response(a).missed)
        asked = self.response(a)
        chance = rng.normal(size=a.shape) * asked.tau_size
        tau = np.where((np.arange(self.count) % 2 == 0)[:, None, None], asked.tau, chance)
        return a, tau if "tau" in self.problem.arguments else np.zeros(a.shape)

    def response(self, a: Floats, loads: Loads | None = None) -> Response:
        """What accelerations ask for under the wrenches that act."""
        acting = Loads() if loads is None else loads
        for link, wrench in self.loads.items():
            acting.add(link, wrench[:, None])
        return self.here.response(a, still=self.still, loads=acting)

    def judge(self, function: Function) -> Proof:
        arguments = {"q": self.trials.q, "v": self.trials.v, "a": self.a[:, 0], "tau": self.tau[:, 0]}
        arguments |= {f"wrench[{link}]": wrench for link, wrench in self.loads.items()}
        results = function(*(arguments[name] for name in self.problem.arguments))
        results = results if isinstance(results, tuple) else (results,)
        answers = dict(zip(self.problem.outputs, results, strict=True))
        if self.problem.kept is not None:  # one column a cause
            answers = {name: np.swapaxes(answer, 1, 2) for name, answer in answers.items()}
        else:
            answers = {name: answer[:, None] for name, answer in answers.items()}
        answered = np.all([np.isfinite(answer).all(axis=(1, 2)) for answer in answers.values()], axis=0)
        errors = self._errors({name: np.nan_to_num(answer) for name, answer in answers.items()})
        return self._verdict(errors, answered)

    def _verdict(self, errors: dict[str, Floats], answered: Mask) -> Proof:
        condition, ordinary = self.system.condition, self.trials.ordinary
        judged, regular = answered & (condition < SOLVABLE), condition < REGULAR
        accuracy, worst = 0.0, "nothing"
        for name, error in errors.items():
            found = error[judged]
            if found.size and not found.max() <= accuracy:
                accuracy = float(np.nan_to_num(found.max(), nan=np.inf))
                worst = _entry_name(self.mechanism, name, int(np.nanargmax(found) % found.shape[-1]))
        sorts = (~ordinary, ordinary)
        return Proof(accuracy, worst, _counts(regular, sorts), _counts(regular & ~answered, sorts))

    def _errors(self, answers: dict[str, Floats]) -> dict[str, Floats]:
        """The relative error of every entry of every output, shape (states, columns, entries)."""
        problem = self.problem
        a, tau = (
            np.where(known, given, answers.get(name, 0.0))
            for name, known, given in (("a", self._known_a, self.a), ("tau", self._known_tau, self.tau))
        )
        said = {"a", "tau"} <= {*answers, *self._wholly_known}
        found = self.system.refined(a, tau, self.response, 1 if said else _REFINEMENTS)
        errors = {}
        for name, true, size in (("a", found.a, found.a_size), ("tau", found.tau, found.tau_size)):
            if name in answers:
                errors[name] = np.abs(answers[name] - true) / size
        if set(answers) - {"a", "tau"}:
            errors |= self._link_errors(answers, found)
        assert set(errors) == set(problem.outputs)
        return errors

    @cached_property
    def _known_a(self) -> Mask:
        return self.problem.known_a if self.problem.kept != "a" else np.ones(self.mechanism.nv, dtype=bool)

    @cached_property
    def _known_tau(self) -> Mask:
        return self.problem.known_tau if self.problem.kept != "tau" else np.ones(self.mechanism.nv, dtype=bool)

    @property
    def _wholly_known(self) -> set[str]:
        return {name for name, known in (("a", self._known_a), ("tau", self._known_tau)) if known.all()}

    def _link_errors(self, answers: dict[str, Floats], found: _Found) -> dict[str, Floats]:
        """Errors of accelerations, wrenches and twists, angular and linear parts by their own sizes."""
        plain = self.response(found.a)
        forces, sizes = self.system.constraint_forces(found.tau - plain.tau, plain.tau_size)
        loads, of_loops = self.here.loop_loads(forces, sizes)
        true = self.response(found.a, loads)
        blurred = self.here.response(found.a_bound, still=True)
        errors = {}
        for name in set(answers) - {"a", "tau"}:
            kind, owner = name[0], name[2:-1]
            if kind == "V":
                value, size = self.here.V[owner][:, None], self.here.V_size[owner][:, None]
            elif kind == "A":
                value, size = true.A[owner], true.A_size[owner] + blurred.A_size[owner]
            elif owner in of_loops:
                value, size = of_loops[owner], loads.size[self.here.loops[owner].child]
            else:
                value, size = true.F[owner], true.F_size[owner] + blurred.F_size[owner]
            errors[name] = _relative(answers[name] - value, value, size)
        return errors


def _counts(states: Mask, sorts: tuple[Mask, Mask]) -> tuple[int, int]:
    first, second = sorts
    return int((states & first).sum()), int((states & second).sum())


def _relative(difference: Floats, value: Floats, size: Floats) -> Floats:
    """Errors of both halves of six numbers, in parts of the half or of the terms it is made of."""
    halves = value.reshape(*value.shape[:-1], 2, 3)
    scale = np.maximum(np.linalg.norm(halves, axis=-1), CANCELLED * size)
    scale = np.repeat(np.maximum(scale, _TINY), 3, axis=-1)
    errors: Floats = np.abs(difference) / scale
    return errors


_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class _Found:
    """What a and tau are, what their errors are measured by, and what rounding of the terms can do to a."""

    a: Floats
    tau: Floats
    a_size: Floats
    tau_size: Floats
    a_bound: Floats


class _System:
    """The scaled linear system of what a problem does not know, at every state.

    Attributes:
        condition: Of the system, shape (states,).
    """

    def __init__(self, mechanism: Mechanism, problem: Problem, here: ManyStates) -> None:
        nv = mechanism.nv
        M, J = here.mass_matrix(), here.closure_jacobian()
        self.D = _joint_scales(mechanism, M)  # a = D a~, tau = tau~ / D
        self.M = self.D[:, :, None] * M * self.D[:, None]
        self._reduce(J * self.D[:, None])
        self.unknown_a = ~problem.known_a if problem.kept != "a" else np.zeros(nv, dtype=bool)
        self.unknown_tau = ~problem.known_tau if problem.kept != "tau" else np.zeros(nv, dtype=bool)
        self._assemble()

    def _reduce(self, J: Floats) -> None:
        """Split the joints' space into what closure demands and what it leaves free."""
        states, rows, nv = J.shape
        if not rows:
            self.read = np.zeros((states, 0, 0))
            self.rows = np.zeros((states, 0, nv))
            self.free = np.broadcast_to(np.eye(nv), (states, nv, nv))
            self.spread = np.ones(states)
            return
        norms = np.linalg.norm(J, axis=-1, keepdims=True)
        norms = np.where(norms > 0, norms, 1.0)
        U, s, Vt = np.linalg.svd(J / norms)
        ranks = (s > _RANK * s[:, :1]).sum(axis=-1)
        rank = int(np.bincount(ranks).argmax())
        self.rows, self.free = Vt[:, :rank], Vt[:, rank:]
        self.read = np.swapaxes(U[:, :, :rank] / s[:, None, :rank] / norms, 1, 2)  # closure's rows to independent ones
        self.spread = np.where(ranks == rank, s[:, 0] / s[:, rank - 1], np.inf) if rank else np.ones(states)

    def _assemble(self) -> None:
        u, w = self.unknown_a, self.unknown_tau
        top = np.concatenate([self.rows[:, :, u], np.zeros((*self.rows.shape[:2], w.sum()))], axis=-1)
        low = np.concatenate([(self.free @ self.M)[:, :, u], -self.free[:, :, w]], axis=-1)
        self.B = np.concatenate([top, low], axis=1)
        self.inverse, self.condition = _inverted(self.B)
        self.condition = self.condition * self.spread

    def closing(self, missed: Floats) -> Floats:
        """The least change of accelerations that makes up for what closure misses, shape (states, columns, nv)."""
        return self._columns(self.read, missed) @ self.rows * self.D[:, None]

    @staticmethod
    def _columns(matrices: Floats, values: Floats) -> Floats:
        """Matrices times columns, both with the columns' axis before the entries'."""
        return values @ np.swapaxes(matrices, 1, 2)

    def refined(self, a: Floats, tau: Floats, response: Callable[[Floats], Response], times: int) -> _Found:
        """What a and tau are: an answer, corrected by what its residual stands for."""
        u, w, D = self.unknown_a, self.unknown_tau, self.D[:, None]
        n = int(u.sum())
        a, tau = np.array(a), np.array(tau)
        for _ in range(times):
            asked = response(a)
            closure = self._columns(self.read, -asked.missed)
            balance = self._columns(self.free, D * (tau - asked.tau))
            step = self._columns(self.inverse, np.concatenate([closure, balance], axis=-1))
            a[..., u] += step[..., :n] * D[..., u]
            tau[..., w] += step[..., n:] / D[..., w]
        x = np.concatenate([(a / D)[..., u], (tau * D)[..., w]], axis=-1)
        size = np.concatenate(
            [
                self._columns(np.abs(self.read), asked.missed_size),
                self._columns(np.abs(self.free), D * (asked.tau_size + np.abs(tau))),
            ],
            axis=-1,
        )
        reach = np.abs(self.inverse)
        made, bound = self._columns(reach, np.abs(self._columns(self.B, x))), self._columns(reach, size)
        scale = np.maximum(np.maximum(np.maximum(made, np.abs(x)), CANCELLED * bound), _TINY)
        sizes = [np.maximum(np.abs(known), _TINY) for known in (a, tau)]
        sizes[0][..., u] = scale[..., :n] * D[..., u]
        sizes[1][..., w] = scale[..., n:] / D[..., w]
        a_bound = np.zeros(a.shape)
        a_bound[..., u] = bound[..., :n] * D[..., u]
        return _Found(a, tau, sizes[0], sizes[1], a_bound)

    def constraint_forces(self, left: Floats, size: Floats) -> tuple[Floats, Floats]:
        """Forces along closure's rows that leave nothing of a balance: J^T forces = -left; and their sizes."""
        D, turn = self.D[:, None], np.swapaxes(self.read, 1, 2) @ self.rows
        return self._columns(turn, -left * D), self._columns(np.abs(turn), size * D)


def _joint_scales(mechanism: Mechanism, M: Floats) -> Floats:
    """One over the root of the inertia that each joint moves, shape (states, nv)."""
    units = natural(mechanism)
    inertia = np.diagonal(M, axis1=1, axis2=2)
    return 1.0 / np.sqrt(np.where(inertia > 0, inertia, units.tau / units.v))


def _inverted(B: Floats) -> tuple[Floats, Floats]:
    """The inverses, in the sense of least squares where there are more equations, and the conditions."""
    B = np.nan_to_num(B)
    if B.shape[1] == B.shape[2]:
        with suppress(np.linalg.LinAlgError):  # a singular state among others
            return _with_condition(B, np.asarray(np.linalg.inv(B)))
    return _with_condition(B, np.asarray(np.linalg.pinv(B, rcond=1.0 / SOLVABLE)))


def _with_condition(B: Floats, inverse: Floats) -> tuple[Floats, Floats]:
    sizes = [np.abs(matrix).sum(axis=-1).max(axis=-1, initial=0.0) for matrix in (B, inverse)]
    return inverse, sizes[0] * sizes[1]


def _entry_name(mechanism: Mechanism, output: str, entry: int) -> str:
    if output not in ("a", "tau"):
        return output
    joint = next(name for name in mechanism.joint_names if entry < mechanism.v_slices[name].stop)
    return f"{output}[{joint}]"
