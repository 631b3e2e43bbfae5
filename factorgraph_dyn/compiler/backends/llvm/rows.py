"""Between rows, state by state as the user has them, and columns, a vector of states for each value.

Takes sizes and a vector width; gives IR text of functions that move one tile.

    @load<n>, @store<n>     full tiles of contiguous rows: transposing w x w blocks, log2(w) shuffles a vector
    @gather, @scatter       any strides and counts, number by number
    @spread, @pick          one state

Of matrices that have many zeros only the other entries are values; tables say in which slot each entry's is, and the
functions that hand them out are @store_listed, @scatter_listed and @pick_listed.

The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

LARGEST_PIECE = 4  # columns of a block
LARGEST = 64  # columns moved by one function: those of many hundred take LLVM minutes


def row_functions(sizes: Iterable[int], outputs: Iterable[int], width: int) -> str:
    """@load<n> and @store<n> for rows of all sizes of arguments and results."""
    texts = []
    for name, wanted, whole in (("load", sizes, load_rows), ("store", outputs, store_rows)):
        long = {size for size in wanted if size > LARGEST}
        short = {size for size in wanted if 0 < size <= LARGEST} | {LARGEST for _ in long}
        short |= {size % LARGEST for size in long} - {0}
        texts += [whole(size, width) for size in sorted(short)]
        texts += [_in_parts(name, size, width) for size in sorted(long)]
    return "\n".join(texts)


def _in_parts(name: str, size: int, width: int) -> str:
    """@load<size> or @store<size> of a long row, part by part."""
    lines = [f"define internal void @{name}{size}(ptr noalias %w, ptr %rows, i64 %stride) #0 {{"]
    for start in range(0, size, LARGEST):
        lines += [
            f"  %s{start} = getelementptr <{width} x double>, ptr %w, i64 {start}",
            f"  %p{start} = getelementptr double, ptr %rows, i64 {start}",
            f"  call void @{name}{min(LARGEST, size - start)}(ptr %s{start}, ptr %p{start}, i64 %stride)",
        ]
    return "\n".join([*lines, "  ret void", "}"])


def _pieces(size: int, width: int) -> list[tuple[int, int]]:
    """(first column, columns) of the blocks that a row is cut into; widths are powers of two."""
    pieces, start = [], 0
    for piece in (LARGEST_PIECE, 2, 1):
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
            lines.append(
                f"  {result[target]} = shufflevector <{width} x double> {a}, "
                f"<{width} x double> {b}, <{width} x i32> <{indices}>"
            )
    return result


def load_rows(size: int, width: int) -> str:
    """@load<size>(slots, rows, stride): a full tile whose rows are contiguous."""
    lines = [f"define internal void @load{size}(ptr noalias %w, ptr %rows, i64 %stride) #0 {{"]
    for lane in range(width):
        lines += [f"  %o{lane} = mul i64 %stride, {lane}", f"  %r{lane} = getelementptr i8, ptr %rows, i64 %o{lane}"]
    for start, piece in _pieces(size, width):
        vectors = [_load_group(lines, start, piece, group, width) for group in range(piece)]
        stage = 1
        while stage < piece:
            vectors = _butterfly(lines, vectors, width, stage, f"t{start}")
            stage *= 2
        for column, vector in enumerate(vectors):
            lines += [
                f"  %s{start + column} = getelementptr <{width} x double>, ptr %w, i64 {start + column}",
                f"  store <{width} x double> {vector}, ptr %s{start + column}, align {8 * width}",
            ]
    return "\n".join([*lines, "  ret void", "}"])


def _load_group(lines: list[str], start: int, piece: int, group: int, width: int) -> str:
    """Columns start.. of the rows group, group + piece, ... side by side in one vector."""
    parts = []
    for lane in range(group, width, piece):
        name = f"{start}_{lane}"
        lines += [
            f"  %p{name} = getelementptr double, ptr %r{lane}, i64 {start}",
            f"  %v{name} = load <{piece} x double>, ptr %p{name}, align 8",
        ]
        parts.append(f"%v{name}")
    size, level = piece, 0
    while len(parts) > 1:
        indices = ", ".join(f"i32 {j}" for j in range(2 * size))
        joined = []
        for k in range(0, len(parts), 2):
            name = f"%j{start}_{group}_{level}_{k}"
            lines.append(
                f"  {name} = shufflevector <{size} x double> {parts[k]}, "
                f"<{size} x double> {parts[k + 1]}, <{2 * size} x i32> <{indices}>"
            )
            joined.append(name)
        parts, size, level = joined, 2 * size, level + 1
    return parts[0]


def store_rows(size: int, width: int) -> str:
    """@store<size>(slots, rows, stride): a full tile whose rows are contiguous."""
    lines = [f"define internal void @store{size}(ptr noalias %w, ptr %rows, i64 %stride) #0 {{"]
    for lane in range(width):
        lines += [f"  %o{lane} = mul i64 %stride, {lane}", f"  %r{lane} = getelementptr i8, ptr %rows, i64 %o{lane}"]
    for start, piece in _pieces(size, width):
        columns = []
        for column in range(start, start + piece):
            lines += [
                f"  %s{column} = getelementptr <{width} x double>, ptr %w, i64 {column}",
                f"  %c{column} = load <{width} x double>, ptr %s{column}, align {8 * width}",
            ]
            columns.append(f"%c{column}")
        _store_block(lines, columns, width, str(start))
    return "\n".join([*lines, "  ret void", "}"])


def _store_block(lines: list[str], columns: list[str], width: int, start: str) -> None:
    """Columns of all lanes into the rows %r<lane>, from an entry on."""
    piece, tag = len(columns), start.removeprefix("%")
    vectors, stage = columns, piece // 2
    while stage:
        vectors = _butterfly(lines, vectors, width, stage, f"t{tag}")
        stage //= 2
    for group, vector in enumerate(vectors):
        for lane in range(group, width, piece):
            name = f"{tag}_{lane}"
            first = lane - group
            indices = ", ".join(f"i32 {j}" for j in range(first, first + piece))
            lines += [
                f"  %e{name} = shufflevector <{width} x double> {vector}, "
                f"<{width} x double> poison, <{piece} x i32> <{indices}>",
                f"  %p{name} = getelementptr double, ptr %r{lane}, i64 {start}",
                f"  store <{piece} x double> %e{name}, ptr %p{name}, align 8",
            ]


def store_listed(width: int) -> str:
    """@store_listed(slots, table, entries, rows, stride): a full tile whose values are where a table says."""
    piece = min(width, LARGEST_PIECE)
    lines = ["define internal void @store_listed(ptr noalias %w, ptr %table, i64 %n, ptr %rows, i64 %stride) #0 {"]
    lines += ["entry:"]
    for lane in range(width):
        lines += [f"  %o{lane} = mul i64 %stride, {lane}", f"  %r{lane} = getelementptr i8, ptr %rows, i64 %o{lane}"]
    lines += [f"  %whole = and i64 %n, -{piece}", "  br label %blocks"]
    for loop, size, start, end, then in (
        ("block", piece, "0", "%whole", "%singles"),
        ("single", 1, "%whole", "%n", "%end"),
    ):
        before = "%entry" if loop == "block" else "%blocks"
        lines += [
            f"{loop}s:",
            f"  %{loop} = phi i64 [{start}, {before}], [%{loop}_next, %{loop}_body]",
            f"  %{loop}_more = icmp ult i64 %{loop}, {end}",
            f"  br i1 %{loop}_more, label %{loop}_body, label {then}",
            f"{loop}_body:",
        ]
        columns = [_listed_value(lines, f"%{loop}", k, width) for k in range(size)]
        _store_block(lines, columns, width, f"%{loop}")
        lines += [f"  %{loop}_next = add i64 %{loop}, {size}", f"  br label %{loop}s"]
    return "\n".join([*lines, "end:", "  ret void", "}"])


def _listed_value(lines: list[str], start: str, k: int, width: int) -> str:
    """The vector of entry start + k."""
    name = f"{start}_{k}"
    lines += [
        f"  {name}_at = add i64 {start}, {k}",
        f"  {name}_entry = getelementptr i32, ptr %table, i64 {name}_at",
        f"  {name}_slot = load i32, ptr {name}_entry, align 4",
        f"  {name}_value = getelementptr <{width} x double>, ptr %w, i32 {name}_slot",
        f"  {name} = load <{width} x double>, ptr {name}_value, align {8 * width}",
    ]
    return name


def gather_scatter(width: int) -> str:
    """Tiles of any stride and length, number by number.

    @gather repeats the last row in the lanes beyond the batch; @scatter writes only real rows.
    """

    def nest(name: str, body: str, more: str = "", slot: str = "  %slot = add i64 %rw, %c") -> str:
        return f"""
define internal void @{name}(ptr noalias %w, ptr %base, i64 %count, i64 %rows, i64 %columns,
    i64 %lane_stride, i64 %row_stride, i64 %column_stride{more}) #1 {{
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
{slot}
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

    gather = nest("gather", "  %x = load double, ptr %cp, align 1\n  store double %x, ptr %sp, align 8")
    move = "  %x = load double, ptr %sp, align 8\n  store double %x, ptr %cp, align 1"
    scatter = nest("scatter", move) + nest(
        "scatter_listed", move, ", ptr %table", _listed_slot("%entry_at", "%rw", "%c")
    )
    return gather.replace("%lane_end", str(width)) + scatter.replace("%lane_end", "%count")


def _listed_slot(name: str, first: str, more: str) -> str:
    """%slot of an entry of the table."""
    return f"""  {name} = add i64 {first}, {more}
  {name}_p = getelementptr i32, ptr %table, i64 {name}
  {name}_32 = load i32, ptr {name}_p, align 4
  %slot = zext i32 {name}_32 to i64"""


def spread_pick(width: int) -> str:
    """@spread copies one state into all lanes, @pick takes the first lane; @pick_listed by a table."""
    vector = f"<{width} x double>"
    zeros = ", ".join(["i32 0"] * width)

    def loop(name: str, body: str, more: str = "", slot: str = "  %slot = add i64 %k, 0") -> str:
        return f"""
define internal void @{name}(ptr noalias %w, ptr %a, i64 %n{more}) #0 {{
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%k1, %next]
  %p = getelementptr double, ptr %a, i64 %k
{slot}
  %s = getelementptr {vector}, ptr %w, i64 %slot
{body}
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %n
  br i1 %more, label %next, label %end
end:
  ret void
}}"""

    spread = f"""  %x = load double, ptr %p, align 8
  %v0 = insertelement {vector} poison, double %x, i64 0
  %v = shufflevector {vector} %v0, {vector} poison, <{width} x i32> <{zeros}>
  store {vector} %v, ptr %s, align {8 * width}"""
    pick = "  %x = load double, ptr %s, align 8\n  store double %x, ptr %p, align 8"
    listed = _listed_slot("%entry_at", "%k", "0")
    return loop("spread", spread) + loop("pick", pick) + loop("pick_listed", pick, ", ptr %table", listed)
