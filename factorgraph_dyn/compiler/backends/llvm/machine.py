"""The machine kernels run on, and the way from IR text to callable code.

Takes IR text; gives object code, and from object code the addresses of its functions. A kernel just
compiled and one read from the cache are linked the same way. The work runs once a kernel.

LLVM is at work in one thread at a time, and in none while the process is forked, so that a child begins with locks that
are free and tables that are whole. A fork waits until the module that is being compiled or linked is done.

``FACTORGRAPH_DYN_INSTRUCTIONS`` keeps kernels to narrower instructions than the processor has: "avx512", "avx2" or
"sse2" are the most that is used. Kernels of each are kept apart in the cache.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import count
from threading import RLock
from typing import Any

import llvmlite.binding as llvm

from factorgraph_dyn.errors import InputError

ENVIRONMENT_VARIABLE = "FACTORGRAPH_DYN_INSTRUCTIONS"
INLINE = "alwaysinline"  # behind a call: the function stands there instead
_WIDTHS = {"avx512": 8, "avx2": 4, "sse2": 2}
_LEFT_OUT = {4: "-avx512f", 2: "-avx"}  # with all that builds on it; the last word about a feature counts
_LINKED_TOGETHER = 16  # libraries a linker, which takes some 150 kB and keeps 8 kB of each that has been freed
_numbers = count()
_at_work = RLock()
_unused: list[Any] = []  # libraries that nobody has any more

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_at_work.release)


@contextmanager
def _llvm_alone() -> Iterator[None]:
    """Time for one thread to use LLVM in."""
    with _at_work:
        _free_unused()
        yield


def _free_unused() -> None:
    while _unused:
        _unused.pop().close()


def _let_go(library: Any) -> None:
    """Free a library now, or, where LLVM is at work, the next time: who collects garbage may hold other locks."""
    _unused.append(library)
    if _at_work.acquire(blocking=False):
        try:
            _free_unused()
        finally:
            _at_work.release()


@dataclass(frozen=True)
class Machine:
    """A processor as code generation sees it.

    Attributes:
        name: LLVM's name of the processor.
        features: Its features, as LLVM writes them.
        triple: LLVM's name of the platform.
        width: Doubles a vector register holds.
        fma: Whether it has fused multiply-add.
    """

    name: str
    features: str
    triple: str
    width: int
    fma: bool

    @property
    def is_x86(self) -> bool:
        """Whether it is an x86-64 processor."""
        return self.triple.startswith("x86_64")

    def narrowed(self, width: int) -> Machine:
        """The same machine without the instructions for vectors of more than so many doubles."""
        if width >= self.width or not self.is_x86:
            return self
        return replace(self, features=f"{self.features},{_LEFT_OUT[width]}", width=width, fma=self.fma and width > 2)


def host() -> Machine:
    """The machine this process runs on, with the instructions that it may use.

    Raises:
        InputError: The environment asks for instructions that there are not.
    """
    asked = os.environ.get(ENVIRONMENT_VARIABLE, "").strip().lower()
    if asked not in ("", "native", *_WIDTHS):
        raise InputError(f"{ENVIRONMENT_VARIABLE} is {asked!r}. Instructions: native (all), {', '.join(_WIDTHS)}.")
    return whole_host().narrowed(_WIDTHS.get(asked, max(_WIDTHS.values())))


@cache
def whole_host() -> Machine:
    """The machine this process runs on, with all that it has."""
    with _llvm_alone():
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        found, name, triple = llvm.get_host_cpu_features(), llvm.get_host_cpu_name(), llvm.get_process_triple()
    arm = triple.startswith(("aarch64", "arm64"))
    width = 8 if found.get("avx512f") else 4 if found.get("avx2") else 2
    fma = bool(found.get("fma")) or arm
    return Machine(name, found.flatten(), triple, width, fma)


@cache
def _target_machine(machine: Machine, level: int) -> Any:
    target = llvm.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.name, features=machine.features, opt=level, reloc="pic", codemodel="small"
    )


def object_code(text: str, machine: Machine, *, level: int = 2) -> bytes:
    """Machine code of IR text, as an object file.

    Args:
        text: LLVM IR.
        machine: What to generate code for.
        level: LLVM's effort, 0 to 3.
    """
    with _llvm_alone():
        return _emitted(text, machine, level)


def _emitted(text: str, machine: Machine, level: int) -> bytes:
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = machine.triple
    target = _target_machine(machine, level)
    module.data_layout = str(target.target_data)
    if INLINE in text:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    return bytes(target.emit_object(module))


@dataclass(frozen=True, eq=False)
class LoadedCode:
    """Linked code; its addresses are valid as long as this lives.

    Attributes:
        addresses: Of the exported functions.
    """

    addresses: dict[str, int]


@lru_cache(maxsize=1)
def _linker(machine: Machine, generation: int) -> Any:
    """A linker, which lives as long as one of its libraries: what it keeps of each of them goes with the last one."""
    # JITLink keeps the parts of an object side by side; the older linker lets them lie gigabytes apart in processes
    # that use much memory, where its addresses overflow and end the process. Of Windows' objects JITLink knows less.
    return llvm.create_lljit_compiler(_target_machine(machine, 2), use_jit_link="windows" not in machine.triple)


def load(code: bytes, functions: Sequence[str], machine: Machine) -> LoadedCode:
    """Object code linked into this process."""
    builder = llvm.JITLibraryBuilder().add_object_img(code)
    for name in functions:
        builder = builder.export_symbol(name)
    with _llvm_alone():
        number = next(_numbers)
        library = builder.link(_linker(machine, number // _LINKED_TOGETHER), f"factorgraph_dyn_{number}")
    loaded = LoadedCode({name: library[name] for name in functions})
    weakref.finalize(loaded, _let_go, library).atexit = False  # other threads may still be in it
    return loaded


def load_or_none(code: bytes, functions: Sequence[str], machine: Machine) -> LoadedCode | None:
    """Object code linked into this process; None where it was stored by a linker that this one does not understand."""
    try:
        return load(code, functions, machine)
    except RuntimeError:
        return None
