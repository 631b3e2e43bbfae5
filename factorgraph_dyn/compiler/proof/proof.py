"""A kernel's answers, put into the equations of the mechanism as the user gave it.

Takes a mechanism, a problem and a compiled function; gives how exact its answers are, in plain floats and by code
that shares nothing with the way the kernel was made (`newton_euler`). What the answers miss of the equations is carried
over to an error of the answers themselves (`plain_system`), B dx = residual, and every entry's error is measured by

    |x|                       the answer, or, where that is larger, by
    |B^-1| size / 1000        what rounding of the equations' terms can do to it (squares added, as chance does)

A kernel as good as rounding allows has some 1e-15 to 1e-12; `ALLOWED` is the largest error that is given away. States
whose equations are near singular are not asked. The work runs once a kernel: milliseconds for an arm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.outputs import TRUE_VALUES, Plain
from factorgraph_dyn.compiler.proof.newton_euler import Loads, ManyStates, Response
from factorgraph_dyn.compiler.proof.numbers import Numbers
from factorgraph_dyn.compiler.proof.place_values import link_wrench
from factorgraph_dyn.compiler.proof.plain_system import CANCELLED, SOLVABLE, TINY, PlainAnswer, System
from factorgraph_dyn.compiler.proof.slopes import Slopes
from factorgraph_dyn.compiler.proof.trials import SEED, Trials, in_any_branch, make_free, make_trials
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.problem import MATRIX, Problem
from factorgraph_dyn.equations.quantities import QUANTITIES, derived_by, quantity, split_derivative, split_name
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from factorgraph_dyn.spatial import Floats

ALLOWED = 1e-9  # largest relative error of a kernel that is given away
GOOD = 1e-10  # error above which a more careful route, whose kernel is slower, is tried
REGULAR = 1e8  # condition up to which an ordinary state has to be answered
SILENT = 0.25  # share of the special states that may go unanswered
_SHARED = 1e-6  # of the largest wrench of idle forces, above which one is no rounding
_REFINEMENTS = 3  # of what a kernel does not say; each gains as many digits as the condition leaves

_FORCES = (QUANTITIES["tau"], QUANTITIES["F"])

Function = Callable[..., Any]


@dataclass(frozen=True)
class Proof:
    """How exact a kernel is.

    Attributes:
        accuracy: The largest relative error over the states and outputs that were tried.
        worst: The output and entry it is found in.
        regular: How many special and ordinary states have an answer that plain floats find easily.
        silent: How many of them the kernel answers by nan.
        allowed: Share of the special states that it may answer so.
    """

    accuracy: float
    worst: str
    regular: tuple[int, int]
    silent: tuple[int, int]
    allowed: float = SILENT

    @property
    def holds(self) -> bool:
        """Whether the kernel may be given away."""
        special, ordinary = self.silent
        return self.accuracy <= ALLOWED and not ordinary and special <= self.allowed * self.regular[0]

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


class Trial:
    """The equations of a problem at trial states, which any number of kernels can be put into.

    Attributes:
        elsewhere: Trials in any branch of the loops, where a kernel may be silent.
    """

    def __init__(self, mechanism: Mechanism, problem: Problem, states: Trials | None = None) -> None:
        self.mechanism = mechanism.tree if problem.tree_only else mechanism
        self.problem = problem
        self._rng = np.random.default_rng(SEED)
        branches = in_any_branch(self.mechanism) if states is None and self._is_watched else []
        self.elsewhere = [Trial(mechanism, problem, branch) for branch in branches]
        self.states = make_trials(self.mechanism, self._rng) if states is None else states
        self.still = problem.kept is not None  # responses do not depend on velocities and gravity
        everything = np.ones(mechanism.nv, dtype=bool)
        self.known = {
            "a": everything if problem.kept == "a" else problem.known_a,
            "tau": everything if problem.kept == "tau" else problem.known_tau,
        }
        v = self.states.v * ("v" in problem.arguments)
        self.free = make_free(self.mechanism, problem.free, len(v), self._rng)
        with np.errstate(all="ignore"):  # states beyond numbers are judged by what comes out
            numbers = Numbers(self.mechanism, problem.free.links, self.free)
            self.here = ManyStates(self.mechanism, self.states.q, v, natural(self.mechanism).length, numbers)
            self.system = System(self.here, ~self.known["a"], self._sought_torques)
            self.pushes = self._pushes()
            self.loads = self._loads()
            self.given = self._inputs()

    @property
    def _is_watched(self) -> bool:
        """Whether kernels have to tell the branches of loops."""
        return self.problem.guarded and bool(self.mechanism.loops) and not self.problem.solves_nothing

    @property
    def _sought_torques(self) -> Mask:
        """Which torques are sought: none where motion is given whole and nothing else is asked for."""
        asked = {quantity(output) for output in self.problem.outputs}
        if self.problem.kept is None and self.known["a"].all() and asked.isdisjoint(_FORCES):
            return np.zeros(self.mechanism.nv, dtype=bool)
        return ~self.known["tau"]

    def explains(self, refusal: CompileError) -> bool:
        """Whether the problem has no answer, so that it is not how it was taken that a refusal is due to."""
        if not np.median(self.system.condition) < REGULAR:
            return True
        asked = {(split_derivative(output) or (output,))[0] for output in self.problem.outputs}
        return not self.system.independent and refusal.details.get("variable") in asked & self._shared_wrenches

    @property
    def _shared_wrenches(self) -> set[str]:
        """Wrenches that loops which repeat each other share in many ways: what their idle forces do to them."""
        idle, unit = self.system.idle, natural(self.mechanism).wrench
        loads, of_loops = self.here.loop_loads(idle, np.abs(idle))
        still = self.here.response(np.zeros((*idle.shape[:2], self.mechanism.nv)), still=True, loads=loads)
        wrenches = {**still.F, **{name: F for name, (F, _) in of_loops.items()}}
        sizes = {name: np.abs(F / unit).max(initial=0.0) for name, F in wrenches.items()}
        return {f"F[{name}]" for name, size in sizes.items() if size > _SHARED * max(sizes.values())}

    def _pushes(self) -> dict[str, Floats]:
        """Wrenches from outside by link or frame, of the size of the links' weights."""
        units = natural(self.mechanism)
        size = (natural_rate(self.mechanism) or 1.0) ** 2 * units.wrench
        return {name: self._rng.normal(size=(len(self.states.q), 1, 6)) * size for name in self.problem.pushed}

    def _loads(self) -> list[tuple[str, Floats]]:
        """What pushes links, in their frames: wrenches from outside, and units of contacts, a column each."""
        in_world = self.problem.wrench_axes == "world"
        loads = [(name, link_wrench(self.here, name, F, in_world)) for name, F in self.pushes.items()]
        pushed = [(self.mechanism.place(name)[0], felt) for name, felt in loads]
        return pushed + self.contact_loads(self.here)

    def contact_loads(self, here: ManyStates) -> list[tuple[str, Floats]]:
        """What units of the contacts do to links at some states, in the links' frames, a column each."""
        loads, first = [], int((~self.problem.known_tau).sum())
        columns = first + sum(contact.size for contact in self.problem.contacts)
        for contact in self.problem.contacts:
            units = np.zeros((here.states, columns, 6))
            units[:, first : first + contact.size, -contact.directions.shape[1] :] = contact.directions
            first += contact.size
            felt = link_wrench(here, contact.link, units, contact.axes == "world", contact.point)
            loads.append((self.mechanism.place(contact.link)[0], felt))
        return loads

    def _inputs(self) -> dict[str, Floats]:
        """Accelerations that keep closure, and torques that answer them or are of their terms' size."""
        if self.problem.kept is not None:
            return self._units(self.problem.kept)
        if self.problem.solves_nothing:
            return dict.fromkeys(("a", "tau"), np.zeros((len(self.states.q), 1, self.mechanism.nv)))
        a = self.states.a[:, None] * ("a" in self.problem.arguments or not self.known["a"].any())
        a = a - self.system.closing(self.response(a).missed)
        asked = self.response(a)
        chance = self._rng.normal(size=a.shape) * asked.tau_size
        tau = np.where((np.arange(len(a)) % 2 == 0)[:, None, None], asked.tau, chance)
        if "tau" in self.problem.arguments:
            return {"a": a, "tau": tau}
        tau = np.where(self.known["tau"], 0.0, tau)  # passive joints have no torque
        if (self.known["a"] & self.known["tau"]).any() and not self._can_cause_all:
            a = self._answer(tau)
        return {"a": a, "tau": np.zeros(a.shape)}

    @property
    def _can_cause_all(self) -> bool:
        """Whether accelerations are given that closure allows, and there is a torque for every motion it allows."""
        motions = self.system.free.shape[1]
        return bool(self.known["a"].all() and motions <= (~self.known["tau"]).sum())

    def _answer(self, tau: Floats) -> Floats:
        """The accelerations that torques cause, 0 where nothing acts; where undetermined, the state is no trial."""
        everything = np.ones(self.mechanism.nv, dtype=bool)
        forward = System(self.here, everything, ~everything)
        self.system.condition = np.maximum(self.system.condition, forward.condition)
        return np.nan_to_num(forward.refined(np.zeros(tau.shape), tau, self.response, _REFINEMENTS).a)

    def _units(self, kept: str) -> dict[str, Floats]:
        """One column for every unit of what is kept."""
        contacts = sum(contact.size for contact in self.problem.contacts)
        columns = np.concatenate(
            [np.eye(self.mechanism.nv)[list(self.problem.causes)], np.zeros((contacts, self.mechanism.nv))]
        )
        units = np.broadcast_to(columns, (len(self.states.q), *columns.shape))
        return {"a": np.zeros(units.shape), "tau": np.zeros(units.shape), kept: units}

    def response(self, a: Floats, closure: Loads | None = None) -> Response:
        """What accelerations ask for under the wrenches from outside and, where they are given, those of closure."""
        acting = Loads() if closure is None else closure
        for link, wrench in self.loads:
            acting.add(link, wrench)
        return self.here.response(a, still=self.still, loads=acting)

    def judge(self, function: Function) -> Proof:
        """How exact a kernel's function is.

        Args:
            function: Takes arrays of arguments with a leading axis of states; gives a result, or a tuple of them.
        """
        proof = self._judge(function)
        others = [there for branch in self.elsewhere if np.isfinite((there := branch.judge(function)).accuracy)]
        worst = max(others, key=lambda there: there.accuracy, default=proof)
        if worst.accuracy <= proof.accuracy:
            return proof
        return replace(proof, accuracy=worst.accuracy, worst=f"{worst.worst} in some branch of the loops")

    def _judge(self, function: Function) -> Proof:
        arguments = {"q": self.states.q, "v": self.states.v, "a": self.given["a"][:, 0], "tau": self.given["tau"][:, 0]}
        arguments |= {f"wrench[{name}]": wrench[:, 0] for name, wrench in self.pushes.items()}
        arguments |= self.free
        with np.errstate(all="ignore"):
            results = function(*(arguments[name] for name in self.problem.arguments))
            results = results if isinstance(results, tuple) else (results,)
            answers = {
                self._responding(name): result.reshape(len(result), 1, -1)
                if self.problem.kept is None
                else np.swapaxes(result, 1, 2)
                for name, result in zip(self.problem.outputs, results, strict=True)
            }
            answered = np.all([np.isfinite(x).all(axis=tuple(range(1, x.ndim))) for x in answers.values()], axis=0)
            answers = {name: np.nan_to_num(answer) for name, answer in answers.items()}
            derived = {name: answers.pop(name) for name in map(self._responding, self.problem.derivatives)}
            errors = (self._errors(answers) if answers else {}) | self._slope_errors(derived)
        return self._verdict(errors, answered)

    def _responding(self, output: str) -> str:
        """The output, a matrix of responses by the name of what responds, or its derivative."""
        if self.problem.kept is None:
            return output
        return output.replace(MATRIX, "tau" if self.problem.kept == "a" else "a", 1)

    def _slope_errors(self, answers: dict[str, Floats]) -> dict[str, Floats]:
        """Errors of derivatives: of the change of each output where all arguments it is derived by change at once."""
        asked: dict[tuple[str, ...], list[str]] = {}
        for output, arguments in derived_by(answers).items():
            asked.setdefault(arguments, []).append(output)
        errors: dict[str, Floats] = {}
        for arguments, outputs in asked.items():
            slopes = Slopes(self, arguments, np.random.default_rng(SEED))
            for output, (true, scale) in slopes.of(outputs).items():
                terms = [
                    answers[f"d{output}/d{name}"].reshape(*true.shape, -1) * along[:, None, None]
                    for name, along in slopes.direction.items()
                ]
                found, size = (sum(part.sum(axis=-1) for part in parts) for parts in (terms, map(np.abs, terms)))
                errors[f"d{output}/d({', '.join(arguments)})"] = np.abs(found - true) / np.maximum(
                    np.hypot(scale, size), TINY
                )
        return errors

    def solved(self) -> PlainAnswer:
        """The plain answer at the trial's states."""
        a, tau = (np.where(self.known[name], self.given[name], 0.0) for name in ("a", "tau"))
        return self.system.refined(a, tau, self.response, _REFINEMENTS)

    def _verdict(self, errors: dict[str, Floats], answered: Mask) -> Proof:
        condition, ordinary = self.system.condition, self.states.ordinary
        judged, regular = answered & (condition < SOLVABLE), condition < REGULAR
        accuracy, worst = 0.0 if judged.any() else np.inf, "nothing"  # what nobody could judge is not proved
        for name, error in errors.items():
            found = np.nan_to_num(error[judged], nan=np.inf)
            if found.size and found.max() > accuracy:
                accuracy = float(found.max())
                worst = _entry_name(self.mechanism, name, int(found.argmax() % found.shape[-1]))
        sorts = (~ordinary, ordinary)
        return Proof(accuracy, worst, _counts(regular, sorts), _counts(regular & ~answered, sorts))

    def _errors(self, answers: dict[str, Floats]) -> dict[str, Floats]:
        """The relative error of every entry of every output, shape (states, columns, entries)."""
        a, tau = (np.where(self.known[name], self.given[name], answers.get(name, 0.0)) for name in ("a", "tau"))
        is_said = all(name in answers or known.all() for name, known in self.known.items())
        found = self.system.refined(a, tau, self.response, 1 if is_said else _REFINEMENTS)
        true = {"a": (found.a, found.a_scale), "tau": (found.tau, found.tau_scale)}
        errors = {
            name: np.abs(answer - true[name][0]) / true[name][1] for name, answer in answers.items() if name in true
        }
        others = {name: answer for name, answer in answers.items() if name not in true}
        return errors | self._link_errors(others, found) if others else errors

    def _link_errors(self, answers: dict[str, Floats], found: PlainAnswer) -> dict[str, Floats]:
        """Errors of what is neither a nor tau, its parts by their own sizes: moments and forces, turns and shifts."""
        tree, blur = self.response(found.a), self.here.response(found.a_blur, still=True)
        forces = self.system.constraint_forces(tree.tau - found.tau, np.hypot(tree.tau_size, blur.tau_size))
        closure, of_loops = self.here.loop_loads(*forces)
        plain = Plain(self.here, self.response(found.a, closure), blur, of_loops)
        errors = {}
        for name, answer in answers.items():
            kind, owner = split_name(name)
            value, size = TRUE_VALUES[kind](plain, owner)
            errors[name] = _relative(answer - value, value, size)
        return errors


def _counts(states: Mask, sorts: tuple[Mask, Mask]) -> tuple[int, int]:
    first, second = sorts
    return int((states & first).sum()), int((states & second).sum())


def _relative(difference: Floats, value: Floats, size: Floats) -> Floats:
    """Errors of the numbers that share a size, in parts of their norm or of the terms they are made of."""
    alike = value.reshape(*size.shape, -1)
    scale = np.maximum(np.linalg.norm(alike, axis=-1), CANCELLED * size)
    scale = np.repeat(np.maximum(scale, TINY), alike.shape[-1], axis=-1)
    errors: Floats = np.abs(difference) / scale
    return errors


def _entry_name(mechanism: Mechanism, output: str, entry: int) -> str:
    if output not in ("a", "tau"):
        return output
    joint = next(name for name in mechanism.joint_names if entry < mechanism.v_slices[name].stop)
    return f"{output}[{joint}]"
