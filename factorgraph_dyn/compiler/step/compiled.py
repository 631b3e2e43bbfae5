"""One integration step with its derivatives: what iLQR and MPC call.

Takes a tree and an integrator; gives a callable

    (q, v, tau, step)  ->  q', v', A, B             A (2 nv, 2 nv), B (2 nv, nv), any leading batch axes

with [q'; v'] changed by A [q; v] + B tau to first order: changes of q and q' are along velocities, as `fgd.integrate`
moves, so that A is square where quaternions make q longer than v. All of it is one piece of machine code (`program`),
proved beside the chain rule on plain arrays (`chain`), which takes its place where the code would be too long: four
stages of Runge-Kutta for more than some ten freedoms. The work runs once a mechanism and integrator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice, real_numbers
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import ENTRY_POINTS, emit_module
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.kernel.compile import compile, kept_name
from factorgraph_dyn.compiler.kernel.fastcall import emit_fastcall, make_fast_function
from factorgraph_dyn.compiler.kernel.gufunc import make_gufunc
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.compiler.program import Operations
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.compiler.step.chain import centre_kernel, chained_step
from factorgraph_dyn.compiler.step.program import OUTPUTS, step_program
from factorgraph_dyn.errors import CompileError, InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.flight import flight_of
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import with_unit_quaternions
from factorgraph_dyn.spatial import Floats

ARGUMENTS = ("q", "v", "tau", "step")
SAME_STEP = 1e-9  # largest difference from the chain rule, in parts of a result's largest entry
_ENTRIES = (*ENTRY_POINTS, "fastcall")
_TRIAL_TURN = 1e-2  # of a joint in the step of a trial, beside its usual rate
_TRIALS = 9  # a full tile of every width and a rest

Function = Callable[..., tuple[Floats, Floats, Floats, Floats]]


class Linearised(NamedTuple):
    """A step and its derivatives.

    Attributes:
        q, v: The next state, shapes (..., nq) and (..., nv).
        A: Its change with q and v, shape (..., 2 nv, 2 nv).
        B: Its change with tau, shape (..., 2 nv, nv).
    """

    q: Floats
    v: Floats
    A: Floats
    B: Floats


@dataclass(frozen=True, eq=False)
class _Code:
    """Machine code of a step.

    Attributes:
        gufunc: The step of arrays that broadcast.
        address: Of the function that takes plain arrays of one state, or of some.
        operations: What one state costs.
        owner: What keeps the code in memory.
    """

    gufunc: Function
    address: int
    operations: Operations
    owner: machine.LoadedCode


class StepKernel:
    """An integration step of a mechanism, with derivatives.

    A state that the kernel of accelerations has no answer for, or that turns by more than 8 rad in the step, gives nan.
    Quaternions of any length stand for their rotation, as in kernels.

    Attributes:
        mechanism: What moves.
        integrator: "semi_implicit" or "rk4".
        kernel: Accelerations and their derivatives, which the step is made of.
        operations: What one state costs; None where the step is made of calls of the kernel.

    Examples:
        >>> fgd.compile_step(fgd.robots.pendulum(2)).integrator
        'semi_implicit'
    """

    def __init__(self, integrator: str, kernel: Kernel, code: _Code | None) -> None:
        self.mechanism, self.integrator, self.kernel = kernel.mechanism, integrator, kernel
        self.operations = None if code is None else code.operations
        if code is None and flight_of(self.mechanism) is not None:
            centre_kernel(self.mechanism)  # compiled now rather than in the first step
        self._step = partial(chained_step, kernel, integrator) if code is None else code.gufunc
        fast = None if code is None else make_fast_function(code.address, "step", ARGUMENTS, self._checked, code)
        self._function: Function = self._checked if fast is None else fast
        self._has_quaternions = any(joint.type.has_quaternion for joint in self.mechanism.movable_joints)

    def __repr__(self) -> str:
        cost = "" if self.operations is None else f", {self.operations.total} operations"
        return f"<StepKernel {self.integrator} of {self.mechanism.name!r}: (q, v, tau, step) -> q, v, A, B{cost}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_step, (self.mechanism, self.integrator)

    def __call__(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, step: npt.ArrayLike) -> Linearised:
        """The next state and how it changes with the state and the torques.

        Args:
            q, v, tau: Coordinates, velocities and torques, which are held over the step; leading axes broadcast.
            step: s; one number, or one for every state of a batch.
        """
        seconds = real_numbers(step, "step", InputError)
        if not np.isfinite(seconds).all():
            raise InputError(f"step is {step!r}; it must be a number of seconds, or one for every state.")
        return Linearised._make(self._function(self._with_units(q), v, tau, seconds))

    def _with_units(self, q: npt.ArrayLike) -> npt.ArrayLike:
        """The same q with unit quaternions, which the code, that has no roots, takes them to be up to rounding."""
        if not self._has_quaternions:
            return q
        array = real_numbers(q, "q", InputError)
        if array.shape[-1:] != (self.mechanism.nq,):
            return array  # which `_arrays` refuses
        with np.errstate(all="ignore"):  # a quaternion of zeros has no answer
            return with_unit_quaternions(self.mechanism, array)

    def _checked(self, *given: npt.ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
        """The step of whatever can be made arrays of the right shapes."""
        with np.errstate(all="ignore"):  # nan is the answer where a guard fails, not an accident
            return self._step(*self._arrays(*given))

    def _arrays(self, *given: npt.ArrayLike) -> list[Floats]:
        """All arguments with the same leading axes."""
        arrays = [real_numbers(value, name, InputError) for name, value in zip(ARGUMENTS, given, strict=True)]
        sizes = (self.mechanism.nq, self.mechanism.nv, self.mechanism.nv)
        for name, array, size in zip(ARGUMENTS, arrays, sizes, strict=False):
            if array.shape[-1:] != (size,):
                raise InputError(
                    f"{name} has shape {array.shape}; its last axis must have length {size} for mechanism "
                    f"{self.mechanism.name!r}, whose joints are {', '.join(self.mechanism.joint_names)}."
                )
        batch = _batch(arrays)
        return [np.broadcast_to(x, (*batch, *x.shape[-1:])) for x in arrays[:-1]] + [np.broadcast_to(arrays[-1], batch)]


def _batch(arrays: Sequence[Floats]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(array.shape[:-1] for array in arrays[:-1]), arrays[-1].shape)
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(ARGUMENTS, arrays, strict=True))
        raise InputError(f"The arguments do not go together: {shapes}. Leading axes have to broadcast.") from None


def compile_step(mechanism: Mechanism, integrator: str = "semi_implicit") -> StepKernel:
    """One integration step of a tree with its derivatives by state and torque: ``step(q, v, tau, h) -> q, v, A, B``.

    Args:
        mechanism: A mechanism without loops and couplings.
        integrator: "semi_implicit" or "rk4", as in `fgd.rollout`.

    Raises:
        InputError: An integrator that there is not.
        CompileError: A mechanism with loops or couplings, or what `compile` raises.

    Examples:
        >>> step = fgd.compile_step(fgd.robots.pendulum(2), "rk4")
        >>> q, v, A, B = step(np.zeros(2), np.zeros(2), np.zeros(2), 0.01)
        >>> A.shape, B.shape
        ((4, 4), (4, 2))
    """
    check_choice(integrator, INTEGRATORS, "The integrator")
    if check_mechanism(mechanism).is_closed_kind:
        raise CompileError(
            f"Mechanism {mechanism.name!r} has loops or couplings: a step closes them again, and derivatives of "
            "that are not known here. Take outputs=('a', 'da/dq', 'da/dv', 'da/dtau') of fgd.compile along the closure."
        )
    kernel = compile(mechanism, "forward", outputs=OUTPUTS)
    return StepKernel(integrator, kernel, _kept_code(kernel, integrator))


def _kept_code(kernel: Kernel, integrator: str) -> _Code | None:
    """The code of a step, from the cache on disk where it has been compiled before; None where there is none."""
    host = machine.host()
    name = kept_name(kernel.mechanism, host, "step", integrator, kernel.ordering.key)
    entry = cache.read(name)
    if entry is None:
        entry = _made(kernel, integrator, host)
        cache.write(name, entry)
    code = machine.load_or_none(entry.code, _ENTRIES, host) if entry.code else None
    return None if code is None else _code(kernel.mechanism, entry.facts, code)


def _made(kernel: Kernel, integrator: str, host: machine.Machine) -> cache.Entry:
    """The code of a step that does what the chain rule does, or nothing."""
    with suppress(CompileError):
        program = step_program(kernel.mechanism, integrator, kernel.ordering)
        stored = machine.object_code(emit_module(program, host) + emit_fastcall(program), host)
        facts = {"operations": astuple(program.operations)}
        code = _code(kernel.mechanism, facts, machine.load(stored, _ENTRIES, host))
        if largest_error(code.gufunc, kernel, integrator) <= SAME_STEP:
            return cache.Entry(facts, stored)
    return cache.Entry({}, b"")


def _code(mechanism: Mechanism, facts: dict[str, Any], loaded: machine.LoadedCode) -> _Code:
    nq, nv = mechanism.nq, mechanism.nv
    signature = f"({nq}),({nv}),({nv}),()->({nq}),({nv}),({2 * nv},{2 * nv}),({2 * nv},{nv})"
    gufunc = make_gufunc(loaded.addresses["loop"], signature, 4, 4, "step", "A step with derivatives", loaded)
    return _Code(gufunc, loaded.addresses["fastcall"], Operations(*facts["operations"]), loaded)


def largest_error(function: Function, kernel: Kernel, integrator: str) -> float:
    """The largest difference from the chain rule, over some states; infinite where one has numbers and one has none."""
    mechanism, states = kernel.mechanism, sampled_states(kernel.mechanism)
    chosen = slice(states.special, states.special + _TRIALS)
    q, v, tau = states.q[chosen], states.v[chosen], states.of("tau", mechanism.nv)[0].T[chosen]
    step = np.array(_TRIAL_TURN / states.rate)
    with np.errstate(all="ignore"):
        found = function(q, v, tau, step)
    errors = 0.0
    for values, expected in zip(found, chained_step(kernel, integrator, q, v, tau, step), strict=True):
        if (np.isfinite(values) != np.isfinite(expected)).any():
            return np.inf
        axes = tuple(range(1, values.ndim))
        size = np.abs(expected).max(axis=axes, keepdims=True, initial=0.0)
        errors = max(errors, float(np.nanmax(np.abs(values - expected) / np.where(size, size, 1.0), initial=0.0)))
    return errors
