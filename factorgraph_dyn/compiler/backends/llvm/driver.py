"""What surrounds the arithmetic: the order of calls, and the entry points.

Takes the shapes of a kernel's arguments and its body; gives IR text of two entry points.

    @loop   NumPy's inner loop: rows of any stride, a tile of `width` states at a time
    @one    one state, from plain pointers

The last states of a batch go through the same vector code with the last row repeated, so a result never
depends on where in a batch its state is. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from factorgraph_dyn.compiler.backends.llvm.body import Body
from factorgraph_dyn.compiler.backends.llvm.rows import gather_scatter, row_functions, spread_pick
from factorgraph_dyn.compiler.backends.llvm.sincos import sincos_functions
from factorgraph_dyn.compiler.program import Operand, Program


def emit_driver(body: Body, program: Program, width: int, *, fma: bool) -> str:
    """Entry points and helpers around a body."""
    inputs, outputs = program.arguments, program.results
    sizes, out_sizes = ({operand.size for operand in operands} for operands in (inputs, outputs))
    return "\n".join(
        [
            sincos_functions(width, fma=fma),
            gather_scatter(width),
            row_functions(sizes, out_sizes, width),
            evaluate_function(body, sum(operand.size for operand in outputs), width),
            _loop(body, inputs, outputs, width),
            _one(body, inputs, outputs, width),
        ]
    )


def evaluate_function(body: Body, outputs: int, width: int) -> str:
    """@<name>evaluate(workspace): columns in, columns out."""
    vector = f"<{width} x double>"
    lines = [
        f"define internal void @{body.name}evaluate(ptr noalias %w) #0 {{",
        f"  %g = getelementptr {vector}, ptr %w, i64 {body.guard_slot}",
        f"  store {vector} zeroinitializer, ptr %g, align {8 * width}",
    ]
    tables = []
    for number, call in enumerate(body.calls):
        if call.part is not None:
            lines.append(f"  call void @{body.name}part{call.part}(ptr %w)")
            continue
        slots = ", ".join(f"i32 {slot}" for slot in call.arguments)
        count = len(call.arguments)
        tables.append(f"@{body.name}angles{number} = private unnamed_addr constant [{count} x i32] [{slots}]")
        lines += [
            f"  %a{number} = getelementptr {vector}, ptr %w, i64 {call.results}",
            f"  call void @sincos_batch(ptr %w, ptr @{body.name}angles{number}, i64 {count}, ptr %a{number})",
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
        f"  %more = icmp ult i64 %k1, {outputs}",
        "  br i1 %more, label %next, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(tables + lines)


def _workspace(body: Body, width: int) -> str:
    return f"  %w = alloca [{body.slots * width} x double], align {8 * width}"


def _loop(body: Body, inputs: Sequence[Operand], outputs: Sequence[Operand], width: int) -> str:
    """@loop(args, dimensions, steps, data) as NumPy calls it."""
    operands = [*inputs, *outputs]
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
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %tile, label %end",
        "tile:",
        "  %i = phi i64 [0, %entry], [%i1, %next]",
        "  %left = sub i64 %n, %i",
        f"  %full = icmp sge i64 %left, {width}",
        f"  %count = select i1 %full, i64 {width}, i64 %left",
    ]
    slot = 0
    for k, operand in enumerate(inputs):
        lines += _transfer(k, operand, "load", "gather", slot, width)
        slot += operand.size
    lines.append("  call void @evaluate(ptr %w)")
    for k, operand in enumerate(outputs, start=len(inputs)):
        lines += _transfer(k, operand, "store", "scatter", slot, width)
        slot += operand.size
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


def _packed(k: int, operand: Operand, strides: list[str]) -> list[str]:
    """%packed<k>: whether a state's numbers lie side by side; and its two strides."""
    column = strides[-1] if strides else "8"
    row = strides[0] if len(strides) == 2 else "0"
    lines = [
        f"  %row{k} = add i64 {row}, 0",
        f"  %column{k} = add i64 {column}, 0",
        f"  %near{k} = icmp eq i64 %column{k}, 8",
    ]
    if len(strides) == 2:
        return [
            *lines,
            f"  %rows{k} = icmp eq i64 %row{k}, {8 * operand.shape[1]}",
            f"  %packed{k} = and i1 %near{k}, %rows{k}",
        ]
    return [*lines, f"  %packed{k} = and i1 %near{k}, true"]


def _transfer(k: int, operand: Operand, fast: str, slow: str, slot: int, width: int) -> list[str]:
    """Move one operand's tile between rows and columns."""
    if not operand.size:
        return []
    columns = operand.shape[-1] if operand.shape else 1
    rows = operand.size // columns
    return [
        f"  %off{k} = mul i64 %i, %stride{k}",
        f"  %at{k} = getelementptr i8, ptr %base{k}, i64 %off{k}",
        f"  %slot{k} = getelementptr <{width} x double>, ptr %w, i64 {slot}",
        f"  %quick{k} = and i1 %full, %packed{k}",
        f"  br i1 %quick{k}, label %fast{k}, label %slow{k}",
        f"fast{k}:",
        f"  call void @{fast}{operand.size}(ptr %slot{k}, ptr %at{k}, i64 %stride{k})",
        f"  br label %then{k}",
        f"slow{k}:",
        f"  call void @{slow}(ptr %slot{k}, ptr %at{k}, i64 %count, i64 {rows}, i64 {columns}, "
        f"i64 %stride{k}, i64 %row{k}, i64 %column{k})",
        f"  br label %then{k}",
        f"then{k}:",
    ]


def _one(body: Body, inputs: Sequence[Operand], outputs: Sequence[Operand], width: int) -> str:
    """@one(pointers): one state; inputs and outputs contiguous, in the order of the signature."""
    lines = ["define void @one(ptr %args) #2 {", "entry:", _workspace(body, width)]
    slot = 0
    for k, operand in enumerate([*inputs, *outputs]):
        if k == len(inputs):
            lines.append("  call void @evaluate(ptr %w)")
        if not operand.size:
            continue
        name = "spread" if k < len(inputs) else "pick"
        lines += [
            f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}",
            f"  %a{k} = load ptr, ptr %ap{k}, align 8",
            f"  %s{k} = getelementptr <{width} x double>, ptr %w, i64 {slot}",
            f"  call void @{name}(ptr %s{k}, ptr %a{k}, i64 {operand.size})",
        ]
        slot += operand.size
    return "\n".join([spread_pick(width), *lines, "  ret void", "}"])
