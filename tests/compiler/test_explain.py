"""What kernels are given and how they answer in words: names, other libraries' arrays, and why an answer is nan."""

import re

import numpy as np
import pytest

import factorgraph_dyn as fgd

ARM = fgd.robots.rrr()
BATCH = np.linspace(0.1, 0.9, 24).reshape(8, 3)


@pytest.fixture(scope="module")
def forward():
    return fgd.compile(ARM, "forward")


@pytest.fixture(scope="module")
def ball():
    """Inverse dynamics of a body on a floating joint with a hinge."""
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, (0.1, 0, 0), np.eye(3)) for name in ("body", "tail"))]
    joints = [fgd.Joint("free", "floating", "base", "body"), fgd.Joint("hinge", "revolute", "body", "tail")]
    return fgd.compile(fgd.Mechanism("kite", links, joints), "inverse")


def test_arguments_have_names(forward):
    expected = forward(BATCH, 2 * BATCH, 3 * BATCH)
    np.testing.assert_array_equal(forward(q=BATCH, tau=3 * BATCH, v=2 * BATCH), expected)
    np.testing.assert_array_equal(forward(BATCH, tau=3 * BATCH, v=2 * BATCH), expected)
    assert forward.check(q=BATCH, v=BATCH, tau=BATCH) == ()
    for named, reason in (({"torque": BATCH}, "none of its arguments"), ({"q": BATCH}, "given twice"), ({}, "2 were")):
        with pytest.raises(fgd.InputError, match=reason):
            forward(BATCH, BATCH, **named)


def test_a_matrix_has_a_name():
    assert "(q) -> M," in repr(fgd.compile(ARM, "mass_matrix"))
    assert "(q) -> M^-1," in repr(fgd.compile(ARM, "inverse_mass_matrix"))


@pytest.mark.parametrize("chunks", [(4, 3), (3, 2)])
def test_dask_arrays_are_computed_in_blocks(forward, chunks):
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(BATCH, chunks=chunks)
    result = forward(lazy, BATCH, lazy)
    assert isinstance(result, da.Array)
    np.testing.assert_allclose(result.compute(scheduler="sync"), forward(BATCH, BATCH, BATCH), rtol=1e-14)
    matrix = fgd.compile(ARM, "mass_matrix")
    assert matrix(lazy).shape == (8, 3, 3)
    with pytest.raises(fgd.InputError, match="do not go together"):
        forward(lazy[:, :2], lazy, lazy)


def test_xarrays_are_told_the_call(forward):
    xr = pytest.importorskip("xarray")
    labelled = xr.DataArray(BATCH, dims=("sample", "joint"))
    with pytest.raises(fgd.InputError) as caught:
        forward(labelled, labelled, BATCH)
    words = re.search(r"input_core_dims=(.*), output_core_dims=(.*?)\),", str(caught.value))
    dims = [eval(word) for word in words.groups()]
    found = xr.apply_ufunc(
        forward.gufunc, labelled, labelled, labelled, input_core_dims=dims[0], output_core_dims=dims[1]
    )
    np.testing.assert_array_equal(found.values, forward(BATCH, BATCH, BATCH))


@pytest.mark.parametrize("columns", [ARM.joint_names, ARM.joint_names[::-1], range(3)])
def test_labels_of_pandas_are_not_put_in_another_order(forward, columns):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(BATCH, columns=list(columns))
    for wrong in ((BATCH, frame, BATCH), (frame, frame, frame), (BATCH[0], frame.iloc[0], BATCH[0])):
        for ask in (forward, forward.check):
            with pytest.raises(fgd.InputError, match=rf"(Frame|Series) of pandas.*to_numpy\(\).*{ARM.joint_names[0]}"):
                ask(*wrong)
    text = pd.DataFrame([["a"] * 3])
    with pytest.raises(fgd.InputError, match="pandas"):
        forward(text, BATCH, BATCH, out=np.empty_like(BATCH))
    np.testing.assert_array_equal(forward(BATCH, frame.to_numpy(), BATCH), forward(BATCH, BATCH, BATCH))


def test_quaternions_are_explained(ball):
    q, v = ball.mechanism.random_state(0)
    states = np.stack([q, q, q, q])
    states[1, 3:7], states[2, 3:7], states[3, 3:7] = 0.0, 2 * q[3:7], (1.0, 0.0, 0.0, 0.0)
    assert np.isnan(ball(states, v, v)).any(axis=1).tolist() == [False, True, False, False]
    none, long, swapped = ball.check(states, v, v)
    assert re.search(r"'free' has length 0 .* at states 1\.$", none)
    assert re.search(r"'free' has length 2; .* at states 2\.$", long)
    assert re.search(r"\(0, 0, 0, 1\).* at states 3\.$", swapped)


def test_degrees_are_doubted(ball):
    mechanism = ball.mechanism
    q, v = mechanism.random_state(0)
    q[-1] = 90.0
    assert "np.deg2rad" in ball.check(q, v, v)[0]
    with pytest.warns(fgd.DoubtfulInputWarning, match=r"'hinge' has turned.*np\.deg2rad"):
        fgd.inverse_dynamics(mechanism, q, v, v)
    q[3:7] = 1.0, 0.0, 0.0, 0.0
    q[-1] = 90.123  # by turning
    with pytest.warns(fgd.DoubtfulInputWarning, match="quaternion of joint 'free'"):
        mechanism.check_q(q)
    assert len(ball.check(q, v, v)) == 1


def test_a_missed_closure_is_told_as_closure_error_does():
    bars = fgd.robots.four_bar()
    kernel = fgd.compile(bars, "forward")
    q, v = bars.random_state(0)
    assert kernel.check(q, v, v) == ()
    for away in (1e-4, 0.1):
        off = q + np.array([away, 0.0, 0.0])
        (sentence,) = kernel.check(off, v, v)
        missed, allowed = re.search(r"by (\S+) m \(allowed (\S+) m\)", sentence).groups()
        assert float(missed) == pytest.approx(bars.closure_error(off), rel=1e-2)
        assert float(allowed) == pytest.approx(bars.closure_tolerance * bars.size, rel=1e-2)
        refused = float(re.search(r"answers up to .* rad and (\S+) m,", sentence).group(1))
        assert np.isnan(kernel(off, v, v)).all() == (bars.closure_error(off) > refused)
    loose = bars.tolerate(1e-2)
    assert fgd.compile(loose, "forward").check(q + np.array([1e-4, 0.0, 0.0]), v, v) == ()


def test_the_guarded_program_is_traced_once(monkeypatch):
    kernel = fgd.compile(fgd.robots.rrr(), "forward")
    traced = []
    retrace = kernel._plan.retrace
    monkeypatch.setitem(vars(kernel._plan), "retrace", lambda guarded: traced.append(guarded) or retrace(guarded))
    states = np.zeros((3, 3))
    assert kernel.check(*states) == kernel.check(*states) == ()
    assert traced == [True]
