"""A program as C99.

Takes a program; gives the text of one C file and its header. The code needs nothing but <math.h>, keeps no
state and allocates nothing. It does the same operations as the machine-code kernel, one state at a time.
The work runs when C is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from factorgraph_dyn.compiler.program import Program
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.text import acting_character, in_comment

# Words of C, C++ and <math.h>, and what the text itself uses: no function or argument can be called so.
_WORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const "
    "const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit "
    "export extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict return "
    "short signed sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "acos asin atan atan2 ceil cos cosh erf exp fabs floor fmod gamma hypot j0 j1 jn lgamma log log10 "
    "log2 main pow round sin sinh size_t sqrt tan tanh trunc y0 y1 yn NAN NULL k states failed"
)
TAKEN = frozenset(_WORDS.split())


@dataclass(frozen=True)
class Parameter:
    """An argument of a C function: its name, how many numbers it has, what it is."""

    name: str
    size: int
    meaning: str


def identifier(text: str) -> str:
    """The text as a C identifier."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if not name or name[0].isdigit() else name


def free_identifier(text: str, taken: Container[str] = ()) -> str:
    """The text as a C identifier that means nothing else, with underscores added while it does."""
    name = identifier(text)
    while name in TAKEN or name in taken:
        name += "_"
    return name


def can_be_included(file: str) -> bool:
    """Whether ``#include "file"`` means the file of that name."""
    return not acting_character(file) and not set(file) & set('"\\?')


def header_text(name: str, description: str, inputs: Sequence[Parameter], outputs: Sequence[Parameter]) -> str:
    """The header file."""
    guard = f"{name.upper()}_H"
    meanings = "\n".join(f" *   {p.name}[{p.size}]  {in_comment(p.meaning)}" for p in (*inputs, *outputs))
    return f"""/* {in_comment(description)} */
#ifndef {guard}
#define {guard}

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* One state.
 *
{meanings}
 *
 * Returns 0, or the number of a check that failed (1 and up, listed in the source); the results are
 * then not a number. Arguments must not overlap results.
 */
int {name}({_arguments(inputs, outputs)});

/* A batch of states, row by row: argument i of state k starts at k times its length.
 * Returns how many states failed a check.
 */
size_t {name}_batch(size_t states, {_arguments(inputs, outputs, batch=True)});

#ifdef __cplusplus
}}
#endif

#endif
"""


def source_text(
    name: str,
    header: str,
    description: str,
    program: Program,
    inputs: Sequence[Parameter],
    outputs: Sequence[Parameter],
) -> str:
    """The C file."""
    calls = ", ".join(f"{p.name} + k * {p.size}" for p in (*inputs, *outputs))
    body = "\n".join(_statements(program, inputs, outputs))
    return f"""/* {in_comment(description)} */
#include <math.h>

#include "{header}"

int {name}({_arguments(inputs, outputs)})
{{
{body}
    return 0;
}}

size_t {name}_batch(size_t states, {_arguments(inputs, outputs, batch=True)})
{{
    size_t failed = 0;
    for (size_t k = 0; k < states; ++k)
        failed += {name}({calls}) != 0;
    return failed;
}}
"""


def _arguments(inputs: Sequence[Parameter], outputs: Sequence[Parameter], batch: bool = False) -> str:
    def one(parameter: Parameter, kind: str) -> str:
        if batch:
            return f"{kind} *{parameter.name}"
        return f"{kind} {parameter.name}[{max(parameter.size, 1)}]"

    return ", ".join([*(one(p, "const double") for p in inputs), *(one(p, "double") for p in outputs)])


def _statements(program: Program, inputs: Sequence[Parameter], outputs: Sequence[Parameter]) -> list[str]:
    names = [f"{p.name}[{k}]" for p in inputs for k in range(p.size)]
    text = dict(zip(program.inputs, names, strict=True))
    text.update({node: repr(value) for node, value in program.constants.items()})
    lines = []
    for angles, nodes in program.stages:
        for angle in angles:
            for node in program.sines_and_cosines[angle]:
                function = "sin" if program.nodes[node][0] == t.SIN else "cos"
                text[node] = f"x{node}"
                lines.append(f"    const double x{node} = {function}({text[angle]});")
        for node in nodes:
            lines.append(f"    const double x{node} = {_expression(program, node, text)};")
            text[node] = f"x{node}"
    results = [f"{p.name}[{k}]" for p in outputs for k in range(p.size)]
    for number, guard in enumerate(program.guards, start=1):
        size, limit = f"fabs({text[abs(guard.ref)]})", repr(guard.threshold)
        fine = f"{size} <= {limit}" if guard.small else f"{size} > {limit}"
        lines.append(f"    if (!({fine})) {{ /* {in_comment(guard.label)} */")
        lines += [f"        {result} = NAN;" for result in results]
        lines += [f"        return {number};", "    }"]
    for result, ref in zip(results, program.outputs, strict=True):
        lines.append(f"    {result} = {'-' if ref < 0 else ''}{text[abs(ref)]};")
    used = " ".join(lines)
    lines += [f"    (void){p.name};" for p in inputs if not re.search(rf"\b{p.name}\[", used)]
    return lines


def _expression(program: Program, node: int, text: dict[int, str]) -> str:
    operation, *operands = program.nodes[node]
    left, right = (text.get(operand, "") for operand in operands)
    if operation == t.RECIPROCAL:
        return f"1.0 / {left}"
    if operation == t.SIGN:
        return f"{left} > 0.0 ? 1.0 : {left} < 0.0 ? -1.0 : {left}"
    sign = {t.ADD: "+", t.SUB: "-", t.MUL: "*"}[operation]
    return f"{left} {sign} {right}"
