"""What surrounds the arithmetic: rows in, rows out, sines and cosines, NumPy's loop.

Takes the shapes of a kernel's arguments and its body; gives IR text of two entry points.

    @loop   NumPy's inner loop: rows of any stride, a tile of `width` states at a time
    @one    one state, from plain pointers

A tile of rows (state by state, as the user has them) becomes columns (value by value, a vector each)
by transposing w x w blocks, log2(w) shuffles a vector. The last states of a batch go through the same
vector code with the last row repeated, so a result never depends on where in a batch its state is.
The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from factorgraph_dyn.compiler.llvm_body import Body, double
from factorgraph_dyn.compiler.llvm_sincos import sincos_functions


@dataclass(frozen=True)
class Operand:
    """An argument or result of a kernel: its shape without the batch axes."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Numbers a state has."""
        return prod(self.shape)


def emit_driver(body: Body, inputs: Sequence[Operand], outputs: Sequence[Operand],
                width: int, *, fma: bool) -> str:
    """Entry points and helpers around a body."""
    sizes = {operand.size for operand in inputs if operand.size}
    out_sizes = {operand.size for operand in outputs if operand.size}
    return "\n".join([
        sincos_functions(width, fma=fma),
        _gather_scatter(width),
        *(_load_rows(size, width) for size in sorted(sizes)),
        *(_store_rows(size, width) for size in sorted(out_sizes)),
        _evaluate(body, sum(operand.size for operand in outputs), width),
        _loop(body, inputs, outputs, width),
        _one(body, inputs, outputs, width),
    ])


def _pieces(size: int, width: int) -> list[tuple[int, int]]:
    """(first column, columns) of the blocks that a row is cut into; widths are powers of two."""
    pieces, start = [], 0
    for piece in (4, 2, 1):
        while piece <= width and size - start >= piece:
            pieces.append((start, piece))
            start += piece
    return pieces


def _butterfly(lines: list[str], vectors: list[str], width: int, stage: int, tag: str) -> list[str]:
    """One stage of transposing: swap the off-diagonal blocks of size `stage`."""
    result = list(vectors)
    for row in range(len(vectors)):
        if row & stage:
            continue
        a, b = vectors[row], vectors[row + stage]
        low = [j if not j & stage else width + j - stage for j in range(width)]
        high = [j + stage if not j & stage else width + j for j in range(width)]
        for target, mask, name in ((row, low, "l"), (row + stage, high, "h")):
            result[target] = f"%{tag}_{stage}_{row}{name}"
            indices = ", ".join(f"i32 {j}" for j in mask)
            lines.append(f"  {result[target]} = shufflevector <{width} x double> {a}, "
                         f"<{width} x double> {b}, <{width} x i32> <{indices}>")
    return result


def _load_rows(size: int, width: int) -> str:
    """@load<size>(slots, rows, stride): a full tile whose rows are contiguous."""
    lines = [f"define internal void @load{size}(ptr noalias %w, ptr %rows, i64 %stride) #0 {{"]
    for lane in range(width):
        lines += [f"  %o{lane} = mul i64 %stride, {lane}",
                  f"  %r{lane} = getelementptr i8, ptr %rows, i64 %o{lane}"]
    for start, piece in _pieces(size, width):
        vectors = [_load_group(lines, start, piece, group, width) for group in range(piece)]
        stage = 1
        while stage < piece:
            vectors = _butterfly(lines, vectors, width, stage, f"t{start}")
            stage *= 2
        for column, vector in enumerate(vectors):
            lines += [f"  %s{start + column} = getelementptr <{width} x double>, ptr %w, "
                      f"i64 {start + column}",
                      f"  store <{width} x double> {vector}, ptr %s{start + column}, "
                      f"align {8 * width}"]
    return "\n".join([*lines, "  ret void", "}"])


def _load_group(lines: list[str], start: int, piece: int, group: int, width: int) -> str:
    """Columns start.. of the rows group, group + piece, ... side by side in one vector."""
    parts = []
    for lane in range(group, width, piece):
        name = f"{start}_{lane}"
        lines += [f"  %p{name} = getelementptr double, ptr %r{lane}, i64 {start}",
                  f"  %v{name} = load <{piece} x double>, ptr %p{name}, align 8"]
        parts.append(f"%v{name}")
    size, level = piece, 0
    while len(parts) > 1:
        indices = ", ".join(f"i32 {j}" for j in range(2 * size))
        joined = []
        for k in range(0, len(parts), 2):
            name = f"%j{start}_{group}_{level}_{k}"
            lines.append(f"  {name} = shufflevector <{size} x double> {parts[k]}, "
                         f"<{size} x double> {parts[k + 1]}, <{2 * size} x i32> <{indices}>")
            joined.append(name)
        parts, size, level = joined, 2 * size, level + 1
    return parts[0]


def _store_rows(size: int, width: int) -> str:
    """@store<size>(slots, rows, stride): a full tile whose rows are contiguous."""
    lines = [f"define internal void @store{size}(ptr noalias %w, ptr %rows, i64 %stride) #0 {{"]
    for lane in range(width):
        lines += [f"  %o{lane} = mul i64 %stride, {lane}",
                  f"  %r{lane} = getelementptr i8, ptr %rows, i64 %o{lane}"]
    for start, piece in _pieces(size, width):
        vectors = []
        for column in range(start, start + piece):
            lines += [f"  %s{column} = getelementptr <{width} x double>, ptr %w, i64 {column}",
                      f"  %c{column} = load <{width} x double>, ptr %s{column}, align {8 * width}"]
            vectors.append(f"%c{column}")
        stage = piece // 2
        while stage:
            vectors = _butterfly(lines, vectors, width, stage, f"t{start}")
            stage //= 2
        for group, vector in enumerate(vectors):
            for lane in range(group, width, piece):
                name = f"{start}_{lane}"
                first = lane - group
                indices = ", ".join(f"i32 {j}" for j in range(first, first + piece))
                lines += [f"  %e{name} = shufflevector <{width} x double> {vector}, "
                          f"<{width} x double> poison, <{piece} x i32> <{indices}>",
                          f"  %p{name} = getelementptr double, ptr %r{lane}, i64 {start}",
                          f"  store <{piece} x double> %e{name}, ptr %p{name}, align 8"]
    return "\n".join([*lines, "  ret void", "}"])


def _gather_scatter(width: int) -> str:
    """Tiles of any stride and length, number by number.

    @gather repeats the last row in the lanes beyond the batch; @scatter writes only real rows.
    """
    def nest(name: str, body: str) -> str:
        return f"""
define internal void @{name}(ptr noalias %w, ptr %base, i64 %count, i64 %rows, i64 %columns,
    i64 %lane_stride, i64 %row_stride, i64 %column_stride) #1 {{
entry:
  %last = sub i64 %count, 1
  br label %lanes
lanes:
  %l = phi i64 [0, %entry], [%l1, %lanes_next]
  %over = icmp ugt i64 %l, %last
  %from = select i1 %over, i64 %last, i64 %l
  %lo = mul i64 %from, %lane_stride
  %lp = getelementptr i8, ptr %base, i64 %lo
  br label %row_loop
row_loop:
  %r = phi i64 [0, %lanes], [%r1, %row_next]
  %ro = mul i64 %r, %row_stride
  %rp = getelementptr i8, ptr %lp, i64 %ro
  %rw = mul i64 %r, %columns
  br label %column_loop
column_loop:
  %c = phi i64 [0, %row_loop], [%c1, %column_next]
  %co = mul i64 %c, %column_stride
  %cp = getelementptr i8, ptr %rp, i64 %co
  %slot = add i64 %rw, %c
  %sv = mul i64 %slot, {width}
  %si = add i64 %sv, %l
  %sp = getelementptr double, ptr %w, i64 %si
  br label %column_next
column_next:
{body}
  %c1 = add i64 %c, 1
  %cm = icmp ult i64 %c1, %columns
  br i1 %cm, label %column_loop, label %row_next
row_next:
  %r1 = add i64 %r, 1
  %rm = icmp ult i64 %r1, %rows
  br i1 %rm, label %row_loop, label %lanes_next
lanes_next:
  %l1 = add i64 %l, 1
  %lm = icmp ult i64 %l1, %lane_end
  br i1 %lm, label %lanes, label %done
done:
  ret void
}}"""
    gather = nest("gather", "  %x = load double, ptr %cp, align 1\n"
                            "  store double %x, ptr %sp, align 8")
    scatter = nest("scatter", "  %x = load double, ptr %sp, align 8\n"
                              "  store double %x, ptr %cp, align 1")
    return gather.replace("%lane_end", str(width)) + scatter.replace("%lane_end", "%count")


def _evaluate(body: Body, outputs: int, width: int) -> str:
    """@evaluate(workspace): columns in, columns out."""
    vector = f"<{width} x double>"
    lines = [f"define internal void @evaluate(ptr noalias %w) #0 {{",
             f"  %g = getelementptr {vector}, ptr %w, i64 {body.guard_slot}",
             f"  store {vector} zeroinitializer, ptr %g, align {8 * width}"]
    tables = []
    for number, step in enumerate(body.steps):
        if step.part is not None:
            lines.append(f"  call void @part{step.part}(ptr %w)")
            continue
        slots = ", ".join(f"i32 {slot}" for slot in step.arguments)
        count = len(step.arguments)
        tables.append(f"@angles{number} = private unnamed_addr constant [{count} x i32] [{slots}]")
        lines += [f"  %a{number} = getelementptr {vector}, ptr %w, i64 {step.results}",
                  f"  call void @sincos_batch(ptr %w, ptr @angles{number}, i64 {count}, "
                  f"ptr %a{number})"]
    lines += [f"  %guard = load {vector}, ptr %g, align {8 * width}",
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
              "done:", "  ret void", "}"]
    return "\n".join(tables + lines)


def _workspace(body: Body, width: int) -> str:
    return f"  %w = alloca [{body.slots * width} x double], align {8 * width}"


def _loop(body: Body, inputs: Sequence[Operand], outputs: Sequence[Operand], width: int) -> str:
    """@loop(args, dimensions, steps, data) as NumPy calls it."""
    operands = [*inputs, *outputs]
    lines = ["define void @loop(ptr %args, ptr %dimensions, ptr %steps, ptr %data) #0 {", "entry:",
             _workspace(body, width), "  %n = load i64, ptr %dimensions, align 8"]
    position = len(operands)
    for k, operand in enumerate(operands):
        lines += [f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}",
                  f"  %base{k} = load ptr, ptr %ap{k}, align 8",
                  f"  %sp{k} = getelementptr i64, ptr %steps, i64 {k}",
                  f"  %stride{k} = load i64, ptr %sp{k}, align 8"]
        names = []
        for axis in range(len(operand.shape)):
            lines += [f"  %cp{k}_{axis} = getelementptr i64, ptr %steps, i64 {position}",
                      f"  %c{k}_{axis} = load i64, ptr %cp{k}_{axis}, align 8"]
            names.append(f"%c{k}_{axis}")
            position += 1
        lines += _packed(k, operand, names)
    lines += ["  %some = icmp sgt i64 %n, 0", "  br i1 %some, label %tile, label %end", "tile:",
              "  %i = phi i64 [0, %entry], [%i1, %next]", "  %left = sub i64 %n, %i",
              f"  %full = icmp sge i64 %left, {width}",
              f"  %count = select i1 %full, i64 {width}, i64 %left"]
    slot = 0
    for k, operand in enumerate(inputs):
        lines += _transfer(k, operand, "load", "gather", slot, width)
        slot += operand.size
    lines.append("  call void @evaluate(ptr %w)")
    for k, operand in enumerate(outputs, start=len(inputs)):
        lines += _transfer(k, operand, "store", "scatter", slot, width)
        slot += operand.size
    lines += ["  br label %next", "next:", f"  %i1 = add i64 %i, {width}",
              "  %more = icmp slt i64 %i1, %n", "  br i1 %more, label %tile, label %end",
              "end:", "  ret void", "}"]
    return "\n".join(lines)


def _packed(k: int, operand: Operand, strides: list[str]) -> list[str]:
    """%packed<k>: whether a state's numbers lie side by side; and its two strides."""
    column = strides[-1] if strides else "8"
    row = strides[0] if len(strides) == 2 else "0"
    lines = [f"  %row{k} = add i64 {row}, 0", f"  %column{k} = add i64 {column}, 0",
             f"  %near{k} = icmp eq i64 %column{k}, 8"]
    if len(strides) == 2:
        return [*lines, f"  %rows{k} = icmp eq i64 %row{k}, {8 * operand.shape[1]}",
                f"  %packed{k} = and i1 %near{k}, %rows{k}"]
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
    lines = ["define void @one(ptr %args) #0 {", "entry:", _workspace(body, width)]
    slot = 0
    for k, operand in enumerate([*inputs, *outputs]):
        if k == len(inputs):
            lines.append("  call void @evaluate(ptr %w)")
        if not operand.size:
            continue
        name = "spread" if k < len(inputs) else "pick"
        lines += [f"  %ap{k} = getelementptr ptr, ptr %args, i64 {k}",
                  f"  %a{k} = load ptr, ptr %ap{k}, align 8",
                  f"  %s{k} = getelementptr <{width} x double>, ptr %w, i64 {slot}",
                  f"  call void @{name}(ptr %s{k}, ptr %a{k}, i64 {operand.size})"]
        slot += operand.size
    return "\n".join([_spread_pick(width), *lines, "  ret void", "}"])


def _spread_pick(width: int) -> str:
    """@spread copies one state into all lanes, @pick takes the first lane."""
    vector = f"<{width} x double>"
    zeros = ", ".join(["i32 0"] * width)
    def loop(name: str, body: str) -> str:
        return f"""
define internal void @{name}(ptr noalias %w, ptr %a, i64 %n) #0 {{
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%k1, %next]
  %p = getelementptr double, ptr %a, i64 %k
  %s = getelementptr {vector}, ptr %w, i64 %k
{body}
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %next, label %end
end:
  ret void
}}"""
    return loop("spread", f"""  %x = load double, ptr %p, align 8
  %v0 = insertelement {vector} poison, double %x, i64 0
  %v = shufflevector {vector} %v0, {vector} poison, <{width} x i32> <{zeros}>
  store {vector} %v, ptr %s, align {8 * width}""") + loop(
        "pick", "  %x = load double, ptr %s, align 8\n  store double %x, ptr %p, align 8")
