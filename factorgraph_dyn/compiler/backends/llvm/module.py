"""A program as one LLVM module.

Takes a program; gives IR text with the entry points ``@loop`` and ``@one``. The work runs once a kernel.
"""

from factorgraph_dyn.compiler.backends.llvm.body import SEGMENT, Body, emit_body
from factorgraph_dyn.compiler.backends.llvm.driver import emit_driver, emit_single
from factorgraph_dyn.compiler.backends.llvm.machine import Machine
from factorgraph_dyn.compiler.backends.x86 import assembly
from factorgraph_dyn.compiler.program import Program

ENTRY_POINTS = ("loop", "one")
NARROW = 4  # doubles that vectors of single states hold


def emit_module(program: Program, machine: Machine, *, segment: int | None = None) -> str:
    """IR text of a program for a machine."""
    body = body_for(program, machine, segment=segment)
    narrow = machine.narrowed(NARROW)
    splits = segment is None and narrow != machine and assembly.is_for(narrow)
    driver = emit_driver(body, program, machine.width, fma=machine.fma, single=not splits)
    text = preamble(machine.width) + f"{body.text}\n{driver}\n"
    return text + _single(program, narrow) if splits else text


def _single(program: Program, machine: Machine) -> str:
    """What does single states in a narrower body: wide instructions take longer, their values more room."""
    body = body_for(program, machine, name="one_")
    return f"{declarations(machine.width)}{body.text}\n{emit_single(body, program, machine.width, fma=machine.fma)}\n"


def body_for(program: Program, machine: Machine, *, segment: int | None = None, name: str = "") -> Body:
    """The arithmetic of a program in the form that is fastest on a machine.

    Args:
        program: What to compute.
        machine: Where it will run.
        segment: Operations a function of IR has at most; by default it is assembly where the machine has it.
        name: What the names of its functions begin with.
    """
    if segment is None and assembly.is_for(machine):
        return assembly.emit_assembly(program, machine.width, name)
    return emit_body(program, machine.width, fma=machine.fma, segment=segment or SEGMENT, name=name)


def preamble(width: int) -> str:
    """Declarations and attributes that the functions of a module refer to."""
    # A workspace may be larger than a page: probing makes a stack that is too small fail cleanly.
    return f"""
{declarations(width)}
attributes #0 = {{ nounwind "prefer-vector-width"="{64 * width}" }}
attributes #1 = {{ nounwind noinline cold }}
attributes #2 = {{ nounwind "prefer-vector-width"="{64 * width}" "probe-stack"="inline-asm" }}
"""


def declarations(width: int) -> str:
    """What LLVM knows itself and functions of vectors call."""
    vector = f"<{width} x double>"
    return f"""
declare {vector} @llvm.fma.v{width}f64({vector}, {vector}, {vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)
"""
