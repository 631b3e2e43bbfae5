"""What compiling takes is given back: mechanisms made on the way, and machine code that nobody has any more."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.kernel import cache, gufunc


@pytest.fixture
def libraries(monkeypatch):
    """Every library that is linked, and every linker, as long as it lives."""
    seen = weakref.WeakSet()
    for name in ("ResourceTracker", "LLJIT"):
        kind = getattr(machine.llvm.orcjit, name)

        def made(self, *words, kind=kind, begin=kind.__init__):
            begin(self, *words)
            seen.add(self)

        monkeypatch.setattr(kind, "__init__", made)
    monkeypatch.setattr(machine.llvm.ffi.ObjectRef, "__eq__", lambda self, other: self is other)  # to be in a set
    monkeypatch.setattr(machine.llvm.ffi.ObjectRef, "__hash__", object.__hash__)
    return seen


def use(mechanism):
    """Kernels of several kinds, called in several ways."""
    x = np.zeros(mechanism.nv)
    for problem in ("forward", "inverse"):
        kernel = fgd.compile(mechanism, problem)
        kernel(x, x, x)
        kernel(*np.zeros((3, 9, mechanism.nv)), threads=2)
    fgd.compile_step(mechanism)(x, x, x, 0.01)
    fgd.rollout(mechanism, x, x, np.zeros((2, mechanism.nv)), 0.01)


def alive(kind):
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


@pytest.mark.parametrize("kept", ["off", "kernels"])
def test_nothing_is_left_of_a_mechanism_that_was_compiled(kept, libraries, monkeypatch, tmp_path):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, kept if kept == "off" else str(tmp_path / kept))
    use(fgd.robots.rrr())
    counts = []
    for _ in range(3):
        use(fgd.robots.rrr())
        counts.append([alive(kind) for kind in (fgd.Joint, fgd.Mechanism, machine.LoadedCode)])
    assert counts[0] == counts[1] == counts[2]
    assert not gufunc._alive
    trackers = [each for each in libraries if isinstance(each, machine.llvm.orcjit.ResourceTracker)]
    assert all(each.closed for each in trackers)


def test_kernels_of_one_mechanism_leave_nothing_with_it(monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "off")
    arm, counts = fgd.robots.rrr(), []
    for _ in range(4):
        fgd.compile(arm, "forward", ordering="aba")
        counts.append([alive(kind) for kind in (fgd.Joint, fgd.Mechanism, machine.LoadedCode)])
    assert counts[1] == counts[2] == counts[3]


def test_linkers_go_with_their_libraries(libraries):
    arm = fgd.robots.rrr()
    for _ in range(3 * machine._LINKED_TOGETHER):
        fgd.compile(arm, "inverse", ordering="rnea")
    gc.collect()
    linkers = [each for each in libraries if isinstance(each, machine.llvm.orcjit.LLJIT)]
    assert len(linkers) == 1


def test_code_stays_as_long_as_somebody_has_it():
    """Also where its linker has been replaced, and where only NumPy's function is left."""
    x = np.linspace(0.1, 0.7, 3)
    kernel = fgd.compile(replace(fgd.robots.rrr(), name="stays"), "inverse", ordering="rnea")
    expected, function, ufunc = kernel(x, x, x), kernel.__call__, kernel.gufunc
    del kernel
    for _ in range(2 * machine._LINKED_TOGETHER):
        fgd.compile(fgd.robots.rrr(), "inverse", ordering="rnea")
    gc.collect()
    np.testing.assert_array_equal(function(x, x, x), expected)
    del function
    gc.collect()
    np.testing.assert_array_equal(ufunc(x, x, x), expected)
