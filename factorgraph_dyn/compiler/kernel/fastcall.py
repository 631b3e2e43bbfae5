"""One state, one Python call, at the least possible cost.

Takes the code of a kernel; gives a builtin function that evaluates it. The function is itself compiled:
it checks that its arguments are plain contiguous float64 arrays of the right length by looking at the
array objects, makes the result arrays with NumPy's own C function and runs the kernel. Anything else
(batches, lists, other types, keywords) it hands to an ordinary Python function.

It relies on the layout of array objects, which NumPy keeps stable for extension modules. The layout is
checked once a process, by comparing an array's memory with what NumPy says about it; where anything is
different, or the interpreter has no such functions, kernels are called the ordinary way.

    @fastcall(self, args, count, keywords)     self is a tuple; its first item, a bytes object, holds
                                               the addresses of what the code calls

The work runs once a kernel.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.kernel.gufunc import api_table
from factorgraph_dyn.compiler.program import Operand, Program

_BYTES_DATA = bytes.__basicsize__ - 1
_TYPE, _DATA, _RANK, _SHAPE, _DESCRIPTION, _FLAGS = 8, 16, 24, 32, 56, 64
_PLAIN = 0x0001 | 0x0100  # C-contiguous and aligned
_NEW_ARRAY = 93  # place of PyArray_New in NumPy's table
_DOUBLE = 12
_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_FIELDS = ("array_type", "double", "new_array", "fallback", "vectorcall", "tuple_new", "tuple_set")


@cache
def layout_is_known() -> bool:
    """Whether array objects look in memory as this module takes them to."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    if getattr(sys, "_is_gil_enabled", lambda: True)() is False:
        return False
    first = (b"\x2a" * 8,)
    inner = ctypes.c_uint64.from_address(id(first) + tuple.__basicsize__).value
    if inner != id(first[0]):
        return False
    if ctypes.c_uint64.from_address(inner + _BYTES_DATA).value != 0x2A2A2A2A2A2A2A2A:
        return False
    array = np.arange(6.0).reshape(2, 3)
    start = id(array)

    def word(offset: int) -> int:
        return ctypes.c_uint64.from_address(start + offset).value

    if array.__sizeof__() < _FLAGS + 8 or word(_TYPE) != id(np.ndarray):
        return False
    shape = (ctypes.c_int64 * 2).from_address(word(_SHAPE))
    return (
        word(_DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(start + _RANK).value == 2
        and tuple(shape) == (2, 3)
        and word(_DESCRIPTION) == id(np.dtype(np.float64))
        and ctypes.c_int32.from_address(start + _FLAGS).value & _PLAIN == _PLAIN
    )


def emit_fastcall(program: Program) -> str:
    """IR text of ``@fastcall``, which calls ``@one``."""
    inputs, outputs = program.arguments, program.results
    lines = [
        "define ptr @fastcall(ptr %self, ptr %args, i64 %count, ptr %keywords) #0 {",
        "entry:",
        f"  %pointers = alloca [{len(inputs) + len(outputs)} x ptr]",
        "  %dims = alloca [2 x i64]",
    ]
    lines += _field("%context", "%self", tuple.__basicsize__, "ptr")
    for k, name in enumerate(_FIELDS):
        lines += [
            f"  %{name}_p = getelementptr i8, ptr %context, i64 {_BYTES_DATA + 8 * k}",
            f"  %{name} = load ptr, ptr %{name}_p, align 1",
        ]
    lines += [
        f"  %n = and i64 %count, {(1 << 63) - 1}",
        f"  %right = icmp eq i64 %n, {len(inputs)}",
        "  %plain = icmp eq ptr %keywords, null",
        "  %start = and i1 %right, %plain",
        "  br i1 %start, label %check0, label %slow",
    ]
    for k, operand in enumerate(inputs):
        lines += _check(k, operand)
    lines.append(f"check{len(inputs)}:")
    for k, operand in enumerate(outputs):
        lines += _make(k, len(inputs) + k, operand)
    lines += ["  call void @one(ptr %pointers)"]
    lines += _answer(len(outputs))
    lines += [
        "failed:",
        "  ret ptr null",
        "slow:",
        "  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %count, ptr %keywords)",
        "  ret ptr %answer",
        "}",
    ]
    return "\n".join(lines)


def _field(name: str, base: str, offset: int, kind: str) -> list[str]:
    return [f"  {name}_p = getelementptr i8, ptr {base}, i64 {offset}", f"  {name} = load {kind}, ptr {name}_p"]


def _check(k: int, operand: Operand) -> list[str]:
    """Argument k is an array, float64, contiguous, of the right shape."""
    return [
        f"check{k}:",
        *_field(f"%a{k}", "%args", 8 * k, "ptr"),
        *_field(f"%type{k}", f"%a{k}", _TYPE, "ptr"),
        f"  %isarray{k} = icmp eq ptr %type{k}, %array_type",
        f"  br i1 %isarray{k}, label %array{k}, label %slow",
        f"array{k}:",
        *_field(f"%descr{k}", f"%a{k}", _DESCRIPTION, "ptr"),
        *_field(f"%rank{k}", f"%a{k}", _RANK, "i32"),
        *_field(f"%flags{k}", f"%a{k}", _FLAGS, "i32"),
        f"  %isdouble{k} = icmp eq ptr %descr{k}, %double",
        f"  %isvector{k} = icmp eq i32 %rank{k}, {len(operand.shape)}",
        f"  %masked{k} = and i32 %flags{k}, {_PLAIN}",
        f"  %isplain{k} = icmp eq i32 %masked{k}, {_PLAIN}",
        f"  %both{k} = and i1 %isdouble{k}, %isvector{k}",
        f"  %all{k} = and i1 %both{k}, %isplain{k}",
        f"  br i1 %all{k}, label %vector{k}, label %slow",
        f"vector{k}:",
        *_field(f"%shape{k}", f"%a{k}", _SHAPE, "ptr"),
        *_fits(k, operand.shape),
        *_field(f"%data{k}", f"%a{k}", _DATA, "ptr"),
        f"  %slot{k} = getelementptr ptr, ptr %pointers, i64 {k}",
        f"  store ptr %data{k}, ptr %slot{k}",
        f"  br i1 %fits{k}, label %check{k + 1}, label %slow",
    ]


def _fits(k: int, shape: tuple[int, ...]) -> list[str]:
    """%fits<k>: whether every axis of argument k is as long as it has to be."""
    lines, fits = [], "true"
    for axis, length in enumerate(shape):
        name = f"{k}_{axis}" if axis + 1 < len(shape) else f"{k}"
        lines += [
            f"  %axis{k}_{axis} = getelementptr i64, ptr %shape{k}, i64 {axis}",
            f"  %length{k}_{axis} = load i64, ptr %axis{k}_{axis}",
            f"  %equal{k}_{axis} = icmp eq i64 %length{k}_{axis}, {length}",
            f"  %fits{name} = and i1 %equal{k}_{axis}, {fits}",
        ]
        fits = f"%fits{name}"
    return lines


def _make(k: int, place: int, operand: Operand) -> list[str]:
    """Result k: a new array."""
    lines = []
    for axis, size in enumerate(operand.shape):
        lines += [
            f"  %dim{k}_{axis} = getelementptr i64, ptr %dims, i64 {axis}",
            f"  store i64 {size}, ptr %dim{k}_{axis}",
        ]
    return [
        *lines,
        f"  %out{k} = call ptr %new_array(ptr %array_type, i32 {len(operand.shape)}, ptr %dims, "
        f"i32 {_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)",
        f"  %none{k} = icmp eq ptr %out{k}, null",
        f"  br i1 %none{k}, label %failed, label %made{k}",
        f"made{k}:",
        *_field(f"%outdata{k}", f"%out{k}", _DATA, "ptr"),
        f"  %outslot{k} = getelementptr ptr, ptr %pointers, i64 {place}",
        f"  store ptr %outdata{k}, ptr %outslot{k}",
    ]


def _answer(count: int) -> list[str]:
    if count == 1:
        return ["  ret ptr %out0"]
    lines = [
        f"  %tuple = call ptr %tuple_new(i64 {count})",
        "  %notuple = icmp eq ptr %tuple, null",
        "  br i1 %notuple, label %failed, label %fill",
        "fill:",
    ]
    lines += [f"  %set{k} = call i32 %tuple_set(ptr %tuple, i64 {k}, ptr %out{k})" for k in range(count)]
    return [*lines, "  ret ptr %tuple"]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def make_fast_function(address: int, name: str, fallback: Callable[..., Any], owner: Any) -> Callable[..., Any] | None:
    """A builtin function around the code of ``@fastcall``; None where the layout is not known.

    Args:
        address: Of ``@fastcall``.
        name: How the function calls itself.
        fallback: Called with whatever the fast way does not take.
        owner: What keeps the code in memory.
    """
    if not layout_is_known():
        return None
    api = ctypes.pythonapi

    def pointer(function: Any) -> int:
        found = ctypes.cast(function, ctypes.c_void_p).value
        assert found is not None
        return found

    words = (
        id(np.ndarray),
        id(np.dtype(np.float64)),
        api_table("_ARRAY_API")[_NEW_ARRAY],
        id(fallback),
        pointer(api.PyObject_Vectorcall),
        pointer(api.PyTuple_New),
        pointer(api.PyTuple_SetItem),
    )
    context = struct.pack(f"{len(words)}Q", *words)
    definition = _MethodDef(name.encode(), address, _FASTCALL_WITH_KEYWORDS, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api)
    )
    # The function owns the tuple, and with it its own definition and code.
    held = (context, definition, fallback, owner)
    function: Callable[..., Any] = new(ctypes.addressof(definition), held, None)
    return function
