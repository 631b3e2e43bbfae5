"""What surrounds the arithmetic: the order of calls, and the entry points.

Takes the shapes of a kernel's arguments and its body; gives IR text of two entry points.

    @loop   NumPy's inner loop: rows of any stride, a tile of `width` states at a time
    @one    one state, from plain pointers

The last states of a batch go through the same vector code with the last row repeated, so a result never
depends on where in a batch its state is. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np

from factorgraph_dyn.compiler.backends.llvm.body import Body
from factorgraph_dyn.compiler.backends.llvm.machine import INLINE
from factorgraph_dyn.compiler.backends.llvm.rows import gather_scatter, row_functions, spread_pick, store_listed
from factorgraph_dyn.compiler.backends.llvm.sincos import sincos_calls, sincos_functions
from factorgraph_dyn.compiler.program import Operand, Program

SMALL = 8  # numbers of an argument that are loaded sooner than it is asked whether they have to be


def emit_driver(body: Body, program: Program, width: int, *, fma: bool, single: bool = True) -> str:
    """Entry points and helpers around a body; without ``@one`` where another body does single states."""
    inputs, outputs = _inputs(program), _outputs(program, body)
    sizes, out_sizes = ({one.operand.size for one in moved if not one.table} for moved in (inputs, outputs))
    return "\n".join(
        [
            sincos_functions(angle_counts(body), width, fma=fma),
            gather_scatter(width),
            row_functions(sizes, out_sizes, width),
            *([store_listed(width)] if any(one.table for one in outputs) else []),
            *(one.table for one in outputs),
            evaluate_function(body, width),
            _loop(body, program, width),
            *([emit_one(body, program, width)] if single else []),
        ]
    )


def emit_single(body: Body, program: Program, width: int, *, fma: bool) -> str:
    """What single states need of a body of their own, whose values are where the other body's are."""
    functions = sincos_functions(angle_counts(body), width, fma=fma)
    return "\n".join([functions, evaluate_function(body, width), emit_one(body, program, width)])


def angle_counts(*bodies: Body) -> set[int]:
    """How many angles some bodies take the sines of at a time."""
    return {len(call.arguments) for body in bodies for call in body.calls if call.part is None}


@dataclass(frozen=True)
class _Moved:
    """An argument or result, and where its values are.

    Attributes:
        operand: Its shape.
        slot: The first of its values, which follow each other unless there is a table.
        table: IR of the table of their slots, ``@slots<k>``; empty where there is none.
    """

    operand: Operand
    slot: int
    table: str = ""


def _inputs(program: Program) -> list[_Moved]:
    ends = accumulate((operand.size for operand in program.arguments), initial=0)
    return [_Moved(operand, slot) for operand, slot in zip(program.arguments, ends, strict=False)]


def _outputs(program: Program, body: Body) -> list[_Moved]:
    found, start = [], 0
    for k, operand in enumerate(program.results, start=len(program.arguments)):
        slots = body.outputs[start : start + operand.size]
        start += operand.size
        in_order = slots == tuple(range(slots[0], slots[0] + len(slots))) if slots else True
        listed = ", ".join(f"i32 {slot}" for slot in slots)
        table = "" if in_order else f"@slots{k} = private unnamed_addr constant [{len(slots)} x i32] [{listed}]"
        found.append(_Moved(operand, slots[0] if in_order and slots else 0, table))
    return found


def evaluate_function(body: Body, width: int) -> str:
    """@<name>evaluate(workspace): columns in, columns out; before it, @<name>prepare what parameters alone need."""
    vector = f"<{width} x double>"
    lines = [
        f"define internal void @{body.name}prepare(ptr noalias %w) #0 {{",
        *(f"  call void @{body.name}part{call.part}(ptr %w)" for call in body.calls[: body.once]),
        "  ret void",
        "}",
        f"define internal void @{body.name}evaluate(ptr noalias %w) #0 {{",
        f"  %g = getelementptr {vector}, ptr %w, i64 {body.guard_slot}",
        f"  store {vector} zeroinitializer, ptr %g, align {8 * width}",
    ]
    tables = []
    for number, call in enumerate(body.calls[body.once :]):
        if call.part is not None:
            lines.append(f"  call void @{body.name}part{call.part}(ptr %w)")
            continue
        slots = ", ".join(f"i32 {slot}" for slot in call.arguments)
        count = len(call.arguments)
        tables.append(f"@{body.name}angles{number} = private unnamed_addr constant [{count} x i32] [{slots}]")
        lines += [
            f"  %a{number} = getelementptr {vector}, ptr %w, i64 {call.results}",
            *sincos_calls(count, width, f"@{body.name}angles{number}", f"%a{number}"),
        ]
    lines += [
        f"  %guard = load {vector}, ptr %g, align {8 * width}",
        f"  %bad = fcmp uno {vector} %guard, zeroinitializer",
        f"  %any = call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> %bad)",
        "  br i1 %any, label %spoil, label %done",
        "spoil:",
        f"  %base = getelementptr {vector}, ptr %w, i64 {body.output_slot}",
        "  br label %next",
        "next:",
        "  %k = phi i64 [0, %spoil], [%k1, %next]",
        f"  %p = getelementptr {vector}, ptr %base, i64 %k",
        f"  %x = load {vector}, ptr %p, align {8 * width}",
        f"  %y = select <{width} x i1> %bad, {vector} %guard, {vector} %x",
        f"  store {vector} %y, ptr %p, align {8 * width}",
        "  %k1 = add i64 %k, 1",
        f"  %more = icmp ult i64 %k1, {body.guard_slot - body.output_slot}",
        "  br i1 %more, label %next, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(tables + lines)


def _workspace(body: Body, width: int) -> str:
    return f"  %w = alloca [{body.slots * width} x double], align {8 * width}"


def _loop(body: Body, program: Program, width: int) -> str:
    """@loop(args, dimensions, steps, data) as NumPy calls it."""
    inputs, outputs = _inputs(program), _outputs(program, body)
    operands = [one.operand for one in (*inputs, *outputs)]
    lines = [
        "define void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %data) #2 {",
        "entry:",
        _workspace(body, width),
        "  %n = load i64, ptr %dimensions, align 8",
    ]
    position = len(operands)
    for k, operand in enumerate(operands):
        lines += [
            f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"  %base{k} = load ptr, ptr %ap{k}, align 8",
            f"  %sp{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"  %stride{k} = load i64, ptr %sp{k}, align 8",
        ]
        names = []
        for axis in range(len(operand.shape)):
            lines += [
                f"  %cp{k}_{axis} = getelementptr i64, ptr %steps, i64 {position}",
                f"  %c{k}_{axis} = load i64, ptr %cp{k}_{axis}, align 8",
            ]
            names.append(f"%c{k}_{axis}")
            position += 1
        lines += _packed(k, operand, names)
    lines += [
        *_dense_tiles(program, inputs, outputs, width),
        "  %some = icmp slt i64 %done, %n",
        "  br i1 %some, label %tile, label %end",
        "tile:",
        "  %i = phi i64 [%done, %rest], [%i1, %next]",
        "  %left = sub i64 %n, %i",
        f"  %full = icmp sge i64 %left, {width}",
        f"  %count = select i1 %full, i64 {width}, i64 %left",
    ]
    for k, moved in enumerate(inputs):
        lines += _unless_there(k, moved, _transfer(k, moved, "load", "gather", width))
    lines += _prepare(body, range(len(inputs) - program.parameters, len(inputs)))
    lines.append("  call void @evaluate(ptr %w)")
    for k, moved in enumerate(outputs, start=len(inputs)):
        lines += _transfer(k, moved, "store", "scatter", width)
    lines += [
        "  br label %next",
        "next:",
        f"  %i1 = add i64 %i, {width}",
        "  %more = icmp slt i64 %i1, %n",
        "  br i1 %more, label %tile, label %end",
        "end:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _dense_tiles(program: Program, inputs: Sequence[_Moved], outputs: Sequence[_Moved], width: int) -> list[str]:
    """All full tiles, where the numbers of every operand follow each other without gaps; ends in %rest with %done.

    Most batches are such: nothing has to be decided tile by tile, and what moves and computes them stands in the loop.
    """
    every = [*inputs, *outputs]
    if program.parameters or any(one.table for one in every):
        return ["  br label %rest", "rest:", "  %done = add i64 0, 0"]
    lines, dense = [], "true"
    moves: dict[str, list[str]] = {"load": [], "store": []}
    for k, one in enumerate(every):
        size = one.operand.size
        lines += [
            f"  %follows{k} = icmp eq i64 %stride{k}, {8 * size}",
            f"  %gapless{k} = and i1 %packed{k}, %follows{k}",
            f"  %dense{k} = and i1 {dense}, %gapless{k}",
        ]
        dense, move = f"%dense{k}", "load" if k < len(inputs) else "store"
        moves[move] += [
            f"  %way{k} = mul i64 %d, {8 * size}",
            f"  %here{k} = getelementptr i8, ptr %base{k}, i64 %way{k}",
            f"  %column{k}s = getelementptr <{width} x double>, ptr %w, i64 {one.slot}",
            f"  call void @{move}{size}(ptr %column{k}s, ptr %here{k}, i64 {8 * size}) {INLINE}",
        ] * (size > 0)
    return [
        *lines,
        f"  %whole = and i64 %n, {-width}",
        "  %some_dense = icmp sgt i64 %whole, 0",
        f"  %any_dense = and i1 %some_dense, {dense}",
        "  br i1 %any_dense, label %dense, label %rest",
        "dense:",
        "  %d = phi i64 [0, %entry], [%d1, %dense]",
        *moves["load"],
        f"  call void @evaluate(ptr %w) {INLINE}",
        *moves["store"],
        f"  %d1 = add i64 %d, {width}",
        "  %more_dense = icmp slt i64 %d1, %whole",
        "  br i1 %more_dense, label %dense, label %rest",
        "rest:",
        "  %done = phi i64 [0, %entry], [%whole, %dense]",
    ]


def _packed(k: int, operand: Operand, strides: list[str]) -> list[str]:
    """%packed<k>: whether a state's numbers lie side by side; and its last two strides."""
    column = strides[-1] if strides else "8"
    row = strides[-2] if len(strides) > 1 else "0"
    lines = [f"  %row{k} = add i64 {row}, 0", f"  %column{k} = add i64 {column}, 0"]
    packed = "true"
    for axis, stride in enumerate(strides):
        lines += [
            f"  %near{k}_{axis} = icmp eq i64 {stride}, {8 * prod(operand.shape[axis + 1 :])}",
            f"  %side{k}_{axis} = and i1 {packed}, %near{k}_{axis}",
        ]
        packed = f"%side{k}_{axis}"
    return [*lines, f"  %packed{k} = and i1 {packed}, true"]


def _unless_there(k: int, moved: _Moved, loads: list[str]) -> list[str]:
    """Load an argument's tile unless all states share its numbers, which then are there since the first tile."""
    if moved.operand.size <= SMALL:
        return loads
    return [
        f"  %shared{k} = icmp eq i64 %stride{k}, 0",
        f"  %later{k} = icmp ne i64 %i, 0",
        f"  %there{k} = and i1 %shared{k}, %later{k}",
        f"  br i1 %there{k}, label %loaded{k}, label %toload{k}",
        f"toload{k}:",
        *loads,
        f"  br label %loaded{k}",
        f"loaded{k}:",
    ]


def _prepare(body: Body, parameters: Sequence[int]) -> list[str]:
    """Compute what parameters alone need, unless all states share them and it is there since the first tile."""
    if not body.once:
        return []
    lines, shared = ["  %begun = icmp ne i64 %i, 0"], "%begun"
    for k in parameters:
        lines += [f"  %lent{k} = icmp eq i64 %stride{k}, 0", f"  %all{k} = and i1 {shared}, %lent{k}"]
        shared = f"%all{k}"
    return [
        *lines,
        f"  br i1 {shared}, label %prepared, label %unprepared",
        "unprepared:",
        "  call void @prepare(ptr %w)",
        "  br label %prepared",
        "prepared:",
    ]


def _transfer(k: int, moved: _Moved, fast: str, slow: str, width: int) -> list[str]:
    """Move one operand's tile between rows and columns."""
    operand = moved.operand
    if not operand.size:
        return []
    table = f", ptr @slots{k}" if moved.table else ""
    quick = f"{fast}_listed(ptr %slot{k}{table}, i64 {operand.size}" if table else f"{fast}{operand.size}(ptr %slot{k}"
    return [
        f"  %off{k} = mul i64 %i, %stride{k}",
        f"  %at{k} = getelementptr i8, ptr %base{k}, i64 %off{k}",
        f"  %slot{k} = getelementptr <{width} x double>, ptr %w, i64 {moved.slot}",
        f"  %quick{k} = and i1 %full, %packed{k}",
        f"  br i1 %quick{k}, label %fast{k}, label %slow{k}",
        f"fast{k}:",
        f"  call void @{quick}, ptr %at{k}, i64 %stride{k})",
        f"  br label %then{k}",
        f"slow{k}:",
        *_by_number(k, moved, slow, width),
        f"  br label %then{k}",
        f"then{k}:",
    ]


def _by_number(k: int, moved: _Moved, name: str, width: int) -> list[str]:
    """Move one operand's tile number by number, matrix by matrix where it has more than two axes."""
    shape, lines = moved.operand.shape, []
    columns = shape[-1] if shape else 1
    rows = shape[-2] if len(shape) > 1 else 1
    for count, index in enumerate(np.ndindex(shape[:-2])):
        at, first = f"%at{k}", count * rows * columns
        for axis, place in enumerate(index):
            lines += [
                f"  %far{k}_{count}_{axis} = mul i64 %c{k}_{axis}, {place}",
                f"  %to{k}_{count}_{axis} = getelementptr i8, ptr {at}, i64 %far{k}_{count}_{axis}",
            ]
            at = f"%to{k}_{count}_{axis}"
        slot, table, call = f"%slot{k}_{count}", "", name
        if moved.table:
            lines.append(f"  %table{k}_{count} = getelementptr i32, ptr @slots{k}, i64 {first}")
            table, call = f", ptr %table{k}_{count}", f"{name}_listed"
        here = moved.slot if moved.table else moved.slot + first
        lines += [
            f"  {slot} = getelementptr <{width} x double>, ptr %w, i64 {here}",
            f"  call void @{call}(ptr {slot}, ptr {at}, i64 %count, i64 {rows}, i64 {columns}, "
            f"i64 %stride{k}, i64 %row{k}, i64 %column{k}{table})",
        ]
    return lines


def emit_one(body: Body, program: Program, width: int) -> str:
    """@one(pointers): one state; inputs and outputs contiguous, in the order of the signature."""
    inputs, outputs = _inputs(program), _outputs(program, body)
    lines = ["define void @one(ptr %args) #2 {", "entry:", _workspace(body, width)]
    for k, moved in enumerate([*inputs, *outputs]):
        if k == len(inputs):
            lines.append(f"  call void @{body.name}prepare(ptr %w)")
            lines.append(f"  call void @{body.name}evaluate(ptr %w)")
        size = moved.operand.size
        if not size:
            continue
        name = "spread" if k < len(inputs) else "pick_listed" if moved.table else "pick"
        table = f", ptr @slots{k}" if moved.table else ""
        lines += [
            f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"  %a{k} = load ptr, ptr %ap{k}, align 8",
            f"  %s{k} = getelementptr <{width} x double>, ptr %w, i64 {moved.slot}",
            f"  call void @{name}(ptr %s{k}, ptr %a{k}, i64 {size}{table})",
        ]
    return "\n".join([spread_pick(width), *lines, "  ret void", "}"])
