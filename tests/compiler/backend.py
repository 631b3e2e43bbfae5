"""Programs without a mechanism, for tests of the back end."""

from __future__ import annotations

import dataclasses

import numpy as np

from factorgraph_dyn.compiler import program
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import ENTRY_POINTS, emit_module
from factorgraph_dyn.compiler.backends.x86 import assembly
from factorgraph_dyn.compiler.kernel.gufunc import make_gufunc
from factorgraph_dyn.compiler.tape.tape import Tape


def widths():
    """Vector widths that this machine can run."""
    return [width for width in (2, 4, 8) if width <= machine.host().width]


def assembly_widths():
    """Those of them that there is assembly for."""
    return [width for width in widths() if assembly.is_for(machine.host().narrowed(width))]


def gufunc_of(built, sizes, outputs, *, width=None, fma=None, segment=1200):
    """The program as a gufunc, for inputs of the given sizes and one output.

    Without a segment the code is the machine's own: assembly where there is one for it, else LLVM's.
    """
    host = machine.host()
    target = host.narrowed(width or host.width)
    target = target if fma is None else dataclasses.replace(target, fma=fma)
    shaped = dataclasses.replace(built, arguments=tuple(program.Operand((size,)) for size in sizes))
    text = emit_module(shaped, target, segment=segment)
    code = machine.load(machine.object_code(text, target), ENTRY_POINTS, target)
    signature = ",".join(f"({size})" for size in sizes) + f"->({outputs})"
    return make_gufunc(code.addresses["loop"], signature, len(sizes), 1, "test", "", code)


def random_program(seed, inputs=7, steps=300, outputs=5, guards=False, parameters=0):
    """A random straight-line program with every operation; its last inputs may be parameters, an argument of their own.

    Half of the operations of one with parameters need nothing else.
    """
    rng = np.random.default_rng(seed)
    tape = Tape(seed=seed)
    leaves = [tape.input(f"x{k}") for k in range(inputs)]
    refs = [
        *leaves,
        tape.constant(0.75),
        *map(tape.constant, rng.normal(size=steps // 10)),
        *(tape.sin(x) for x in leaves[:3]),
    ]
    refs += [tape.cos(tape.add(leaves[0], tape.mul(tape.constant(2.0), leaves[1])))]
    bounded = list(refs)
    free, drawn = leaves[inputs - parameters :], []
    for _ in range(steps // 2 if parameters else 0):
        drawn.append(tape.mul(int(rng.choice(free)), tape.add(*map(int, rng.choice([*free, *drawn[-5:]], 2)))))
    refs += [ref for ref in drawn if ref]
    for _ in range(steps):
        a, b = (int(rng.choice(refs[-25:])) for _ in range(2))
        small = int(rng.choice(bounded))
        operation = rng.integers(0, 10)
        if operation < 4:
            refs.append(tape.add(a, -b if operation % 2 else b))
        elif operation < 8:
            refs.append(tape.mul(small, a))
        elif operation == 8:
            square = tape.add(tape.mul(small, small), tape.constant(1.5))
            refs.append(tape.mul(a, tape.reciprocal(square)))
        else:
            refs.append(tape.mul(tape.sign(small), a))
        if not refs[-1]:
            refs.pop()
    first, second = program.Guard(leaves[0], 0.1, "first input"), program.Guard(refs[-1], 1e9, "a result", small=True)
    watched = [first, second] if guards else []
    sizes = (inputs - parameters, parameters) if parameters else (inputs,)
    return program.build(
        tape,
        leaves,
        [*refs[-outputs + 1 :], -refs[-outputs]],
        watched,
        arguments=[program.Operand((size,)) for size in sizes],
        parameters=int(parameters > 0),
    )
