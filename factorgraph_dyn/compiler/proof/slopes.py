"""Derivatives in plain numbers: differences of Newton and Euler along one random direction a state.

Takes a trial of a problem and the arguments that derivatives are asked for by; gives how its results change where all
these arguments change at once, each at random. No equation is solved at other states than the trial's own: what
accelerations ask for is looked at in six places along the direction,

    f' = (45 (f_1 - f_-1) - 9 (f_2 - f_-2) + (f_3 - f_-3)) / (60 h)         f_k = f(k h),    error  h^6 f^(7) / 140

and the changes of the unknowns follow from the system of the trial's states, B x' = (what is missed)'. The forces of
closure go along with the places, so that what they do as the geometry changes is in the balances. Along a direction
that closes loops to first order, the differences are those of the closed mechanism.

Functions of a mechanism are smooth at the scale of a radian or its length, whatever their condition, so differences
with h = 1/100 are exact to some 1e-12 of their terms: that is how well derivatives can be proved. Signs of velocities,
in friction, are those of the trial's state everywhere. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from factorgraph_dyn.compiler.outputs import TRUE_VALUES, Plain
from factorgraph_dyn.compiler.proof.newton_euler import Loads, ManyStates, Response
from factorgraph_dyn.compiler.proof.numbers import Numbers
from factorgraph_dyn.compiler.proof.place_values import link_wrench
from factorgraph_dyn.compiler.proof.plain_system import PlainAnswer
from factorgraph_dyn.equations.free import PARAMETERS
from factorgraph_dyn.equations.quantities import quantity, split_name
from factorgraph_dyn.model.sizes.units import Natural, natural, natural_rate
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.compiler.proof.proof import Trial

_STEP = 0.01
_PLACES = np.array([-3, -2, -1, 1, 2, 3])
_WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / (60.0 * _STEP)
_REFINEMENTS = 2


class Slopes:
    """How a problem's results change along one direction at every trial state.

    Attributes:
        direction: The change of every argument that is asked for, shape (states, entries), for q (states, nv).
    """

    def __init__(self, trial: Trial, arguments: Sequence[str], rng: np.random.Generator) -> None:
        self.trial = trial
        self.direction = _directions(trial, arguments, rng)
        self._close()
        base = self._base = trial.solved()
        tree = trial.response(base.a)
        self._forces = trial.system.constraint_forces(tree.tau - base.tau, tree.tau_size)
        self._sizes = trial.response(base.a, trial.here.loop_loads(*self._forces)[0])
        self._here = self._places()
        nothing = np.zeros((len(base.a), base.a.shape[-1]))
        known = {name: self.direction.get(name, nothing)[:, None] + 0.0 * base.a for name in ("a", "tau")}
        if "a" in self.direction and trial.known["a"].all():
            known["a"] = known["a"] - trial.system.closing(self._response(known["a"]).missed)
            self.direction["a"] = known["a"][:, 0]
        start = {name: np.where(trial.known[name], change, 0.0) for name, change in known.items()}
        self.found: PlainAnswer = trial.system.refined(start["a"], start["tau"], self._response, _REFINEMENTS)

    def _close(self) -> None:
        """Let q and v change along the closure to first order, as far as both are asked for."""
        trial, along = self.trial, self.direction
        system = trial.system
        if not system.rows.size:
            return
        if "q" in along:
            free = system.free / np.maximum(np.linalg.norm(system.free, axis=-1, keepdims=True), 1e-300)
            mixed = np.einsum("sf,sfn->sn", np.random.default_rng(1).normal(size=free.shape[:2]), free) * system.D
            size = np.linalg.norm(mixed / natural(trial.mechanism).v, axis=-1, keepdims=True)
            along["q"] = mixed / np.where(size > 0, size, 1.0) * _share(along)
        if "v" in along:
            at_rest = np.zeros(along["v"].shape)
            missed = self._differences(self._moved(at_rest).slips())
            slip = np.einsum("srn,sn->sr", trial.here.closure_jacobian()[0], along["v"])[:, None]
            along["v"] = along["v"] - system.closing(missed + slip)[:, 0]

    def _moved(self, v_change: Floats) -> ManyStates:
        """The mechanism in all places along the direction, one after the other."""
        trial, along = self.trial, self.direction
        q, v = trial.states.q, trial.here.v
        turned = [
            q
            if "q" not in along
            else np.array([integrate(trial.mechanism, *pair, k * _STEP) for pair in zip(q, along["q"], strict=True)])
            for k in _PLACES
        ]
        speeds = [v + k * _STEP * v_change for k in _PLACES]
        here, links = trial.here, trial.problem.free.links
        free = {name: self._along(value, self._change(name, value)) for name, value in trial.free.items()}
        numbers = Numbers(trial.mechanism, links, free)
        places, length = (np.concatenate(turned), np.concatenate(speeds)), float(here.unit[-1])
        return ManyStates(trial.mechanism, *places, length, numbers, near=here)

    def _change(self, name: str, value: Floats) -> Any:
        """The change of an argument that stands for constants."""
        return self.direction[name].reshape(value.shape) if name in self.direction else 0.0

    def _places(self) -> ManyStates:
        return self._moved(self.direction.get("v", np.zeros(self.trial.here.v.shape)))

    def _at_speed(self) -> ManyStates:
        """The trial's states with the whole change of v.

        What goes with squares of speeds has next to no size at rest, and what differences leave out of it has: it goes
        with the speeds of the direction.
        """
        here = self.trial.here
        v = here.v + self.direction.get("v", 0.0)
        return ManyStates(here.mechanism, here.q, v, float(here.unit[-1]), here.numbers, near=here)

    def _differences(self, values: Floats) -> Floats:
        """The change of values in all places, shape (places states, ...)."""
        parts = values.reshape(len(_PLACES), len(values) // len(_PLACES), *values.shape[1:])
        return np.asarray(np.tensordot(_WEIGHTS, parts, axes=1))

    def _along(self, value: Floats, change: Any) -> Floats:
        """A value in all places that changes evenly."""
        return np.concatenate([value + k * _STEP * change for k in _PLACES])

    def _loads(self, forces: tuple[Floats, Floats] | None = None) -> tuple[Loads, dict[str, tuple[Floats, Floats]]]:
        """Wrenches from outside and of closure in all places; the latter's forces stay unless their change is told."""
        values, sizes = self._forces
        kept = self._along(values, 0.0 if forces is None else forces[0]), self._along(sizes, 0.0)
        loads, of_loops = self._here.loop_loads(*kept)
        in_world = self.trial.problem.wrench_axes == "world"
        for name, wrench in self.trial.pushes.items():
            change = self.direction.get(f"wrench[{name}]")
            there = self._along(wrench, 0.0 if change is None else change[:, None])
            link, _ = self.trial.mechanism.place(name)
            loads.add(link, link_wrench(self._here, name, there, in_world))
        for link, felt in self.trial.contact_loads(self._here):
            loads.add(link, felt)
        return loads, of_loops

    def _response(self, a_change: Floats) -> Response:
        """The change of what accelerations ask for, where these change so, with the sizes of what changes."""
        a, loads = self._along(self._base.a, a_change), self._loads()[0]
        there = self._here.response(a, still=self.trial.still, loads=loads)
        tau, missed = self._differences(there.tau), self._differences(there.missed)
        return replace(self._sizes, tau=tau, missed=missed)

    def of(self, outputs: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
        """The change of every output and what its error is measured by, shape (states, 1, entries) each."""
        found = self.found
        true = {
            "a": (found.a, np.hypot(found.a_scale, self._base.a_scale)),
            "tau": (found.tau, np.hypot(found.tau_scale, self._base.tau_scale)),
        }
        others = [name for name in outputs if name not in true]
        if others:
            true |= self._of_links(others)
        return {name: true[name] for name in outputs}

    def _of_links(self, names: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
        tau_change = self._response(self.found.a).tau
        change = self.trial.system.constraint_forces(tau_change - self.found.tau, self._sizes.tau_size)
        loads, of_loops = self._loads(change)
        true = self._here.response(self._along(self._base.a, self.found.a), loads=loads)
        blur = self._here.response(self._along(self._base.a_blur, 0.0), still=True)
        there = Plain(self._here, true, blur, of_loops)
        at_speed = there._replace(here=self._at_speed())
        found = {}
        for name in names:
            kind, owner = split_name(name)
            value, size = TRUE_VALUES[kind](there, owner)
            middle = size[len(size) // 2 :][: len(value) // len(_PLACES)]
            if quantity(name).follows_state:
                middle = np.maximum(middle, TRUE_VALUES[kind](at_speed, owner)[1])
            slope = self._differences(value)
            alike = slope.reshape(*middle.shape, -1)
            scale = np.maximum(np.linalg.norm(alike, axis=-1), middle)
            found[name] = slope, np.repeat(scale, alike.shape[-1], axis=-1)
        return found


def _share(along: Mapping[str, Any]) -> float:
    """The part of a direction of unit size that each argument has."""
    return float(1.0 / np.sqrt(len(along)))


def _directions(trial: Trial, arguments: Sequence[str], rng: np.random.Generator) -> dict[str, Floats]:
    """A random change of every argument, of one unit in all: a radian or the mechanism's length, usual speeds."""
    own, rate = natural(trial.mechanism), natural_rate(trial.mechanism) or 1.0
    states, nv = trial.here.v.shape
    speed = np.maximum(np.abs(trial.here.v / own.v).max(axis=-1, keepdims=True), rate)
    units = {"q": own.v, "v": own.v * speed, "a": own.v * rate**2, "tau": own.tau * rate**2}
    units |= {name: _usual(own, name, value) for name, value in trial.free.items()}
    found = {}
    for name in arguments:
        unit = units.get(name, own.wrench * rate**2)
        drawn = rng.normal(size=(states, len(unit) if unit.ndim == 1 else nv))
        found[name] = drawn / np.linalg.norm(drawn, axis=-1, keepdims=True) * unit / np.sqrt(len(arguments))
    return found


def _usual(own: Natural, name: str, value: Floats) -> Floats:
    """The usual size of the entries of an argument that stands for constants, one after the other."""
    if name == PARAMETERS:
        row = own.mass * own.length ** np.repeat([0, 1, 2], [1, 3, 6])
        return np.tile(row, value.shape[1])
    return np.full(value[0].size, float(np.abs(value).max()) or 1.0)
