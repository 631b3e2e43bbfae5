"""Whatever a public function is given, it answers, or refuses with the package's own error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factorgraph_dyn as fgd

RRR = fgd.robots.rrr()
FOUR_BAR, FIVE_BAR = fgd.robots.four_bar(), fgd.robots.five_bar(5)
Q, V, TAU = np.array([0.3, -0.4, 0.5]), np.array([0.1, 0.2, -0.3]), np.array([1.0, 2.0, 3.0])
KNOWN = fgd.Known.forward(TAU)
STATE = fgd.evaluate_state(RRR, Q, V)
GRAPH = fgd.dynamics_graph(STATE, KNOWN)
ORDERING = fgd.choose_ordering(RRR, GRAPH, "aba")
KERNEL = fgd.compile(RRR, "forward")
Q4, V4 = FOUR_BAR.random_state(0)
CLOSED = fgd.constraints(FOUR_BAR, Q4, V4)
MODEL = '<robot name="r"><link name="a"/></robot>'
MJCF = '<mujoco><worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'

LOG = np.random.default_rng(0).normal(size=(4, 40, 3))  # no motion of its own; what fits it best fits it badly
STATE_WORDS = {"mechanism": RRR, "q": Q, "v": V}
# A call of everything public that answers; what is missing in __all__ is a type of results or errors.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "Contact": {"link": "link3"},
    "Coupling": {"name": "gear", "joint": "a", "source": "b"},
    "Frame": {"name": "tool", "link": "hand"},
    "Visual": {"link": "hand", "shape": "sphere", "size": 0.1},
    "Joint": {"name": "elbow", "kind": "revolute", "parent": "a", "child": "b"},
    "Link": {"name": "arm"},
    "Loop": {"name": "pin", "kind": "revolute", "predecessor": "a", "successor": "b"},
    "Ordering": {"name": "mine", "variables": ["a[joint1]"]},
    "SoftFactors": {"rows": ()},
    "Mechanism": {"name": "arm", "links": RRR.links, "joints": RRR.joints},
    "base_parameters": {"mechanism": RRR},
    "bias": STATE_WORDS,
    "center_of_mass": {"mechanism": RRR, "q": Q},
    "choose_ordering": {"mechanism": RRR, "graph": GRAPH, "ordering": "aba"},
    "compare_orderings": {"mechanism": RRR, "orderings": ["aba"], "repeats": 1, "kernels": False},
    "compile": {"mechanism": RRR},
    "compile_step": {"mechanism": RRR},
    "constraints": STATE_WORDS,
    "derivatives": {**STATE_WORDS, "tau": TAU},
    "diagnose": {"mechanism": RRR, "q": Q},
    "difference": {"mechanism": RRR, "q0": Q, "q1": V},
    "draw": {"mechanism": RRR},
    "dynamics_graph": {"state": STATE, "known": KNOWN},
    "eliminate": {"graph": GRAPH, "ordering": ORDERING},
    "eliminate_structure": {"graph": GRAPH, "order": GRAPH.variables},
    "energy": STATE_WORDS,
    "energy_regressors": STATE_WORDS,
    "estimate": {**STATE_WORDS, "measurements": [fgd.sensors.Torque(name, 0.1, 0.1) for name in RRR.joint_names]},
    "estimate_velocity": {
        "mechanism": RRR,
        "q": Q,
        "measurements": [fgd.sensors.Velocity(name, 0.1, 0.1) for name in RRR.joint_names],
    },
    "evaluate_state": STATE_WORDS,
    "excitation": {"mechanism": RRR, "candidates": 2},
    "identify": {"mechanism": RRR, "q": LOG[0], "v": LOG[1], "a": LOG[2], "tau": LOG[3], "physical": False},
    "forward_dynamics": {**STATE_WORDS, "tau": TAU},
    "hybrid_dynamics": {**STATE_WORDS, "a": {"joint1": 1.0}, "tau": {"joint2": 0.0, "joint3": 0.0}},
    "input_dynamics": STATE_WORDS,
    "input_matrix": {"mechanism": RRR, "q": Q},
    "integrate": STATE_WORDS,
    "inverse_dynamics": {**STATE_WORDS, "a": TAU},
    "inverse_mass_matrix": {"mechanism": RRR, "q": Q},
    "iwim": {"mechanism": RRR, "q": Q},
    "jacobian": {"mechanism": RRR, "q": Q, "frame": "link3"},
    "load": {"path": "model.urdf"},
    "load_actuation": {"path": "model.xml", "mechanism": RRR},
    "loads": {"text": MODEL},
    "log_determinant": {"mechanism": RRR, "q": Q},
    "mass_matrix": {"mechanism": RRR, "q": Q},
    "momentum": STATE_WORDS,
    "ordering_cost": {"mechanism": RRR},
    "pose": {"mechanism": RRR, "q": Q, "frame": "link3"},
    "poses": {"mechanism": RRR, "q": Q},
    "regressor": {**STATE_WORDS, "a": TAU},
    "rotation": {"axis": "x", "angle": 0.1},
    "translation": {"x": 0.1, "y": 0.2, "z": 0.3},
    "rollout": {"mechanism": RRR, "q0": Q, "v0": V, "tau": np.ones((2, 3)), "step": 0.1},
    "search_orderings": {"mechanism": RRR, "rounds": 1, "lanes": 1, "budget": 0.01, "save": False, "progress": False},
    "simulate": {"mechanism": RRR, "q0": Q, "v0": V, "duration": 0.2, "step": 0.1},
    "spatial_operators": {"mechanism": RRR, "q": Q},
    "to_gtsam": {"graph": GRAPH},
    "gtsam_ordering": {"graph": GRAPH, "ordering": fgd.choose_ordering(RRR, GRAPH, "aba")},
    "velocity_graph": {"state": STATE},
    "view": {"mechanism": RRR},
    "write_report": {"mechanism": RRR, "path": "page.html", "orderings": ["aba"], "kernels": False},
}
BUILDERS = {
    "five_bar": {},
    "four_bar_chain": {"n": 1},
    "pendulum": {},
    "random_tree": {"n": 2, "seed": 0},
}


def least_torque(weights=1.0, target={}, limits=None):  # noqa: B006
    """What an objective's words are looked at by: the dynamics."""
    objective = fgd.MinimumTorque(weights, target, limits)
    return fgd.inverse_dynamics(FIVE_BAR, FIVE_BAR.neutral(), np.zeros(5), np.zeros(5), objective=objective)


def least_wrench(weights=1.0):
    objectives = (fgd.MinimumTorque(), fgd.MinimumWrench(weights))
    return fgd.inverse_dynamics(FIVE_BAR, FIVE_BAR.neutral(), np.zeros(5), np.zeros(5), objective=objectives)


METHODS: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "kernel.check": (lambda q: KERNEL.check(q, V, TAU), {"q": Q}),
    "kernel.call": (
        lambda q, out, threads: KERNEL(q, V, TAU, out=out, threads=threads),
        {"q": Q, "out": None, "threads": 1},
    ),
    "kernel.to_c": (KERNEL.to_c, {"path": "kernel.c"}),
    "MinimumTorque": (least_torque, {}),
    "MinimumWrench": (least_wrench, {}),
    "Known": (
        lambda a, tau, a_mask, tau_mask: fgd.dynamics_graph(STATE, fgd.Known(a, tau, a_mask, tau_mask)),
        vars(KNOWN),
    ),
    "external": (lambda wrench: fgd.dynamics_graph(STATE, KNOWN, {"link1": wrench}), {"wrench": np.zeros(6)}),
    "random_state": (RRR.random_state, {}),
    "check_q": (RRR.check_q, {"q": Q}),
    "torque_entries": (RRR.torque_entries, {}),
    "close": (FOUR_BAR.close, {"q": Q4}),
    "complete_velocity": (FOUR_BAR.complete_velocity, {"q": Q4, "v": V4, "given": ["crank_joint"]}),
    "closure_error": (FOUR_BAR.closure_error, {"q": Q4}),
    "v_slice": (RRR.v_slice, {"joint_name": "joint1"}),
    "save": (RRR.save, {"path": "arm.json"}),
    "subset": (RRR.subset, {"tips": ["link2"]}),
    "lock": (RRR.lock, {"joints": ["joint1"]}),
    "change_base": (RRR.change_base, {"link": "link1"}),
    "add_payload": (RRR.add_payload, {"link": "link1", "mass": 1.0}),
    "add_frame": (RRR.add_frame, {"name": "tool", "link": "link3"}),
    "rename": (RRR.rename, {"names": {"link1": "arm"}}),
    "multipliers": (CLOSED.multipliers, {"tau": np.zeros(3)}),
    "accelerations_by_qr": (CLOSED.accelerations_by_qr, {"tau": np.zeros(3)}),
    "accelerations_by_schur": (CLOSED.accelerations_by_schur, {"tau": np.zeros(3)}),
    "complete_acceleration": (CLOSED.complete_acceleration, {"a": np.zeros(3), "given": ["crank_joint"]}),
    "acceleration": (fgd.input_dynamics(RRR, Q, V).acceleration, {"u": TAU}),
    "variable": (GRAPH.variable, {"name": "a[joint1]"}),
}
CHECKED: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    **{name: (getattr(fgd, name), words) for name, words in CALLS.items()},
    **{f"robots.{name}": (getattr(fgd.robots, name), words) for name, words in BUILDERS.items()},
    **METHODS,
}
STRANGE = (
    None, "x", "", 3, -1, 0, 1.5, np.nan, True, [None], ["x"], {"x": 1}, b"x", {}, np.full(3, np.nan),
    np.zeros(3, dtype=complex), np.zeros((2, 2)), np.array(["a", "b", "c"]), [[1.0], [2.0, 3.0]],
    lambda: None, object(), [object()],
)  # fmt: skip
UNCHECKED = ("executor", "watch", "torque", "engine")  # functions of the caller's, whose own errors are his
RESULTS = {
    "Constraints", "Derivatives", "Diagnosis", "Estimate", "Excitation", "Factor", "Identified",
    "InputDynamics", "Kernel", "Known", "LinearGraph",
    "MinimumTorque", "MinimumWrench", "OrderingCost", "SearchResult", "Solution", "SpatialOperators", "StepKernel",
    "Trajectory", "Variable", "VelocityEstimate", "View",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_with_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model.urdf").write_text(MODEL)
    Path("model.xml").write_text(MJCF)


def takes_arguments(name: str, room: Any) -> bool:
    thing = getattr(room, name)
    refused = inspect.isclass(thing) and issubclass(thing, Exception)
    return callable(thing) and not refused and bool(inspect.signature(thing).parameters)


def test_everything_public_is_tried():
    assert {name for name in fgd.__all__ if takes_arguments(name, fgd)} == set(CALLS) | RESULTS
    assert {name for name in fgd.robots.__all__ if takes_arguments(name, fgd.robots)} == set(BUILDERS)


@pytest.mark.parametrize("name", CHECKED)
def test_strange_arguments_are_answered_or_refused(name):
    call, words = CHECKED[name]
    call(**words)
    for parameter, declared in inspect.signature(call).parameters.items():
        if parameter in UNCHECKED or declared.annotation in ("bool", "bool | None"):
            continue
        for value in STRANGE[-2:] if name == "search_orderings" else STRANGE:  # what it takes costs seconds
            try:
                call(**{**words, parameter: value})
            except fgd.FactorGraphDynError:
                continue
            except Exception as error:
                pytest.fail(f"{name}({parameter}={value!r}): {type(error).__name__}: {error}")


@pytest.mark.parametrize("name", [name for name, (_, words) in CHECKED.items() if "mechanism" in words])
@pytest.mark.parametrize("value", [None, "x", 3, object(), fgd.Mechanism], ids=lambda value: type(value).__name__)
def test_what_is_no_mechanism_is_told_how_to_get_one(name, value):
    call, words = CHECKED[name]
    with pytest.raises(fgd.InputError, match=r"it must be a Mechanism, .*fgd\.load"):
        call(**{**words, "mechanism": value})


RAGGED = [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fgd.Joint("a", "revolute", "p", "c", armature=RAGGED), "armature of joint 'a' is .* real numbers"),
        (lambda: fgd.Joint("a", "revolute", "p", "c", effort_limit=RAGGED), "effort_limit of joint 'a' is .* real"),
        (lambda: fgd.Joint("a", "universal", "p", "c", axis=RAGGED), "axis of joint 'a' is .* real numbers"),
        (
            lambda: fgd.sensors.Torque("joint1", RAGGED, 0.1).values(RRR),
            r"value of Torque\[joint1\] is .* real numbers",
        ),
        (lambda: fgd.MinimumWrench({"tip": RAGGED}).factors(FIVE_BAR, GRAPH), r"weight of F\[tip\] is .* real numbers"),
        (lambda: fgd.forward_dynamics(RRR, Q, V, [10**400, 0, 0]), "tau is .* real numbers, 3 of them"),
    ],
)
def test_lists_of_several_lengths_are_refused_in_words(call, words):
    with pytest.raises(fgd.FactorGraphDynError, match=words):
        call()


def test_arrays_of_names_are_names():
    names = ["link2", "link3"]
    one, other = (fgd.input_dynamics(RRR, Q, V, tasks=tasks, contacts=tasks) for tasks in (names, np.array(names)))
    assert one.task_names == other.task_names
    assert (one.task_matrix == other.task_matrix).all()
    assert fgd.input_dynamics(RRR, Q, V, tasks=iter(names)).task_jacobian.shape == (6, 3)


def test_arrays_of_parts_are_read_only():
    link, joint = RRR.links[1], fgd.Joint("a", "revolute", "p", "c", armature=0.1)
    arrays = [link.com, link.inertia, link.spatial_inertia]
    names = ("placement", "axis", "axes", "armature", "armature_matrix", "constant_subspace", "turns", "slides")
    for array in (*arrays, *(getattr(joint, name) for name in names)):
        assert not array.flags.writeable
