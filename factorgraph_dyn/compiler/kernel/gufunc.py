"""A NumPy generalised ufunc from the address of its inner loop.

Takes an address and a signature; gives a ``numpy.ufunc`` that broadcasts over leading axes, casts,
takes ``out=``, accepts empty batches and releases the interpreter lock while it runs. NumPy's own C
entry point (`PyUFunc_FromFuncAndDataAndSignature`) makes it, found in the table that NumPy exports
to extension modules. The work runs once a kernel.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # place in NumPy's table, fixed by its binary interface
_DOUBLE = 12  # NPY_DOUBLE
_NO_IDENTITY = -1

_NAME, _OWNER = 56, 88  # where a ufunc object keeps its name and what it owns

_alive: list[tuple[Any, ...]] = []
# NumPy only borrows what a ufunc is made from. Where the ufunc object can be told to own it, it does;
# elsewhere it lives as long as the process.


@cache
def api_table(name: str) -> ctypes.Array[ctypes.c_void_p]:
    """NumPy's table of C functions, `_UFUNC_API` or `_ARRAY_API`."""
    capsule = getattr(_multiarray_umath, name)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(capsule, None)
    return (ctypes.c_void_p * 400).from_address(address)


def make_gufunc(address: int, signature: str, inputs: int, outputs: int, name: str, doc: str, owner: Any) -> np.ufunc:
    """The gufunc whose inner loop is at an address.

    Args:
        address: Of a function ``(char **args, npy_intp *dimensions, npy_intp *steps, void *data)``.
        signature: Core dimensions of its operands.
        inputs: How many operands are read.
        outputs: How many operands are written.
        name: Name of the ufunc.
        doc: Its documentation.
        owner: What keeps the code in memory.
    """
    entry = api_table("_UFUNC_API")[_FROM_FUNC_AND_DATA_AND_SIGNATURE]
    assert entry is not None
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
    )(entry)
    functions = (ctypes.c_void_p * 1)(address)
    data = (ctypes.c_void_p * 1)(None)
    types = ctypes.create_string_buffer(bytes([_DOUBLE] * (inputs + outputs)))
    texts = tuple(ctypes.create_string_buffer(text.encode()) for text in (name, doc, signature))
    ufunc: np.ufunc = make(
        ctypes.addressof(functions),
        ctypes.addressof(data),
        ctypes.addressof(types),
        1,
        inputs,
        outputs,
        _NO_IDENTITY,
        *(ctypes.addressof(text) for text in texts[:2]),
        0,
        ctypes.addressof(texts[2]),
    )
    _give(ufunc, (functions, data, types, texts, owner), ctypes.addressof(texts[0]))
    return ufunc


def _give(ufunc: np.ufunc, owned: tuple[Any, ...], name_address: int) -> None:
    """Tie the life of what a ufunc was made from to the ufunc's own."""
    start = id(ufunc)
    known = (
        np.ufunc.__basicsize__ >= _OWNER + 8
        and ctypes.c_void_p.from_address(start + _NAME).value == name_address
        and ctypes.c_void_p.from_address(start + _OWNER).value is None
    )
    if known:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(owned))
        ctypes.c_void_p.from_address(start + _OWNER).value = id(owned)
    else:
        _alive.append((*owned, ufunc))
