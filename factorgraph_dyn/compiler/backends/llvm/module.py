"""A program as one LLVM module.

Takes a program and the shapes of its arguments; gives IR text with the entry points ``@loop``,
``@one`` and ``@fastcall``. The work runs once a kernel.
"""

from collections.abc import Sequence

from factorgraph_dyn.compiler.backends.llvm.body import SEGMENT, emit_body
from factorgraph_dyn.compiler.backends.llvm.driver import Operand, emit_driver
from factorgraph_dyn.compiler.backends.llvm.machine import Machine
from factorgraph_dyn.compiler.kernel.fastcall import emit_fastcall
from factorgraph_dyn.compiler.program import Program

ENTRY_POINTS = ("loop", "one", "fastcall")


def emit_module(
    program: Program,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    machine: Machine,
    *,
    segment: int = SEGMENT,
) -> str:
    """IR text of a program for a machine."""
    width = machine.width
    body = emit_body(program, width, fma=machine.fma, segment=segment)
    driver = emit_driver(body, inputs, outputs, width, fma=machine.fma)
    vector = f"<{width} x double>"
    # A workspace may be larger than a page: probing makes a stack that is too small fail cleanly.
    return f"""
declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i128 @llvm.ctlz.i128(i128, i1)
attributes #0 = {{ nounwind "prefer-vector-width"="{64 * width}" }}
attributes #1 = {{ nounwind noinline cold }}
attributes #2 = {{ nounwind "prefer-vector-width"="{64 * width}" "probe-stack"="inline-asm" }}
{body.text}
{driver}
{emit_fastcall(inputs, outputs)}
"""
