"""Arrays of other libraries as arguments of kernels: dask's are computed in blocks, labelled ones are refused in words.

Takes a kernel and what it was given; gives what the library makes of it. No library is imported here unless one of its
arrays is at hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.program import Operand
from factorgraph_dyn.errors import InputError


def library_of(value: Any) -> str | None:
    """The name of the library whose array an argument is, if it knows how to call a ufunc; None of NumPy's."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(type(value), "__array_ufunc__"):
        return None
    return type(value).__module__.partition(".")[0]


def in_blocks(function: Callable[..., Any], signature: str, outputs: Sequence[Operand], args: Sequence[Any]) -> Any:
    """The result, a dask array or several, of a kernel applied to blocks of states."""
    array: Any = importlib.import_module("dask.array")
    sizes = {str(length): length for operand in outputs for length in operand.shape}
    kinds: Any = float if len(outputs) == 1 else [float] * len(outputs)
    try:
        return array.apply_gufunc(
            function, signature, *args, output_dtypes=kinds, output_sizes=sizes, allow_rechunk=True
        )
    except ValueError as error:
        raise InputError(f"The arguments do not go together: {error}") from None


def refuse_labelled(args: Sequence[Any], outputs: Sequence[Operand], joints: Sequence[str]) -> None:
    """Raise an InputError that names the call by which labelled arrays are taken: only their owner knows the labels."""
    libraries = [library_of(arg) for arg in args]
    if "pandas" in libraries:  # which would put rows and columns in the order of their labels, each argument's anew
        frame = args[libraries.index("pandas")]
        raise InputError(
            f"An argument is a {type(frame).__name__} of pandas, whose labels the kernel does not know: it takes "
            "numbers by their place. Give it frame[columns].to_numpy(), columns in the order of the joints: "
            f"{', '.join(joints)}."
        )
    if "xarray" not in libraries:
        return
    dims = [getattr(arg, "dims", None) for arg in args]
    names = [str(labels[-1]) if isinstance(labels, tuple) and labels else "" for labels in dims]
    joint = next(filter(None, names), "joint")
    last = [[name or joint] for name in names]
    labels = [[joint, *(f"axis{k}" for k in range(1, len(operand.shape)))] for operand in outputs]
    raise InputError(
        "An argument is xarray's, whose axes have names that the kernel does not know. Use "
        f"xarray.apply_ufunc(kernel.gufunc, ..., input_core_dims={last}, output_core_dims={labels}), or give it "
        "array.values."
    )
