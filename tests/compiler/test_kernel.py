"""Kernels as users call them."""

import ctypes
import gc
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.compiler.kernel import fastcall
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from tests.helpers import relative_error


@pytest.fixture(scope="module")
def mechanism():
    return fgd.robots.rrr()


@pytest.fixture(scope="module")
def kernel(mechanism):
    return compile(mechanism, "forward")


@pytest.fixture
def batch():
    return tuple(np.random.default_rng(0).normal(size=(3, 11, 5, 3)))


def test_batches_broadcast(kernel, batch):
    q, v, tau = batch
    full = kernel(q, v, tau)
    assert full.shape == (11, 5, 3)
    np.testing.assert_array_equal(kernel(q, v[0, 0], tau)[0], kernel(q[0], v[0, 0], tau[0]))
    np.testing.assert_array_equal(kernel(q[:, :1], v, tau)[:, 0], full[:, 0])
    assert kernel(q[:0], v[:0], tau[:0]).shape == (0, 5, 3)


def test_one_state_equals_the_batch_bit_for_bit(kernel, batch):
    q, v, tau = batch
    full = kernel(q, v, tau)
    for index in np.ndindex(11, 5):
        np.testing.assert_array_equal(kernel(q[index], v[index], tau[index]), full[index])


def test_what_the_fast_way_does_not_take(kernel, batch):
    q, v, tau = (array[0, 0].copy() for array in batch)
    expected = kernel(q, v, tau)
    wide = np.zeros(6)
    wide[::2] = q
    for other in (q.tolist(), tuple(q), wide[::2], q.astype(">f8"), np.ma.masked_array(q), q[None][0]):
        np.testing.assert_array_equal(kernel(other, v, tau), expected)
    np.testing.assert_allclose(kernel(q.astype(np.float32), v, tau), expected, rtol=1e-4)
    assert kernel([0, 1, 0], [0, 0, 0], [1, 0, 0]).dtype == np.float64
    assert kernel(np.array([True, False, True]), v, tau).shape == (3,)


def test_out_and_threads(kernel, batch):
    q, v, tau = batch
    expected = kernel(q, v, tau)
    out = np.empty_like(expected)
    assert kernel(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, expected)
    for threads in (0, 2, 3, 100):
        np.testing.assert_array_equal(kernel(q, v, tau, threads=threads), expected)
        np.testing.assert_array_equal(kernel(q[:, :1], v[0, 0], tau, threads=threads), kernel(q[:, :1], v[0, 0], tau))
    target = np.empty_like(expected)
    assert kernel(q, v, tau, out=target, threads=2) is target
    np.testing.assert_array_equal(target, expected)
    q_copy = q.copy()
    np.testing.assert_array_equal(kernel(q_copy, v, tau, out=q_copy), expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(), (7,), (2, 7)])
def test_results_may_not_lie_on_each_other(mechanism, shape, threads):
    hybrid = compile(mechanism, "hybrid", known_accelerations=["joint1"])
    arrays = [np.random.default_rng(k).normal(size=(*shape, 3)) for k in range(4)]
    place = np.empty((*shape, 6))
    for out in ((place[..., :3],) * 2, (place[..., :3], place[..., 2:5])):
        with pytest.raises(fgd.InputError, match=r"Arrays 0 and 1 of out.*have memory in common"):
            hybrid(*arrays, out=out, threads=threads)
    apart = (place[..., :3], place[..., 3:])  # side by side in every row
    hybrid(*arrays, out=apart, threads=threads)
    for found, expected in zip(apart, hybrid(*arrays), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_results_of_fewer_digits_are_rounded(kernel, batch):
    single = np.empty(batch[0].shape, np.float32)
    for threads in (1, 2):
        assert kernel(*batch, out=single, threads=threads) is single
        np.testing.assert_array_equal(single, kernel(*batch).astype(np.float32))
    with pytest.raises(fgd.InputError, match="same_kind"):
        kernel(*batch, out=np.empty(batch[0].shape, int))


def test_numbers_that_fit_no_word_are_refused(kernel, batch):
    for threads in (-1, 2**40, 2**64 + 1):
        with pytest.raises(fgd.InputError, match=f"threads is {threads}; it must be a whole number, 0 to 1024"):
            kernel(*batch, threads=threads)


def test_bad_arguments(kernel, batch):
    q, v, tau = batch
    for wrong, message in (
        ((q, v), r"takes 3 arrays, \(q, v, tau\); 2 were given"),
        ((q[..., :2], v, tau), r"q has shape \(11, 5, 2\); its last axis must have length 3"),
        ((q, v, 1.0), "tau has shape"),
        ((q, v, tau + 1j), "tau has type complex128"),
        ((q, v, np.array(["a", "b", "c"])), "tau has type"),
        ((q[:4], v, tau), "do not go together"),
    ):
        with pytest.raises(fgd.InputError, match=message):
            kernel(*wrong)
    with pytest.raises(fgd.InputError, match="do not go together"):
        kernel(q, v, tau, out=np.empty((2, 2)))
    with pytest.raises(fgd.InputError, match="threads is -1"):
        kernel(q, v, tau, threads=-1)


@pytest.mark.parametrize("threads", [1, 2])
def test_bad_arguments_are_told_in_words_whatever_the_threads(kernel, batch, threads):
    q, v, tau = batch
    for wrong, message in (([[1, 2], [3]], r"q is \[\[1, 2\], \[3\]\]"), ([10**400] * 3, "q has type object")):
        with pytest.raises(fgd.InputError, match=message):
            kernel(wrong, v, tau, threads=threads)
        with pytest.raises(fgd.InputError, match=message):
            kernel.check(wrong, v, tau)
    for out in ([[0.0]], (None, None), (np.empty(q.shape), None), ("q",), np.empty(2)):
        with pytest.raises(fgd.InputError, match="out has to fit"):
            kernel(q, v, tau, out=out, threads=threads)
    np.testing.assert_array_equal(kernel(q, v, tau, out=(None,), threads=threads), kernel(q, v, tau))
    np.testing.assert_array_equal(kernel(q, v, tau, threads=np.int64(threads)), kernel(q, v, tau))


def test_masked_numbers_are_refused(kernel, batch):
    q, v, tau = batch
    masked = np.ma.masked_array(q, mask=q == q[1, 2, 0])
    for wrong in (masked, list(masked), masked[1, 2]):
        for ask in (kernel, kernel.check):
            with pytest.raises(fgd.InputError, match=r"v has masked entries.*filled"):
                ask(q, wrong, tau)
    np.testing.assert_array_equal(kernel(np.ma.masked_array(q, mask=False), v, tau), kernel(q, v, tau))


class Unknown:
    """An array of a library that has no part in kernels."""

    def __array_ufunc__(self, *args, **words):
        return NotImplemented


def test_arrays_of_unknown_libraries_are_refused(kernel, batch):
    with pytest.raises(fgd.InputError, match=r"arrays of tests are not taken.*NumPy's"):
        kernel(Unknown(), *batch[1:])


def test_what_a_kernel_says_of_itself(kernel):
    assert kernel.signature == "(3),(3),(3)->(3)"
    assert kernel.ordering.name == "crba"  # the cheapest
    assert "forward of 'rrr'" in repr(kernel)
    assert kernel.gufunc.nin == 3
    assert kernel.outputs == ("a",)


def test_pickling(kernel, batch):
    q, v, tau = batch
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(q, v, tau), kernel(q, v, tau))


def test_states_that_are_not_numbers(kernel, batch):
    q, v, tau = (array.copy() for array in batch)
    assert kernel.check(q, v, tau) == ()
    q[3, 2, 1] = np.nan
    found = kernel(q, v, tau)
    assert np.isnan(found[3, 2]).all()
    assert np.isfinite(np.delete(found.reshape(-1, 3), 17, axis=0)).all()
    messages = kernel.check(q, v, tau)
    assert messages == ("q is not finite at states (3, 2).",)
    assert np.isnan(kernel(q[3, 2], v[3, 2], tau[3, 2])).all()


def test_kernels_are_freed(mechanism):
    kernel = compile(mechanism, "inverse")
    function, gufunc = kernel.__call__, kernel.gufunc
    x = np.ones(3)
    expected = kernel(x, x, x)
    alive = weakref.ref(kernel)
    del kernel
    gc.collect()
    np.testing.assert_array_equal(function(x, x, x), expected)
    np.testing.assert_array_equal(gufunc(x, x, x), expected)
    del function
    gc.collect()
    assert alive() is None
    np.testing.assert_array_equal(gufunc(x, x, x), expected)


@pytest.fixture
def guarded_fallback(monkeypatch):
    """Kernels whose fast way refuses to hand anything on."""

    def refuse(*args, **keywords):
        raise AssertionError("not the fast way")

    monkeypatch.setattr(Kernel, "call", refuse)


PROBLEMS = {"forward": 3, "hybrid": 4, "iwim": 1}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("batch_shape", [(), (1,), (7,), (256,)])
def test_the_fast_way_takes_states_and_small_batches(mechanism, guarded_fallback, problem, batch_shape):
    """One state or some, with results made or given, come out as from the gufunc, bit by bit."""
    kernel = compile(mechanism, problem)
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=(*batch_shape, 3)) for _ in range(PROBLEMS[problem])]
    expected = kernel.gufunc(*arrays)
    found = kernel(*arrays)
    np.testing.assert_array_equal(found, expected)
    out = tuple(np.zeros_like(one) for one in found) if isinstance(found, tuple) else np.zeros_like(found)
    count = sys.getrefcount(out)
    written = kernel(*arrays, out=out)
    assert written is out
    assert sys.getrefcount(out) == count + 1
    np.testing.assert_array_equal(out, expected)
    named = dict(zip(kernel.arguments, arrays, strict=True))
    np.testing.assert_array_equal(kernel(**named), expected)
    first, *rest = named.items()
    assert kernel(first[1], **dict(rest), out=out) is out


def test_what_the_fast_way_hands_on(kernel):
    """Shapes, types and places that it does not take are computed or refused as ever."""
    rng = np.random.default_rng(6)
    q, v, tau = rng.normal(size=(3, 9, 3))
    expected = kernel.gufunc(q, v, tau)
    for arrays in ((q, v[0], tau), (q.tolist(), v, tau), (np.asfortranarray(q), v, tau), (q[None], v, tau)):
        assert kernel(*arrays).shape[-2:] == (9, 3)
    np.testing.assert_array_equal(kernel(np.asfortranarray(q), v, tau), expected)
    np.testing.assert_array_equal(kernel(q, v, tau, threads=2), expected)
    np.testing.assert_array_equal(kernel(q[:0], v[:0], tau[:0]), expected[:0])
    strided = np.zeros((9, 6))[:, ::2]
    np.testing.assert_array_equal(kernel(q, v, tau, out=strided), expected)
    np.testing.assert_array_equal(kernel(q, v, tau, out=(np.zeros((9, 3)),)), expected)
    room = np.concatenate([q.ravel(), np.zeros(3)])
    shifted = room[3:].reshape(9, 3)
    np.testing.assert_array_equal(kernel(room[:-3].reshape(9, 3), v, tau, out=shifted), expected)
    fixed = np.zeros((9, 3))
    fixed.flags.writeable = False
    for wrong in (np.zeros((9, 2)), np.zeros((8, 3)), fixed, "text"):
        with pytest.raises(fgd.InputError):
            kernel(q, v, tau, out=wrong)
    with pytest.raises(fgd.InputError):
        kernel(q, v[:4], tau)
    with pytest.raises(fgd.InputError, match="'into' is none of its arguments"):
        kernel(q, v, tau, into=fixed)


def test_without_the_fast_way(mechanism, batch, monkeypatch):
    monkeypatch.setattr(fastcall, "layout_is_known", lambda: False)
    kernel = compile(mechanism, "forward")
    q, v, tau = (array[0, 0] for array in batch)
    assert relative_error(kernel(q, v, tau), fgd.forward_dynamics(mechanism, q, v, tau).a) < 1e-12


def test_many_threads_at_once(kernel, batch):
    q, v, tau = batch
    expected = kernel(q, v, tau)
    failures = []

    def work():
        for _ in range(50):
            if not np.array_equal(kernel(q, v, tau), expected):
                failures.append(1)
            if not np.array_equal(kernel(q[1, 1], v[1, 1], tau[1, 1]), expected[1, 1]):
                failures.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_dask(kernel, batch):
    da = pytest.importorskip("dask.array")
    arrays = [da.from_array(array, chunks=(4, 5, 3)) for array in batch]
    expected = kernel(*batch)
    blocks = da.map_blocks(kernel, *arrays, dtype=float)
    lifted = da.apply_gufunc(kernel, kernel.signature, *arrays, output_dtypes=float)
    for lazy in (blocks, lifted):
        np.testing.assert_array_equal(lazy.compute(scheduler="threads"), expected)


def test_xarray(kernel, batch):
    xr = pytest.importorskip("xarray")
    arrays = [xr.DataArray(array, dims=("time", "run", "joint")) for array in batch]
    found = xr.apply_ufunc(kernel, *arrays, input_core_dims=[["joint"]] * 3, output_core_dims=[["joint"]])
    assert found.dims == ("time", "run", "joint")
    np.testing.assert_array_equal(found.values, kernel(*batch))


C_KERNELS = {
    "forward": {},
    "hybrid": {"known_accelerations": ["joint1", "joint2"]},
    "mass_matrix": {},
    "inverse": {"parameters": "all", "outputs": ["tau", "dtau/dq", "dtau/dparameters"]},
    "kinematics": {"outputs": ["T[link6]", "dT[link6]/dq", "kinetic_energy"]},
}


@pytest.mark.parametrize("problem", C_KERNELS)
def test_c_source(problem, c_compiler, tmp_path):
    mechanism, words = fgd.robots.puma560(), C_KERNELS[problem]
    kernel = compile(mechanism, problem, **words)
    source, header = kernel.to_c(tmp_path / "robot dynamics.c", name="puma_move")
    assert header.name == "robot dynamics.h"
    library = tmp_path / "move.so"
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run([c_compiler, *flags, "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).puma_move
    batch_function = ctypes.CDLL(str(library)).puma_move_batch
    batch_function.restype = ctypes.c_size_t
    rng = np.random.default_rng(1)
    shapes = {"parameters": mechanism.parameters().shape}
    arguments = [rng.normal(size=(20, *shapes.get(name, (6,)))) for name in kernel.arguments]
    results = kernel(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    found = [np.empty_like(result) for result in results]

    def pointers(arrays):
        return [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]

    assert batch_function(ctypes.c_size_t(20), *pointers([*arguments, *found])) == 0
    for one, other in zip(found, results, strict=True):
        assert relative_error(one, other) < 1e-14
    assert function(*pointers([array[3] for array in arguments]), *pointers([x[3:] for x in found])) == 0
    with pytest.raises(fgd.InputError, match=r"ends in \.c"):
        kernel.to_c(tmp_path / "step.txt")


@pytest.mark.parametrize("name", ["k", "q", "double", "class", "sin", "states"])
def test_c_source_compiles_whatever_it_is_called(name, c_compiler, tmp_path):
    arm = fgd.robots.pendulum(2).rename({"link1": "link 1", "link2": "link_1"})
    kernel = compile(arm, "kinematics", outputs=["T[link 1]", "T[link_1]", "dT[link_1]/dv"])
    source, _ = kernel.to_c(tmp_path / f"{name}.c")
    flags = ["-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run([c_compiler, *flags, "-o", tmp_path / "it.so", source, "-lm"], check=True)
    function, (q, v) = getattr(ctypes.CDLL(str(tmp_path / "it.so")), f"{name}_"), arm.random_state(0)
    results = kernel(q, v)
    found = [np.empty_like(result) for result in results]
    assert function(*(array.ctypes.data_as(ctypes.c_void_p) for array in (q, v, *found))) == 0
    for one, other in zip(found, results, strict=True):
        assert relative_error(one, other) < 1e-14


def test_check_tells_states_that_are_not_closed():
    mechanism = fgd.robots.five_bar()
    q, v = mechanism.random_state(0)
    kernel = fgd.compile(mechanism, "forward")
    assert kernel.check(q, v, np.zeros(mechanism.nv)) == ()
    (sentence,) = kernel.check(q + 0.1, v, np.zeros(mechanism.nv))
    assert "off the closure" in sentence
    assert "mechanism.close" in sentence


def test_kernels_without_guards_are_cheaper_and_answer_everything():
    linkage = fgd.robots.five_bar()
    guarded, bare = (fgd.compile(linkage, "inverse", guards=guards) for guards in (True, False))
    assert bare.operations.total < 0.6 * guarded.operations.total
    q, v = linkage.random_state(0)
    a = fgd.forward_dynamics(linkage, q, v, [1.0, 0.0, -2.0, 0.0]).a
    np.testing.assert_allclose(bare(q, v, a), guarded(q, v, a), rtol=1e-12)
    far = q + 0.5
    assert np.isnan(guarded(far, v, a)).all()
    assert np.isfinite(bare(far, v, a)).all()
    assert bare.check(far, v, a) == guarded.check(far, v, a) != ()
    assert not bare.program().guards
    assert pickle.loads(pickle.dumps(bare)).operations == bare.operations
    with pytest.raises(fgd.InputError, match="guards"):
        fgd.compile(linkage, "inverse", guards="no")


def test_angles_without_digits_have_no_sine():
    arm = fgd.robots.rrr()
    kernel = fgd.compile(arm, "inverse")
    assert np.isnan(kernel([0.0, 2e9, 0.0], np.zeros(3), np.zeros(3))).any()
    (told,) = kernel.check([0.0, 2e9, 0.0], np.zeros(3), np.zeros(3))
    assert "larger than" in told
