"""Code in names stays out of the code that is generated: names of robots, frames, joints, loops and orderings."""

import ctypes
import subprocess
from dataclasses import replace

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import emit_module

CODE = "int injected = 7;"
FRAMES = (f"*/ {CODE} /*", f"*??/ {CODE}", f"*\\ {CODE}", f"// {CODE} \\", f"名*/ {CODE} #if 0")
FLAGS = ("-std=c99", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-trigraphs", "-shared", "-fPIC")


def compiled(source, c_compiler):
    library = source.with_suffix(".so")
    subprocess.run([c_compiler, *FLAGS, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


def test_names_in_comments_are_no_code(c_compiler, tmp_path):
    arm = fgd.robots.rrr().rename({"joint1": f"j*/ {CODE} /*", "link3": "??/"})
    arm = replace(arm, name=f"*/ {CODE} /*", frames=[fgd.Frame(name, "??/") for name in FRAMES])
    outputs = [f"{kind}[{name}]" for name in (*FRAMES, "??/") for kind in ("V", "T")]
    kernel = fgd.compile(arm, "kinematics", outputs=outputs)
    source, header = kernel.to_c(tmp_path / "it.c")
    library = compiled(source, c_compiler)
    assert library.it
    assert not hasattr(library, "injected")
    assert CODE not in emit_module(kernel.program(), machine.host())
    for text in (source.read_text(), header.read_text()):
        assert text.isascii()
        assert "??" not in text


def test_names_of_orderings_and_loops_are_no_code(c_compiler, tmp_path):
    bars = fgd.robots.five_bar()
    bars = bars.rename({bars.loops[0].name: f"loop*/ {CODE} /*", bars.joint_names[0]: f"j*/ {CODE} /*"})
    kernel = fgd.compile(bars, "forward", ordering="colamd")
    named = replace(kernel.ordering, name=f"x*\\\n/ {CODE} /*??/\n*??/\n/")
    kernel = fgd.compile(bars, "forward", ordering=named)
    library = compiled(kernel.to_c(tmp_path / "bars.c")[0], c_compiler)
    assert library.bars
    assert not hasattr(library, "injected")


@pytest.mark.parametrize("name", ['a"b', "a\\", "a?b", "a\nb", "a\u202eb"])
def test_headers_that_cannot_be_included_are_refused(name, tmp_path):
    kernel = fgd.compile(fgd.robots.pendulum(1), "mass_matrix")
    with pytest.raises(fgd.InputError, match="holds characters that #include reads otherwise"):
        kernel.to_c(tmp_path / f"{name}.c")
    assert not list(tmp_path.iterdir())
