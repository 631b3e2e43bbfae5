"""One state or a batch, one Python call, at the least possible cost.

Takes the code of a kernel; gives a builtin function that evaluates it. The function is itself compiled: it checks that
its arguments, and what ``out=`` names, are plain contiguous float64 arrays of the right shapes by looking at the array
objects, makes result arrays with NumPy's own C function where none are given, and runs the kernel. The arrays are those
of one state, or all have one axis more, of the same length; they are named in the order of the arguments, or not.
While it works on more than a few states, other threads of the interpreter have their turn. Anything else (batches of
more axes, lists, other types, other keywords, results that lie on arguments or on each other) it hands to an ordinary
Python function.

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
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
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
_WRITEABLE = _PLAIN | 0x0400
_TUPLE_SIZE = tuple.__basicsize__ - 8
_FIELDS = (
    "array_type",
    "tuple_type",
    "double",
    "new_array",
    "fallback",
    "vectorcall",
    "tuple_new",
    "tuple_set",
    "keep",
    "let_go",
    "take_back",
)  # and after these the names of the arguments, and "out"
_FEW_STATES = 64  # more are worth giving other threads their turn


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
    """IR text of ``@fastcall``, which calls ``@one`` for a state and ``@loop`` for some.

    Optimizing it would take LLVM longer than the rest of an arm's kernel, and saves a call nothing.
    """
    inputs, outputs = program.arguments, program.results
    operands = [*inputs, *outputs]
    rank = len(inputs[0].shape)
    steps = [8 * operand.size for operand in operands] + [step for operand in operands for step in _steps(operand)]
    listed = ", ".join(f"i64 {step}" for step in steps)
    return "\n".join(
        [
            f"@fast_steps = private unnamed_addr constant [{len(steps)} x i64] [{listed}]",
            "define ptr @fastcall(ptr %self, ptr %args, i64 %count, ptr %keywords) nounwind noinline optnone {",
            "entry:",
            f"  %pointers = alloca [{len(operands)} x ptr]",
            "  %states_p = alloca i64",
            f"  %dims = alloca [{1 + max(len(operand.shape) for operand in outputs)} x i64]",
            *_context(),
            *_names(len(inputs)),
            "look:",
            *_field("%first", "%args", 0, "ptr"),
            *_field("%first_type", "%first", _TYPE, "ptr"),
            "  %first_is_array = icmp eq ptr %first_type, %array_type",
            "  br i1 %first_is_array, label %width, label %slow",
            "width:",
            *_field("%first_rank", "%first", _RANK, "i32"),
            f"  %wide = icmp eq i32 %first_rank, {rank + 1}",
            "  %more = zext i1 %wide to i32",
            "  store i64 1, ptr %states_p",
            *_field("%first_shape", "%first", _SHAPE, "ptr"),
            "  %states_at = select i1 %wide, ptr %first_shape, ptr %states_p",
            "  %states = load i64, ptr %states_at",
            "  store i64 %states, ptr %states_p",
            f"  %few = icmp ule i64 %states, {_FEW_STATES}",
            "  br label %check0",
            *(line for k, operand in enumerate(inputs) for line in _argument(k, operand)),
            f"check{len(inputs)}:",
            f"  %has_out = icmp eq i64 %total, {len(inputs) + 1}",
            "  br i1 %has_out, label %take, label %make",
            *_given(inputs, outputs),
            "make:",
            *(line for k, operand in enumerate(outputs) for line in _make(k, len(inputs) + k, operand)),
            *_run("made"),
            *_answer(len(outputs)),
            "failed:",
            "  ret ptr null",
            "slow:",
            "  %answer = call ptr %vectorcall(ptr %fallback, ptr %args, i64 %count, ptr %keywords)",
            "  ret ptr %answer",
            "}",
        ]
    )


def _steps(operand: Operand) -> list[int]:
    """Bytes between neighbours along each axis of a state's array."""
    return [8 * prod(operand.shape[axis + 1 :]) for axis in range(len(operand.shape))]


def _context() -> list[str]:
    lines = _field("%context", "%self", tuple.__basicsize__, "ptr")
    for k, name in enumerate(_FIELDS):
        lines += [
            f"  %{name}_p = getelementptr i8, ptr %context, i64 {_BYTES_DATA + 8 * k}",
            f"  %{name} = load ptr, ptr %{name}_p, align 1",
        ]
    return lines


def _field(name: str, base: str, offset: int, kind: str) -> list[str]:
    return [f"  {name}_p = getelementptr i8, ptr {base}, i64 {offset}", f"  {name} = load {kind}, ptr {name}_p"]


def _argument(k: int, operand: Operand) -> list[str]:
    """Argument k is an array that can be read as it is."""
    return [
        f"check{k}:",
        *_field(f"%a{k}", "%args", 8 * k, "ptr"),
        *_array(f"a{k}", k, operand, _PLAIN, f"check{k + 1}"),
    ]


def _array(name: str, place: int, operand: Operand, flags: int, then: str) -> list[str]:
    """An object is a float64 array of the right shape and flags: keep its data, else be slow."""
    rank = len(operand.shape)
    lines = [
        *_field(f"%{name}_type", f"%{name}", _TYPE, "ptr"),
        f"  %{name}_isarray = icmp eq ptr %{name}_type, %array_type",
        f"  br i1 %{name}_isarray, label %{name}_array, label %slow",
        f"{name}_array:",
        *_field(f"%{name}_descr", f"%{name}", _DESCRIPTION, "ptr"),
        *_field(f"%{name}_rank", f"%{name}", _RANK, "i32"),
        *_field(f"%{name}_flags", f"%{name}", _FLAGS, "i32"),
        f"  %{name}_isdouble = icmp eq ptr %{name}_descr, %double",
        f"  %{name}_wanted = add i32 %more, {rank}",
        f"  %{name}_isrank = icmp eq i32 %{name}_rank, %{name}_wanted",
        f"  %{name}_masked = and i32 %{name}_flags, {flags}",
        f"  %{name}_isplain = icmp eq i32 %{name}_masked, {flags}",
        f"  %{name}_both = and i1 %{name}_isdouble, %{name}_isrank",
        f"  %{name}_all = and i1 %{name}_both, %{name}_isplain",
        f"  br i1 %{name}_all, label %{name}_plain, label %slow",
        f"{name}_plain:",
        *_field(f"%{name}_shape", f"%{name}", _SHAPE, "ptr"),
        f"  %{name}_outer_p = select i1 %wide, ptr %{name}_shape, ptr %states_p",
        f"  %{name}_outer = load i64, ptr %{name}_outer_p",
        f"  %{name}_fits0 = icmp eq i64 %{name}_outer, %states",
        f"  %{name}_core = getelementptr i64, ptr %{name}_shape, i32 %more",
    ]
    for axis, size in enumerate(operand.shape):
        lines += [
            f"  %{name}_at{axis} = getelementptr i64, ptr %{name}_core, i64 {axis}",
            f"  %{name}_length{axis} = load i64, ptr %{name}_at{axis}",
            f"  %{name}_equal{axis} = icmp eq i64 %{name}_length{axis}, {size}",
            f"  %{name}_fits{axis + 1} = and i1 %{name}_fits{axis}, %{name}_equal{axis}",
        ]
    return [
        *lines,
        *_field(f"%{name}_data", f"%{name}", _DATA, "ptr"),
        f"  %{name}_slot = getelementptr ptr, ptr %pointers, i64 {place}",
        f"  store ptr %{name}_data, ptr %{name}_slot",
        f"  br i1 %{name}_fits{rank}, label %{then}, label %slow",
    ]


def _names(inputs: int) -> list[str]:
    """As many arrays as there are arguments, and perhaps ``out``; those that are named are so in their order."""
    return [
        f"  %positional = and i64 %count, {(1 << 63) - 1}",
        "  %unnamed = icmp eq ptr %keywords, null",
        "  br i1 %unnamed, label %counted, label %named",
        "named:",
        *_field("%words", "%keywords", _TUPLE_SIZE, "i64"),
        f"  %first_word = getelementptr i8, ptr %keywords, i64 {tuple.__basicsize__}",
        f"  %all_names = getelementptr i8, ptr %context, i64 {_BYTES_DATA + 8 * len(_FIELDS)}",
        "  %first_name = getelementptr ptr, ptr %all_names, i64 %positional",
        "  %named_total = add i64 %positional, %words",
        f"  %known = icmp ule i64 %named_total, {inputs + 1}",
        "  br i1 %known, label %word, label %slow",
        "word:",
        "  %w = phi i64 [0, %named], [%w1, %next_word]",
        "  %over = icmp eq i64 %w, %words",
        "  br i1 %over, label %counted, label %compare",
        "compare:",
        "  %given_at = getelementptr ptr, ptr %first_word, i64 %w",
        "  %given_word = load ptr, ptr %given_at, align 8",
        "  %wanted_at = getelementptr ptr, ptr %first_name, i64 %w",
        "  %wanted_word = load ptr, ptr %wanted_at, align 1",
        "  %same = icmp eq ptr %given_word, %wanted_word",
        "  br i1 %same, label %next_word, label %slow",
        "next_word:",
        "  %w1 = add i64 %w, 1",
        "  br label %word",
        "counted:",
        "  %total = phi i64 [%positional, %entry], [%named_total, %word]",
        f"  %enough_arrays = icmp uge i64 %total, {inputs}",
        f"  %in_place = icmp ule i64 %positional, {inputs}",
        "  %right = and i1 %enough_arrays, %in_place",
        "  br i1 %right, label %look, label %slow",
    ]


def _given(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> list[str]:
    """What ``out`` names can be written as it is."""
    lines = [
        "take:",
        *_field("%given", "%args", 8 * len(inputs), "ptr"),
    ]
    if len(outputs) == 1:
        lines.append("  %g0 = getelementptr i8, ptr %given, i64 0")
    else:
        lines += [
            *_field("%given_type", "%given", _TYPE, "ptr"),
            "  %istuple = icmp eq ptr %given_type, %tuple_type",
            "  br i1 %istuple, label %given_tuple, label %slow",
            "given_tuple:",
            *_field("%given_size", "%given", _TUPLE_SIZE, "i64"),
            f"  %enough = icmp eq i64 %given_size, {len(outputs)}",
            "  br i1 %enough, label %given0, label %slow",
            "given0:",
        ]
    for k, operand in enumerate(outputs):
        if len(outputs) > 1:
            lines += _field(f"%g{k}", "%given", tuple.__basicsize__ + 8 * k, "ptr")
        lines += [*_array(f"g{k}", len(inputs) + k, operand, _WRITEABLE, f"given{k + 1}"), f"given{k + 1}:"]
    arguments = [(f"%a{j}", operand) for j, operand in enumerate(inputs)]
    results = [(f"%g{k}", operand) for k, operand in enumerate(outputs)]
    lines += [line for name, operand in (*arguments, *results) for line in _end(name, operand)]
    apart = "true"
    for k, (result, _) in enumerate(results):  # from all arguments, and from the other results
        for j, (other, _) in enumerate((*arguments, *results[:k])):
            lines += [
                f"  %before{k}_{j} = icmp ule ptr {result}_end, {other}_data",
                f"  %after{k}_{j} = icmp ule ptr {other}_end, {result}_data",
                f"  %aside{k}_{j} = or i1 %before{k}_{j}, %after{k}_{j}",
                f"  %apart{k}_{j} = and i1 {apart}, %aside{k}_{j}",
            ]
            apart = f"%apart{k}_{j}"
    return [
        *lines,
        f"  br i1 {apart}, label %write, label %slow",
        "write:",
        *_run("written"),
        "  call void %keep(ptr %given)",
        "  ret ptr %given",
    ]


def _end(name: str, operand: Operand) -> list[str]:
    """Where the data of an array ends."""
    return [
        f"  {name}_bytes = mul i64 %states, {8 * operand.size}",
        f"  {name}_end = getelementptr i8, ptr {name}_data, i64 {name}_bytes",
    ]


def _run(then: str) -> list[str]:
    """Call the kernel for one state, for some or, without the interpreter's lock, for many."""
    loop = "  call void @loop(ptr %pointers, ptr %states_p, ptr @fast_steps, ptr null)"
    return [
        f"  br i1 %wide, label %{then}_some, label %{then}_one",
        f"{then}_one:",
        "  call void @one(ptr %pointers)",
        f"  br label %{then}",
        f"{then}_some:",
        f"  br i1 %few, label %{then}_few, label %{then}_many",
        f"{then}_few:",
        loop,
        f"  br label %{then}",
        f"{then}_many:",
        f"  %{then}_thread = call ptr %let_go()",
        loop,
        f"  call void %take_back(ptr %{then}_thread)",
        f"  br label %{then}",
        f"{then}:",
    ]


def _make(k: int, place: int, operand: Operand) -> list[str]:
    """Result k: a new array."""
    rank = len(operand.shape)
    lines = ["  store i64 %states, ptr %dims"]
    for axis, size in enumerate(operand.shape):
        lines += [
            f"  %dim{k}_{axis} = getelementptr i64, ptr %dims, i64 {axis + 1}",
            f"  store i64 {size}, ptr %dim{k}_{axis}",
        ]
    return [
        *lines,
        f"  %inner{k} = getelementptr i64, ptr %dims, i64 1",
        f"  %shape{k} = select i1 %wide, ptr %dims, ptr %inner{k}",
        f"  %rank{k} = add i32 %more, {rank}",
        f"  %out{k} = call ptr %new_array(ptr %array_type, i32 %rank{k}, ptr %shape{k}, "
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


def make_fast_function(
    address: int, name: str, arguments: Sequence[str], fallback: Callable[..., Any], owner: Any
) -> Callable[..., Any] | None:
    """A builtin function around the code of ``@fastcall``; None where the layout is not known.

    Args:
        address: Of ``@fastcall``.
        name: How the function calls itself.
        arguments: Names of its arguments.
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

    names = tuple(sys.intern(name) for name in (*arguments, "out"))
    words = (
        id(np.ndarray),
        id(tuple),
        id(np.dtype(np.float64)),
        api_table("_ARRAY_API")[_NEW_ARRAY],
        id(fallback),
        pointer(api.PyObject_Vectorcall),
        pointer(api.PyTuple_New),
        pointer(api.PyTuple_SetItem),
        pointer(api.Py_IncRef),
        pointer(api.PyEval_SaveThread),
        pointer(api.PyEval_RestoreThread),
        *map(id, names),
    )
    context = struct.pack(f"{len(words)}Q", *words)
    definition = _MethodDef(name.encode(), address, _FASTCALL_WITH_KEYWORDS, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api)
    )
    # The function owns the tuple, and with it its own definition and code.
    held = (context, definition, fallback, owner, names)
    function: Callable[..., Any] = new(ctypes.addressof(definition), held, None)
    return function
