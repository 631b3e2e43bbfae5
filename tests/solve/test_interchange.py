"""Graphs in GTSAM: exact equations and noisy readings there say what they say here, or are refused."""

import gtsam
import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import described_in

S = fgd.sensors
Q, V = np.array([0.3, -0.5, 0.8]), np.array([1.0, 0.5, -0.2])
BY_GTSAM = 1e-7  # of the largest: GTSAM leaves out what readings beside exact rows say next to nothing of


def unknown_graph(mechanism, q, v, sensors):
    """The equations of motion of which nothing but missing motors is known, and readings."""
    state = fgd.evaluate_state(mechanism, q, v)
    nv, free = mechanism.nv, np.zeros(mechanism.nv, dtype=bool)
    for joint in mechanism.movable_joints:
        free[mechanism.v_slices[joint.name]] = not joint.actuated or joint.nv == 6
    known = fgd.Known(np.zeros(nv), np.zeros(nv), np.zeros(nv, dtype=bool), free)
    return fgd.dynamics_graph(state, known).with_factors(sensor.factor(state) for sensor in sensors)


def torques_and_accelerations(mechanism, torque=0.3, acceleration=1.0):
    rotors = [joint for joint in mechanism.movable_joints if joint.nv == 1]
    wanted = [S.Acceleration(joint.name, np.zeros(joint.nv), acceleration) for joint in mechanism.movable_joints]
    return [*(S.Torque(joint.name, 0.0, torque) for joint in rotors), *wanted]


def accelerations(graph, x, keys=None):
    found = [x.at(i if keys is None else keys(v)) for i, v in enumerate(graph.variables) if v.kind == "a"]
    return np.concatenate(found)


@pytest.mark.parametrize("name", ["puma560", "ur5", "panda", "humanoid"])
@pytest.mark.parametrize("ordering", ["colamd", "aba"])
def test_gtsam_finds_the_estimate(name, ordering):
    mechanism = getattr(fgd.robots, name)()
    q, v = mechanism.random_state(1)
    sensors = torques_and_accelerations(mechanism)
    graph = unknown_graph(mechanism, q, v, sensors)
    order = fgd.gtsam_ordering(graph, fgd.choose_ordering(mechanism, graph, ordering))
    wanted = fgd.estimate(mechanism, q, v, sensors).a
    error = np.abs(accelerations(graph, fgd.to_gtsam(graph).optimize(order)) - wanted).max()
    assert error < BY_GTSAM * np.abs(wanted).max()


def test_unit_noise_lets_equations_give_way_and_a_small_deviation_does_not():
    arm = fgd.robots.rrr()
    sensors = torques_and_accelerations(arm)
    graph, wanted = unknown_graph(arm, Q, V, sensors), fgd.estimate(arm, Q, V, sensors).a
    a = {noise: accelerations(graph, fgd.to_gtsam(graph, noise=noise).optimize()) for noise in ("unit", 1, 1e-3)}
    assert np.abs(a["unit"] - wanted).max() > 0.1
    assert np.allclose(a[1], a["unit"], rtol=1e-12)
    assert np.abs(a[1e-3] - wanted).max() < 1e-4


def test_readings_keep_their_noise():
    """Exact, correlated, unknown and many-jointed readings, with the noises that the estimate takes."""
    arm = fgd.robots.rrr()
    covariance = np.array([[0.5, 0.2], [0.2, 0.4]])
    sensors = [
        S.Torque("joint1", 30.0, 0.0),
        S.Accelerometer("link3", (7.0, 8.5), covariance, components=("x", "z")),
        S.ForceTorque("joint2", (0, -10, 0, 0, 0, 9.0), [np.inf, 0.5, np.inf, np.inf, 1.0, 0.7]),
        S.Torque("joint3", 0.0, np.inf),
    ]
    graph, wanted = unknown_graph(arm, Q, V, sensors), fgd.estimate(arm, Q, V, sensors).a
    assert np.allclose(accelerations(graph, fgd.to_gtsam(graph).optimize()), wanted, rtol=1e-9)


def test_two_instants_are_smoothed_in_one_graph():
    arm = fgd.robots.rrr()
    states = [(Q, V), (Q + 0.01 * V, V + 0.02)]
    readings = [
        [S.Torque(n, x, 0.5) for n, x in zip(arm.joint_names, tau, strict=True)]
        for tau in ((30, 15, 3.0), (35, 12, 4.0))
    ]
    graphs = [unknown_graph(arm, *state, sensors) for state, sensors in zip(states, readings, strict=True)]

    def keys(instant):
        return lambda x: gtsam.symbol("xy"[instant], graphs[instant].variables.index(x))

    whole = gtsam.GaussianFactorGraph()
    for instant, graph in enumerate(graphs):
        whole.push_back(fgd.to_gtsam(graph, keys=keys(instant)))
    for name in arm.joint_names:  # accelerations hardly change between the two
        before, after = (keys(i)(graph.variable(f"a[{name}]")) for i, graph in enumerate(graphs))
        whole.add(before, -np.eye(1), after, np.eye(1), np.zeros(1), gtsam.noiseModel.Isotropic.Sigma(1, 0.2))
    x = whole.optimize()
    found = np.concatenate([accelerations(graph, x, keys(instant)) for instant, graph in enumerate(graphs)])

    # The same by normal equations of the six accelerations: tau = M a + h, read with noise.
    M = [fgd.mass_matrix(arm, q) for q, _ in states]
    h = [fgd.bias(arm, q, v) for q, v in states]
    tau = [np.array([sensor.value for sensor in sensors]) for sensors in readings]
    zero, one = np.zeros((3, 3)), np.eye(3)
    A = np.block([[M[0] / 0.5, zero], [zero, M[1] / 0.5], [-one / 0.2, one / 0.2]])
    b = np.concatenate([(tau[0] - h[0]) / 0.5, (tau[1] - h[1]) / 0.5, np.zeros(3)])
    assert np.allclose(found, np.linalg.lstsq(A, b)[0], rtol=1e-9)


@pytest.mark.parametrize(
    ("length", "mass"), [(1.0, 1e12), (1e6, 1e9), (1e6, 1.0), (1e-6, 1.0), (1.0, 1e-12)], ids=lambda unit: f"{unit:g}"
)
def test_equations_that_gtsam_would_lose_are_refused(length, mass):
    """Arms of 1e-12 kg, of micrometres, and of 1000 km; GTSAM would lose equations, or the process would crash."""
    arm = described_in(fgd.robots.puma560(), length, mass)
    q, v = fgd.robots.puma560().random_state(1)
    sensors = torques_and_accelerations(arm, 0.3 / (mass * length**2))
    graph = unknown_graph(arm, q, v, sensors)
    with pytest.raises(fgd.InputError, match=r"GTSAM would misjudge equation \w+\[.*noise='unit'"):
        fgd.to_gtsam(graph)
    assert fgd.to_gtsam(graph, noise="unit").size() == len(graph.factors)


def test_an_equation_of_one_tiny_entry_is_exact_all_the_same():
    """GTSAM by itself takes 1e-10 x = 3e-10 for nothing, and the reading x = 1 for the answer."""
    x = fgd.Variable("x", "one", 1)
    tiny = fgd.Factor("tiny", "one", ((x, np.array([[1e-10]])),), np.array([3e-10]))
    noise = S.Torque("joint1", 0.0, 1.0).noise(fgd.robots.rrr())
    reading = fgd.Factor("reading", "one", ((x, np.eye(1)),), np.ones(1), noise)
    assert fgd.to_gtsam(fgd.LinearGraph((x,), (tiny, reading))).optimize().at(0) == pytest.approx(3.0, rel=1e-12)


def test_a_needle_that_gtsam_would_lose_is_refused():
    """A link that turns about its own axis, where it has next to no inertia."""
    rod = fgd.Link("rod", 1.0, (0, 0, 0.5), np.diag([0.1, 0.1, 1e-11]))
    joint = fgd.Joint("twist", "revolute", "base", "rod", axis=(0, 0, 1))
    needle = fgd.Mechanism("needle", (fgd.Link("base"), rod), (joint,))
    state = fgd.evaluate_state(needle, np.zeros(1), np.zeros(1))
    graph = fgd.dynamics_graph(state, fgd.Known.forward(np.ones(1))).with_factors(
        [S.Acceleration("twist", 0.0, 1.0).factor(state)]
    )
    with pytest.raises(fgd.InputError, match="would misjudge"):
        fgd.to_gtsam(graph)


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "delta", "stewart"])
def test_closed_mechanisms_pass(name):
    mechanism = getattr(fgd.robots, name)()
    for seed in range(3):
        state = fgd.evaluate_state(mechanism, *mechanism.random_state(seed))
        graph = fgd.dynamics_graph(state, fgd.Known.forward(np.zeros(mechanism.nv)))
        assert fgd.to_gtsam(graph).size() == len(graph.factors)


KEYS = {
    "shared": (lambda x: 7, "have the same key 7"),
    "missing": ({"a[joint1]": 0}, r"The key of \S+ is None"),
    "text": (str, "every variable needs an integer"),
    "negative": (lambda x: -1, "from 0 to"),
    "no function": (3, "give a mapping"),
}


@pytest.mark.parametrize("keys", KEYS)
def test_keys_that_do_not_fit_are_refused(keys):
    graph = unknown_graph(fgd.robots.rrr(), Q, V, [])
    with pytest.raises(fgd.InputError, match=KEYS[keys][1]):
        fgd.to_gtsam(graph, keys=KEYS[keys][0])


@pytest.mark.parametrize("noise", ["soft", 0, -1.0, np.nan, True, None])
def test_noises_that_are_none_are_refused(noise):
    with pytest.raises(fgd.InputError, match="noise"):
        fgd.to_gtsam(unknown_graph(fgd.robots.rrr(), Q, V, []), noise=noise)


def test_orderings_have_the_keys_of_their_graph():
    graph = unknown_graph(fgd.robots.rrr(), Q, V, [])
    keys = {variable: 100 + index for index, variable in enumerate(graph.variables)}
    order = fgd.gtsam_ordering(graph, ["a[joint1]", "tau[joint3]"], keys=keys)
    assert [order.at(0), order.at(1)] == [keys[graph.variable("a[joint1]")], keys[graph.variable("tau[joint3]")]]
    order.push_back(0)  # it is the caller's own
    assert fgd.gtsam_ordering(graph, ["a[joint1]", "tau[joint3]"], keys=keys).size() == 2
    with pytest.raises(fgd.OrderingError, match=r"Variable 'a\[joint9\]' is not in the graph"):
        fgd.gtsam_ordering(graph, ["a[joint9]"])


def test_the_package_refuses_to_eliminate_readings_as_if_they_were_exact():
    arm = fgd.robots.rrr()
    graph = unknown_graph(arm, Q, V, torques_and_accelerations(arm))
    fgd.to_gtsam(graph)
    with pytest.raises(fgd.InputError, match=r"equations with noise \(sensor\[Torque\[joint1\]\]"):
        fgd.eliminate(graph, fgd.choose_ordering(arm, graph, "colamd"))
