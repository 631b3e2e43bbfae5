"""A program as one LLVM module.

Takes a program; gives IR text with the entry points ``@loop`` and ``@one``. The work runs once a kernel.
"""

from factorgraph_dyn.compiler.backends.llvm.body import SEGMENT, emit_body
from factorgraph_dyn.compiler.backends.llvm.driver import emit_driver
from factorgraph_dyn.compiler.backends.llvm.machine import Machine
from factorgraph_dyn.compiler.backends.x86 import assembly
from factorgraph_dyn.compiler.program import Program

ENTRY_POINTS = ("loop", "one")


def emit_module(program: Program, machine: Machine, *, segment: int | None = None) -> str:
    """IR text of a program for a machine."""
    width = machine.width
    if segment is None and assembly.is_for(machine):
        body = assembly.emit_assembly(program)
    else:
        body = emit_body(program, width, fma=machine.fma, segment=segment or SEGMENT)
    driver = emit_driver(body, program, width, fma=machine.fma)
    vector = f"<{width} x double>"
    # A workspace may be larger than a page: probing makes a stack that is too small fail cleanly.
    return f"""
declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)
attributes #0 = {{ nounwind "prefer-vector-width"="{64 * width}" }}
attributes #1 = {{ nounwind noinline cold }}
attributes #2 = {{ nounwind "prefer-vector-width"="{64 * width}" "probe-stack"="inline-asm" }}
{body.text}
{driver}
"""
