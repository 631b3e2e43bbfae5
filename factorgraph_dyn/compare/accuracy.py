"""How exact an ordering's kernel is, over thousands of states.

Takes a program; gives its largest relative error,

    max over states of  max |x - x_reference| / max |x_reference|

where the reference is the classical ordering's program in extended precision. Where the machine has none, the
reference is that program in double precision, which bounds errors from below only by its own.

The work runs once an ordering: tens of milliseconds for 4096 states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn.compiler.program import Program
from factorgraph_dyn.compiler.sampled_parameters import drawn_values
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import Problem, make_problem
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats

STATES = 4096
CLOSED_STATES = 128  # states of closed mechanisms are solved for one by one
PARAMETERS = 61  # different values of free parameters, which are drawn one by one
FLOOR = 2.2e-16  # nobody has to be better than rounding


def draw_states(mechanism: Mechanism, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Random states, closed where there are loops, shapes (count, nq) and (count, nv)."""
    drawn = [mechanism.random_state(rng) for _ in range(count)]
    q, v = (np.array(values) for values in zip(*drawn, strict=True))
    return q, v


def _accelerations(
    mechanism: Mechanism, problem: Problem, values: dict[str, Floats], rng: np.random.Generator
) -> Floats:
    """Accelerations at some states; those that loops and passive joints allow where they have a say."""
    if not mechanism.is_closed_kind or "a" not in problem.arguments:
        return rng.normal(size=values["v"].shape) * natural(mechanism).v
    forward = make_problem(mechanism, "forward")
    tau = np.where(problem.known_tau, 0.0, values["tau"])
    columns = [column for array in (values["q"], values["v"], tau) for column in array.T]
    return np.array(Interpreter(trace(mechanism, forward, forward.classical).program, columns).outputs()).T


class AccuracyCheck:
    """The states and the reference that programs of one problem are measured against."""

    def __init__(self, mechanism: Mechanism, problem: Problem, *, states: int = STATES, seed: int = 1) -> None:
        count = min(states, CLOSED_STATES) if mechanism.is_closed_kind else states
        rng = np.random.default_rng(seed)
        q, v = draw_states(mechanism, count, rng)
        values = {"q": q, "v": v, "tau": rng.normal(size=v.shape) * natural(mechanism).tau}
        values["a"] = _accelerations(mechanism, problem, values, rng)
        for name in problem.free.arguments:
            drawn = drawn_values(mechanism, name, problem.free.links, PARAMETERS, rng)
            values[name] = np.resize(drawn, (count, *drawn.shape[1:]))
        self.arguments = tuple(values[name] for name in problem.arguments)
        self._inputs = [column for array in self.arguments for column in array.reshape(count, -1).T]
        reference = trace(mechanism, problem, problem.classical).program
        self._reference = self._outputs(reference, np.longdouble)
        self.classical = self.error(reference)

    def error(self, program: Program) -> float:
        """The largest relative error of a program; infinite where a state is rejected."""
        return self.error_of(self._outputs(program, np.float64))

    def error_of(self, found: Any) -> float:
        """The largest relative error of answers at the states ``arguments``, shape (outputs, states)."""
        scale = np.maximum(np.abs(self._reference).max(axis=0), np.finfo(np.float64).tiny)
        errors = np.abs(found - self._reference).max(axis=0) / scale
        return float(np.where(np.isfinite(errors), errors, np.inf).max(initial=0.0))

    @property
    def allowed(self) -> float:
        """The error up to which an ordering counts as exact as the classical one: ten times its."""
        return 10 * max(self.classical, FLOOR)

    def _outputs(self, program: Program, precision: Any) -> Any:
        inputs: Any = [column.astype(precision) for column in self._inputs]
        outputs = Interpreter(program, inputs).outputs()
        return np.array(outputs) if outputs else np.zeros((1, len(self.arguments[0])))
