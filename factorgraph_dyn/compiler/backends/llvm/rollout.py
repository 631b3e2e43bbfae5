"""A time loop around the arithmetic: states stay in SIMD lanes from the first step to the last.

Takes the forward program and the programs of a step (`compiler.rollout.pieces`); gives IR text with the entry point

    @rollout(arguments)     arguments: the words that `ARGUMENTS` names, in this order

A tile of ``width`` rollouts runs through all its steps before the next one starts. It has two workspaces: the forward
body's (q, v, tau, parameters | a | ...) and one that all pieces of the integrator share (q, v, tau, parameters, a of
each stage, step | state | ...), in which q and v stay what they were at the start of the step. Where there is but one
stage they are one, and neither accelerations nor what pieces read of tau and parameters need be copied. Parameters,
where there are any, are loaded once a tile. The last rollouts of a batch go through the same code with the last one
repeated. The work runs once a mechanism and integrator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.compiler.backends.llvm.body import Body
from factorgraph_dyn.compiler.backends.llvm.driver import angle_counts, evaluate_function
from factorgraph_dyn.compiler.backends.llvm.machine import Machine
from factorgraph_dyn.compiler.backends.llvm.module import body_for, preamble
from factorgraph_dyn.compiler.backends.llvm.rows import gather_scatter, row_functions
from factorgraph_dyn.compiler.backends.llvm.sincos import sincos_functions
from factorgraph_dyn.compiler.program import Program

ENTRY_POINT = "rollout"
AHEAD = 4  # rows that memory is asked for before they are read or written: without, a quarter of the time is waiting
ARGUMENTS = (
    "count", "steps", "record_every", "rows", "step",
    "q", "q_stride", "v", "v_stride", "tau", "tau_stride", "tau_step_stride", "parameters", "parameters_stride",
    "q_out", "v_out",
)  # fmt: skip
"""Counts, the bits of the step in s, and for every array its address and strides in bytes; rows are contiguous."""


@dataclass(frozen=True)
class StepPrograms:
    """What runs in one step.

    Attributes:
        forward: (q, v, tau, parameters) -> a; parameters are all arguments after tau, one after the other.
        stages: (q, v, tau, parameters, a of every stage, step) -> state at which the next acceleration is wanted.
        advances: Likewise, each -> state that takes the place of (q, v): the integrator's last, and what closes loops.
    """

    forward: Program
    stages: tuple[Program, ...]
    advances: tuple[Program, ...]


def emit_rollout(programs: StepPrograms, machine: Machine, *, segment: int | None = None) -> str:
    """IR text of a rollout for a machine."""
    return _Emitter(programs, machine, segment).emit()


class _Emitter:
    def __init__(self, programs: StepPrograms, machine: Machine, segment: int | None) -> None:
        self.width, self.fma, self.machine, self.segment = machine.width, machine.fma, machine, segment
        self.vector = f"<{self.width} x double>"
        self.forward = self._body(programs.forward, "")
        self.stages = [self._body(program, f"stage{k}_") for k, program in enumerate(programs.stages)]
        bodies: dict[int, Body] = {}
        for program in programs.advances:  # one that runs twice is one
            if id(program) not in bodies:
                bodies[id(program)] = self._body(program, f"advance{len(bodies)}_")
        self.advances = [bodies[id(program)] for program in programs.advances]
        self.bodies = [self.forward, *self.stages, *bodies.values()]
        q, v, self.tau, *others = (operand.size for operand in programs.forward.arguments)
        self.parameters = sum(others)
        self.sizes = (q, v)
        self.state = q + v
        self.a = programs.forward.results[0].size
        self.step_slot = self.advances[0].output_slot - 1
        self.shares = not self.stages
        driven = slice(self.state, self.state + self.tau + self.parameters)
        pieces = (*programs.stages, *programs.advances)
        # what pieces read besides the state lies in the forward body's workspace
        self.reads_drive = not self.shares and any(
            node in program.nodes for program in pieces for node in program.inputs[driven]
        )
        self.lines: list[str] = []
        self.counter = 0

    def _body(self, program: Program, name: str) -> Body:
        return body_for(program, self.machine, segment=self.segment, name=name)

    def emit(self) -> str:
        in_sizes, out_sizes = {*self.sizes, self.tau, self.parameters} - {0}, set(self.sizes)
        return "\n".join(
            [
                preamble(self.width),
                "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
                sincos_functions(angle_counts(*self.bodies), self.width, fma=self.fma),
                gather_scatter(self.width),
                row_functions(in_sizes, out_sizes, self.width),
                *(self._tile_function("load", "gather", size) for size in sorted(in_sizes)),
                *(self._tile_function("store", "scatter", size) for size in sorted(out_sizes)),
                *(body.text for body in self.bodies),
                *(evaluate_function(body, self.width) for body in self.bodies),
                self._step_function(),
                self._tile_functions(),
                self._loop(),
            ]
        )

    def _tile_function(self, fast: str, slow: str, size: int) -> str:
        """@tile_load<n>, @tile_store<n>(slots, rows, stride, count): full tiles by transposing, others by number."""
        return f"""
define internal void @tile_{fast}{size}(ptr noalias %w, ptr %rows, i64 %stride, i64 %count) #0 {{
  %full = icmp eq i64 %count, {self.width}
  br i1 %full, label %fast, label %slow
fast:
  call void @{fast}{size}(ptr %w, ptr %rows, i64 %stride)
  ret void
slow:
  call void @{slow}(ptr %w, ptr %rows, i64 %count, i64 1, i64 {size}, i64 %stride, i64 0, i64 8)
  ret void
}}"""

    def _address(self, base: str, slot: int) -> str:
        self.counter += 1
        self.lines.append(f"  %p{self.counter} = getelementptr {self.vector}, ptr {base}, i64 {slot}")
        return f"%p{self.counter}"

    def _copy(self, source: tuple[str, int], targets: Sequence[tuple[str, int]], count: int) -> None:
        """Copy vectors between workspaces."""
        for k in range(count):
            at = self._address(source[0], source[1] + k)
            self.lines.append(f"  %x{self.counter} = load {self.vector}, ptr {at}, align {8 * self.width}")
            value = f"%x{self.counter}"
            for base, slot in targets:
                to = self._address(base, slot + k)
                self.lines.append(f"  store {self.vector} {value}, ptr {to}, align {8 * self.width}")

    def _step_function(self) -> str:
        """@step(forward's workspace, integrator's workspace, step): from one state to the next, torques in place."""
        self.lines = []
        self.lines.append(f"  %step = load {self.vector}, ptr %h, align {8 * self.width}")
        if self.reads_drive:
            self._copy(("%w", self.state), [("%u", self.state)], self.tau + self.parameters)
        for stage in range(len(self.stages) + 1):
            if stage:
                body = self.stages[stage - 1]
                self.lines.append(f"  call void @{body.name}evaluate(ptr %u)")
                self._copy(("%u", body.output_slot), [("%w", 0)], self.state)
            if self.shares:  # the integrator had something else in its place
                self.lines.append("  call void @prepare(ptr %w)")
            self.lines.append("  call void @evaluate(ptr %w)")
            if not self.shares:
                place = self.state + self.tau + self.parameters + stage * self.a
                self._copy(("%w", self.forward.output_slot), [("%u", place)], self.a)
            if not stage:  # the forward body may have had something else in its place
                at = self._address("%u", self.step_slot)
                self.lines.append(f"  store {self.vector} %step, ptr {at}, align {8 * self.width}")
        for body in self.advances:
            self.lines.append(f"  call void @{body.name}evaluate(ptr %u)")
            on = not self.shares and body is self.advances[-1]
            targets = [("%u", 0), ("%w", 0)] if on else [("%u", 0)]
            self._copy(("%u", body.output_slot), targets, self.state)
        text = "\n".join(self.lines)
        return f"define internal void @step(ptr %w, ptr %u, ptr %h) #0 {{\n{text}\n  ret void\n}}"

    def _tile_functions(self) -> str:
        """What is done to the tile of rollouts that starts at number %i: its start, a step, a record.

        @tile_start(arguments, w, u, i)    @tile_step(arguments, w, u, h, i, t)    @tile_record(arguments, u, i, row)
        """
        width, vector, (q, v) = self.width, self.vector, self.sizes
        self.lines = []
        if not self.shares:
            self._copy(("%u", 0), [("%w", 0)], self.state)
        copies = "\n".join(self.lines)
        lanes = f"""  %left = sub i64 %count, %i
  %full = icmp sge i64 %left, {width}
  %lanes = select i1 %full, i64 {width}, i64 %left"""
        return f"""
define internal void @tile_start(ptr %args, ptr %w, ptr %u, i64 %i) #0 {{
{self._words("count", "q", "q_stride", "v", "v_stride", "parameters", "parameters_stride")}
{lanes}
{self._place("q_at", "q", "q_stride")}
{self._place("v_at", "v", "v_stride")}
  %uv = getelementptr {vector}, ptr %u, i64 {q}
  call void @tile_load{q}(ptr %u, ptr %q_at, i64 %q_stride, i64 %lanes)
  call void @tile_load{v}(ptr %uv, ptr %v_at, i64 %v_stride, i64 %lanes)
{self._load_parameters()}
{copies}
  call void @tile_record(ptr %args, ptr %u, i64 %i, i64 0)
  ret void
}}
define internal void @tile_step(ptr %args, ptr %w, ptr %u, ptr %h, i64 %i, i64 %t) #0 {{
{self._words("count", "tau", "tau_stride", "tau_step_stride")}
{lanes}
{self._place("tau_at", "tau", "tau_stride")}
  %past = mul i64 %t, %tau_step_stride
  %tau_now = getelementptr i8, ptr %tau_at, i64 %past
  %w_tau = getelementptr {vector}, ptr %w, i64 {q + v}
{self._ahead("tau_now", "tau_stride", "%tau_step_stride", write=False)}
  call void @tile_load{self.tau}(ptr %w_tau, ptr %tau_now, i64 %tau_stride, i64 %lanes)
  call void @step(ptr %w, ptr %u, ptr %h)
  ret void
}}
define internal void @tile_record(ptr %args, ptr noalias %u, i64 %i, i64 %row) #0 {{
{self._words("count", "rows", "q_out", "v_out")}
{lanes}
  %q_lane = mul i64 %rows, {8 * q}
  %v_lane = mul i64 %rows, {8 * v}
{self._place("q_at", "q_out", "q_lane")}
{self._place("v_at", "v_out", "v_lane")}
  %q_past = mul i64 %row, {8 * q}
  %v_past = mul i64 %row, {8 * v}
  %q_row = getelementptr i8, ptr %q_at, i64 %q_past
  %v_row = getelementptr i8, ptr %v_at, i64 %v_past
  %uv = getelementptr {vector}, ptr %u, i64 {q}
{self._ahead("q_row", "q_lane", 8 * q, write=True)}
{self._ahead("v_row", "v_lane", 8 * v, write=True)}
  call void @tile_store{q}(ptr %u, ptr %q_row, i64 %q_lane, i64 %lanes)
  call void @tile_store{v}(ptr %uv, ptr %v_row, i64 %v_lane, i64 %lanes)
  ret void
}}"""

    def _load_parameters(self) -> str:
        if not self.parameters:
            return ""
        return f"""{self._place("p_at", "parameters", "parameters_stride")}
  %wp = getelementptr {self.vector}, ptr %w, i64 {self.state + self.tau}
  call void @tile_load{self.parameters}(ptr %wp, ptr %p_at, i64 %parameters_stride, i64 %lanes)
  call void @prepare(ptr %w)"""

    def _words(self, *names: str) -> str:
        """Some of the arguments, by name."""
        return "\n".join(
            f"  %a_{name} = getelementptr i64, ptr %args, i64 {ARGUMENTS.index(name)}\n"
            f"  %{name} = load i64, ptr %a_{name}, align 8"
            for name in names
        )

    def _place(self, name: str, array: str, stride: str) -> str:
        """The address of rollout %i in an array."""
        return (
            f"  %{name}_0 = inttoptr i64 %{array} to ptr\n"
            f"  %{name}_i = mul i64 %i, %{stride}\n"
            f"  %{name} = getelementptr i8, ptr %{name}_0, i64 %{name}_i"
        )

    def _ahead(self, row: str, lane_stride: str, row_stride: str | int, *, write: bool) -> str:
        """Asks memory for the tile's rows that are due some steps after %row; beyond the end it does no harm."""
        lines = [
            f"  %{row}_way = mul i64 {row_stride}, {AHEAD}",
            f"  %{row}_ahead = getelementptr i8, ptr %{row}, i64 %{row}_way",
        ]
        for lane in range(self.width):
            lines += [
                f"  %{row}_to{lane} = mul i64 %{lane_stride}, {lane}",
                f"  %{row}_of{lane} = getelementptr i8, ptr %{row}_ahead, i64 %{row}_to{lane}",
                f"  call void @llvm.prefetch.p0(ptr %{row}_of{lane}, i32 {int(write)}, i32 3, i32 1)",
            ]
        return "\n".join(lines)

    def _loop(self) -> str:
        """@rollout: for tiles, for steps. Tiles that take turns are slower: too many rows are written to at once."""
        width, vector = self.width, self.vector
        sizes = [width * body.slots for body in self.bodies]
        w_size, u_size = (max(sizes), 0) if self.shares else (sizes[0], max(sizes[1:]))
        zeros = ", ".join(["i32 0"] * width)
        return f"""
define void @{ENTRY_POINT}(ptr %args) #2 {{
entry:
  %w = alloca [{w_size} x double], align {8 * width}
  {"%u = getelementptr i8, ptr %w, i64 0" if self.shares else f"%u = alloca [{u_size} x double], align {8 * width}"}
  %h = alloca {vector}, align {8 * width}
{self._words("count", "steps", "record_every", "step")}
  %h0 = bitcast i64 %step to double
  %h1 = insertelement {vector} poison, double %h0, i64 0
  %h2 = shufflevector {vector} %h1, {vector} poison, <{width} x i32> <{zeros}>
  store {vector} %h2, ptr %h, align {8 * width}
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %tile, label %end
tile:
  %i = phi i64 [0, %entry], [%i1, %tile_next]
  call void @tile_start(ptr %args, ptr %w, ptr %u, i64 %i)
  %moves = icmp sgt i64 %steps, 0
  br i1 %moves, label %time, label %tile_next
time:
  %t = phi i64 [0, %tile], [%t1, %time_next]
  %row = phi i64 [0, %tile], [%row_now, %time_next]
  %since = phi i64 [0, %tile], [%since_now, %time_next]
  call void @tile_step(ptr %args, ptr %w, ptr %u, ptr %h, i64 %i, i64 %t)
  %t1 = add i64 %t, 1
  %row1 = add i64 %row, 1
  %since1 = add i64 %since, 1
  %due = icmp eq i64 %since1, %record_every
  %more = icmp slt i64 %t1, %steps
  %over = xor i1 %more, true
  %recorded = or i1 %due, %over
  br i1 %recorded, label %note, label %time_next
note:
  call void @tile_record(ptr %args, ptr %u, i64 %i, i64 %row1)
  br label %time_next
time_next:
  %row_now = phi i64 [%row, %time], [%row1, %note]
  %since_now = phi i64 [%since1, %time], [0, %note]
  br i1 %more, label %time, label %tile_next
tile_next:
  %i1 = add i64 %i, {width}
  %again = icmp slt i64 %i1, %count
  br i1 %again, label %tile, label %end
end:
  ret void
}}"""
