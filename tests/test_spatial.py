"""Laws of the spatial algebra, over random and near-singular motions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorgraph_dyn import spatial

ROUNDING = 1e-12

numbers = st.floats(-2, 2).map(lambda x: x if abs(x) > 1e-10 else 0.0)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)
scales = st.sampled_from([1e-12, 1e-9, 1e-7, 1e-4, 1.0])


@st.composite
def twists(draw):
    return np.concatenate([draw(scales) * draw(vectors), draw(vectors)])


@given(twists(), twists(), twists())
def test_adjoint_is_a_homomorphism(x, y, V):
    T, U = spatial.exponential(x), spatial.exponential(y)
    assert np.abs(spatial.adjoint(T @ U) - spatial.adjoint(T) @ spatial.adjoint(U)).max() < ROUNDING * 1e3
    assert np.abs(spatial.inverse_adjoint(T) @ spatial.adjoint(T) - np.eye(6)).max() < ROUNDING * 1e2
    assert np.abs(spatial.inverse_adjoint(T) - spatial.adjoint(spatial.inverse_pose(T))).max() < ROUNDING * 1e2


@given(twists(), twists(), twists())
def test_brackets(V, W, F):
    assert np.abs(spatial.bracket(V, W) + spatial.bracket(W, V)).max() < ROUNDING
    # <ad_V^T F, W> = <F, ad_V W>
    assert abs(spatial.dual_bracket(V, F) @ W - F @ spatial.bracket(V, W)) < ROUNDING * 1e2


@given(twists())
def test_logarithm_inverts_the_exponential(x):
    if np.linalg.norm(x[:3]) > 3.1:  # near half a turn the axis has two signs
        x = x * np.array([0.5] * 3 + [1.0] * 3)
    assert np.abs(spatial.logarithm(spatial.exponential(x)) - x).max() < 1e-8


@given(twists(), st.floats(1e-7, 1e-5))
def test_adjoint_is_generated_by_the_bracket(V, step):
    W = np.arange(6.0)
    moved = spatial.adjoint(spatial.exponential(step * V)) @ W
    assert np.abs((moved - W) / step - spatial.bracket(V, W)).max() < 1e3 * (step + 1e-15 / step)


@given(vectors, st.floats(-10, 10))
def test_rotation_about_an_axis(axis, angle):
    if np.linalg.norm(axis) < 1e-3:
        return
    axis = axis / np.linalg.norm(axis)
    R = spatial.rotation_about(axis, angle)
    assert np.abs(R @ R.T - np.eye(3)).max() < ROUNDING
    assert np.abs(R @ axis - axis).max() < ROUNDING
    assert np.abs(R - spatial.exponential(np.append(angle * axis, np.zeros(3)))[:3, :3]).max() < ROUNDING


@given(st.tuples(numbers, numbers, numbers, numbers).map(np.array))
def test_quaternions(q):
    if np.linalg.norm(q) < 1e-3:
        return
    R = spatial.rotation_of_quaternion(q)
    assert np.abs(R @ R.T - np.eye(3)).max() < ROUNDING
    unit = spatial.quaternion_of_rotation(R)
    assert min(np.abs(unit - q / np.linalg.norm(q)).max(), np.abs(unit + q / np.linalg.norm(q)).max()) < 1e-7
    assert np.abs(spatial.rotation_of_quaternion(unit) - R).max() < ROUNDING


def test_velocities_are_read_off_twists_and_metres_turn_nothing():
    rng = np.random.default_rng(0)
    turn, slides = rng.normal(size=(6, 1)), np.vstack([np.zeros((3, 2)), rng.normal(size=(3, 2))])
    S = np.hstack([slides[:, :1], turn, slides[:, 1:]])
    read = spatial.left_inverse(S)
    np.testing.assert_allclose(read @ S, np.eye(3), atol=1e-14)
    assert (read[1, 3:] == 0.0).all()
