"""The kernel: compiled dynamics that is called like a function.

Takes linked code and what it was made from; gives a callable over single states and batches. A single
state in plain arrays takes the fast way (see `fastcall`); everything else goes through a NumPy gufunc after
its shapes and types have been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_array, check_apart, check_count, check_kind, check_path, shown
from factorgraph_dyn.compiler.backends.c import source as c_source
from factorgraph_dyn.compiler.backends.llvm.machine import LoadedCode
from factorgraph_dyn.compiler.kernel.explain import explain
from factorgraph_dyn.compiler.kernel.fastcall import make_fast_function
from factorgraph_dyn.compiler.kernel.foreign import in_blocks, library_of, refuse_labelled
from factorgraph_dyn.compiler.kernel.gufunc import make_gufunc
from factorgraph_dyn.compiler.kernel.threads import MOST_THREADS, cores, thread_pool
from factorgraph_dyn.compiler.program import Operand, Operations, Program
from factorgraph_dyn.equations.problem import MATRIX, Problem
from factorgraph_dyn.equations.quantities import meaning
from factorgraph_dyn.errors import CompileError, InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.spatial import Floats


@dataclass(frozen=True, eq=False)
class KernelPlan:
    """What a kernel is made from.

    Attributes:
        mechanism: The mechanism.
        problem: What is computed.
        ordering: The ordering it was eliminated in.
        operations: What one state costs.
        shared_operations: What it costs where all states of a batch share the parameters.
        inputs, outputs: Shapes of arguments and results, without batch axes.
        redundant: Equations that repeat others.
        accuracy: Largest relative error when the kernel was proved.
        retrace: Gives the program again, with or without guards, for those who want to look at it.
        remake: Function and arguments that give the kernel again, for pickling.
    """

    mechanism: Mechanism
    problem: Problem
    ordering: Ordering
    operations: Operations
    shared_operations: Operations
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    redundant: int
    accuracy: float
    retrace: Callable[[bool], Program]
    remake: tuple[Callable[..., Kernel], tuple[Any, ...]]


class Kernel:
    """Compiled dynamics of one mechanism, problem and ordering.

    ``kernel(q, v, tau, out=None, threads=1)`` takes arrays whose last axis is the mechanism's, with any
    leading axes, which broadcast; lists and other number types are converted to float64. A state whose pivots are too
    small, or that is far from closing loops and couplings, gives nan in all its results; an argument that is not finite
    gives nan in every entry that depends on it, which entries of mass matrices, and of derivatives that are zero at
    every state, need not. `check` says why. A state that has drifted a little is taken as it is.

    Attributes:
        mechanism: What it was compiled for.
        gufunc: The NumPy generalised ufunc, for libraries that want one.
        signature: Its core dimensions.

    Examples:
        >>> kernel = fgd.compile(fgd.robots.pendulum(2), "forward")
        >>> kernel.accuracy < 1e-11, kernel([0.0, np.nan], [0.0, 0.0], [0.0, 0.0]).tolist()
        (True, [nan, nan])
        >>> kernel.check([0.0, np.nan], [0.0, 0.0], [0.0, 0.0])[0][:1]
        'q'
    """

    __slots__ = ("__call__", "__weakref__", "_code", "_guarded", "_plan", "gufunc", "mechanism", "signature")

    if TYPE_CHECKING:

        def __call__(self, *args: npt.ArrayLike, out: Any = None, threads: int = 1, **named: npt.ArrayLike) -> Any:
            """Evaluate one state or a batch."""

    def __init__(self, plan: KernelPlan, code: LoadedCode) -> None:
        self._plan = plan
        self._code = code
        self._guarded: Program | None = None
        self.mechanism = plan.mechanism
        self.signature = _signature(plan)
        name = self.__name__
        self.gufunc = make_gufunc(
            code.addresses["loop"],
            self.signature,
            len(plan.inputs),
            len(plan.outputs),
            name,
            repr(self),
            code,
        )
        fast = make_fast_function(code.addresses["fastcall"], name, self.arguments, self.call, code)
        # A slot, so that calling the kernel calls the compiled function itself.
        object.__setattr__(self, "__call__", self.call if fast is None else fast)

    @property
    def __name__(self) -> str:
        """Its name among functions, which libraries use to label their work."""
        return f"{self.problem}_{c_source.identifier(self.mechanism.name)}"

    @property
    def ordering(self) -> Ordering:
        """The ordering it was eliminated in."""
        return self._plan.ordering

    @property
    def operations(self) -> Operations:
        """What one state costs: multiplications, additions, divisions, sincos."""
        return self._plan.operations

    @property
    def shared_operations(self) -> Operations:
        """What one state costs in a batch that shares its parameters: what they alone need is computed once a call."""
        return self._plan.shared_operations

    @property
    def problem(self) -> str:
        """What it computes, such as forward, inverse, mass_matrix, kinematics or regressor."""
        return self._plan.problem.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of its arguments."""
        return self._plan.problem.arguments

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of its results."""
        return self._plan.problem.outputs

    @property
    def redundant_equations(self) -> int:
        """Equations that turned out to repeat others, as in overconstrained loops."""
        return self._plan.redundant

    @property
    def accuracy(self) -> float:
        """Its largest relative error when it was compiled, over trial states, in the mechanism's own equations.

        Derivatives are proved by differences, which are exact to some 1e-12: better ones show no smaller number.
        """
        return self._plan.accuracy

    def __repr__(self) -> str:
        results, matrix = ", ".join(self.outputs), self._plan.problem.matrix
        results = results.replace(MATRIX, matrix) if matrix else results
        return (
            f"<Kernel {self.problem} of {self.mechanism.name!r}: ({', '.join(self.arguments)}) -> "
            f"{results}, ordering {self.ordering.name!r}, {self.operations.total} operations>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self._plan.remake

    # Calling

    def call(self, *args: npt.ArrayLike, out: Any = None, threads: int = 1, **named: npt.ArrayLike) -> Any:
        """Evaluate one state or a batch, with all checks.

        Args:
            *args: Arrays in the order of `arguments`; leading axes broadcast. Dask's are computed in blocks.
            out: Array, or tuple of arrays that have no memory in common, to write results to; float64, or a type that
                NumPy casts to by its rule "same_kind", such as float32, whose numbers are then rounded to it.
            threads: Threads to spread the first batch axis over; 0 for one a core.
            **named: Arrays by the names in `arguments`.

        Raises:
            InputError: Wrong number, names, shape or type of arguments, or results that lie on each other.
        """
        args = self._in_order(args, named)
        if isinstance(out, tuple):
            check_apart(out, "out")
        libraries = {library_of(arg) for arg in args} - {None}
        if "dask" in libraries and out is None:
            return in_blocks(self, self.signature, self._plan.outputs, args)
        if libraries:
            try:
                return self.gufunc(*args) if out is None else self.gufunc(*args, out=out)
            except (ValueError, TypeError) as error:
                names = ", ".join(sorted(filter(None, libraries)))
                raise InputError(f"These arrays of {names} are not taken by the kernel; give NumPy's.") from error
        arrays = [self._as_floats(*pair) for pair in zip(args, self.arguments, self._plan.inputs, strict=True)]
        try:
            with np.errstate(all="ignore"):  # nan is the answer where a guard fails, not an accident
                if threads != 1:
                    return self._spread(arrays, out, threads)
                return self.gufunc(*arrays) if out is None else self.gufunc(*arrays, out=out)
        except (ValueError, TypeError) as error:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(self.arguments, arrays, strict=True))
            raise InputError(
                f"The arguments do not go together: {shapes}. Leading axes have to "
                f"broadcast, and out has to fit the result. ({error})"
            ) from None

    def _in_order(self, args: tuple[npt.ArrayLike, ...], named: Mapping[str, npt.ArrayLike]) -> tuple[Any, ...]:
        """The arguments in their order, those given by name included."""
        left = self.arguments[len(args) :]
        for name in named:
            if name not in left:
                given = "is given twice" if name in self.arguments else "is none of its arguments"
                raise InputError(
                    f"{name!r} {given}; the {self.problem} kernel of {self.mechanism.name!r} takes "
                    f"({', '.join(self.arguments)})."
                )
        ordered = (*args, *(named[name] for name in left if name in named))
        self._check_count(ordered)
        refuse_labelled(ordered, self._plan.outputs, self.mechanism.joint_names)
        return ordered

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) != len(self.arguments):
            raise InputError(
                f"The {self.problem} kernel of {self.mechanism.name!r} takes "
                f"{len(self.arguments)} arrays, ({', '.join(self.arguments)}); {len(args)} were given."
            )

    def _as_floats(self, value: npt.ArrayLike, name: str, operand: Operand) -> npt.NDArray[np.float64]:
        array = as_array(value, name, InputError)
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{name} has type {array.dtype}; the kernel takes real numbers (float64, or what converts to it)."
            )
        if len(operand.shape) > 1 and array.shape[-len(operand.shape) :] != operand.shape:
            raise InputError(
                f"{name} has shape {array.shape}; its last axes must be {operand.shape}: a row of ten numbers for each "
                f"of the links {', '.join(self._plan.problem.free.links)}, as mechanism.parameters(links) gives them."
            )
        if array.shape[-1:] != operand.shape[-1:]:
            raise InputError(
                f"{name} has shape {array.shape}; its last axis must have length {operand.shape[0]} for "
                f"mechanism {self.mechanism.name!r}, whose joints are {', '.join(self.mechanism.joint_names)}."
            )
        return array.astype(np.float64, copy=False)

    def _spread(self, arrays: list[npt.NDArray[np.float64]], out: Any, threads: int) -> Any:
        """Evaluate parts of the first batch axis in several threads, of which the calling one is one."""
        asked = check_count(threads, "threads", least=0, most=MOST_THREADS)
        batch, wide = self._broadcast(arrays)
        workers = min(asked or cores(), batch[0] if batch else 1)
        if workers < 2:
            return self.gufunc(*arrays) if out is None else self.gufunc(*arrays, out=out)
        results = _results(out, [batch + operand.shape for operand in self._plan.outputs])
        if out is not None:  # within a part NumPy copies what is written over; other parts have to be kept from it
            shared = [any(np.may_share_memory(array, result) for result in results) for array in wide]
            wide = [array.copy() if is_shared else array for array, is_shared in zip(wide, shared, strict=True)]
        # One part a thread: between parts threads would wait for the interpreter's lock.
        edges = np.linspace(0, batch[0], workers + 1).astype(int)

        def run(part: int) -> None:
            rows = slice(edges[part], edges[part + 1])
            with np.errstate(all="ignore"):
                self.gufunc(*(array[rows] for array in wide), out=tuple(result[rows] for result in results))

        others = [thread_pool(workers - 1).submit(run, part) for part in range(1, workers)]
        run(0)
        for other in others:
            other.result()
        return results[0] if len(results) == 1 else results

    # Looking inside

    def program(self) -> Program:
        """The straight-line program, traced again."""
        return self._plan.retrace(self._plan.problem.guarded)

    def check(self, *args: npt.ArrayLike, **named: npt.ArrayLike) -> tuple[str, ...]:
        """What is wrong with some states, in names of joints and links; empty where nothing is.

        Says why the kernel answers nan, and what it takes as it is and is hardly meant: loops that are a little open,
        quaternions that are not of unit length, angles that look like degrees.

        Args:
            *args: Arrays in the order of `arguments`; leading axes broadcast.
            **named: Arrays by the names in `arguments`.
        """
        args = self._in_order(args, named)
        arrays = [self._as_floats(*pair) for pair in zip(args, self.arguments, self._plan.inputs, strict=True)]
        _, wide = self._broadcast(arrays)
        arguments = dict(zip(self.arguments, wide, strict=True))
        if self._guarded is None:  # tracing takes far longer than asking, and some ask at every step
            self._guarded = self._plan.retrace(True)
        return tuple(explain(self.mechanism, self._plan.problem, arguments, self._guarded))

    def _broadcast(self, arrays: Sequence[Floats]) -> tuple[tuple[int, ...], list[Floats]]:
        """The batch axes of all arguments together, and the arguments with these axes."""
        ranks = [len(operand.shape) for operand in self._plan.inputs]
        pairs = list(zip(arrays, ranks, strict=True))
        batch = np.broadcast_shapes(*(array.shape[: array.ndim - rank] for array, rank in pairs))
        return batch, [np.broadcast_to(array, batch + array.shape[array.ndim - rank :]) for array, rank in pairs]

    def to_c(self, path: str | Path, *, name: str | None = None) -> tuple[Path, Path]:
        """Write the kernel as C99: a source file and its header. Returns both paths.

        Args:
            path: Of the source file, ending in .c; the header lies beside it.
            name: Of the C function; by default the file's. Where it is a word of C, an underscore is added.
        """
        source = check_path(path, "The path of the C source")
        if source.suffix != ".c":
            raise InputError(f"The path is {str(path)!r}; a C source file ends in .c.")
        header = source.with_suffix(".h")
        if not c_source.can_be_included(header.name):
            raise InputError(
                f"The C source {source.name!r} would include {header.name!r}, which holds characters that #include "
                "reads otherwise; give a name without quotes, backslashes, question marks and control characters."
            )
        inputs, outputs = self._parameters()
        wanted = source.stem if name is None else check_kind(name, str, "The name", "text")
        function = c_source.free_identifier(wanted, {parameter.name for parameter in (*inputs, *outputs)})
        solved = f" dynamics of {self.mechanism.name}, elimination ordering {self.ordering.name}"
        about = f" of {self.mechanism.name}" if self._plan.problem.solves_nothing else solved
        description = f"{self.problem}{about}: {self.operations}."
        try:
            header.write_text(c_source.header_text(function, description, inputs, outputs), encoding="utf-8")
            text = c_source.source_text(function, header.name, description, self.program(), inputs, outputs)
            source.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CompileError(f"{source} cannot be written: {error.strerror}.") from error
        return source, header

    def _parameters(self) -> tuple[list[c_source.Parameter], list[c_source.Parameter]]:
        plan = self._plan
        taken: set[str] = set()

        def parameter(label: str, operand: Operand, about: str) -> c_source.Parameter:
            name = c_source.free_identifier(label, taken)
            taken.add(name)
            return c_source.Parameter(name, operand.size, about)

        given = zip(self.arguments, plan.inputs, strict=True)
        inputs = [parameter(name, operand, meaning(name)) for name, operand in given]
        outputs = []
        for name, operand in zip(self.outputs, plan.outputs, strict=True):
            about = meaning(name)
            if name == MATRIX:
                about = f"{self.problem}, row by row, {operand.shape[0]} x {operand.shape[1]}"
            label = f"{c_source.identifier(name)}_out" if name in self.arguments else name
            outputs.append(parameter(label, operand, about))
        return inputs, outputs


def _signature(plan: KernelPlan) -> str:
    def listing(operands: Sequence[Operand]) -> str:
        return ",".join("(" + ",".join(map(str, operand.shape)) + ")" for operand in operands)

    return f"{listing(plan.inputs)}->{listing(plan.outputs)}"


def _results(out: Any, shapes: list[tuple[int, ...]]) -> tuple[npt.NDArray[np.float64], ...]:
    """Arrays for results: those that are given, new ones in place of None, as NumPy has it."""
    given = out if isinstance(out, tuple) else (out,) * (len(shapes) if out is None else 1)
    if not all(array is None or isinstance(array, np.ndarray) for array in given):
        raise TypeError(f"out is {shown(out)}; it must be an array, or a tuple of arrays")
    found = [None if array is None else array.shape for array in given]
    fits = (shape in (None, wanted) for shape, wanted in zip(found, shapes, strict=False))
    if len(found) != len(shapes) or not all(fits):
        raise ValueError(f"out has shapes {found}, not {shapes}")
    return tuple(np.empty(shape) if array is None else array for array, shape in zip(given, shapes, strict=True))
