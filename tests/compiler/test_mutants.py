"""Programs with one error each, a wrong sign or a constant off by a millionth: no proof lets them through."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.estimator.trial import EstimateTrial
from factorgraph_dyn.compiler.proof.proof import ALLOWED, Trial
from factorgraph_dyn.compiler.rollout import compiled as rollouts
from factorgraph_dyn.compiler.step import compiled as steps
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.errors import CompileError

compile_module = sys.modules["factorgraph_dyn.compiler.kernel.compile"]
SMALL_ERROR = 1e-6
MUTANTS = 8
ARM, BAR = fgd.robots.rrr(), fgd.robots.four_bar()
SENSORS = [
    *(fgd.sensors.Torque(name, sigma=0.1) for name in ARM.joint_names),
    fgd.sensors.Acceleration("joint1", sigma=0.2),
]
FORWARD, INVERSE = ("a", "da/dq", "da/dv", "da/dtau"), ("tau", "dtau/dq", "dtau/dv", "dtau/da")
MASSES = ("com", "momentum", "kinetic_energy", "potential_energy")
KERNELS = {
    "forward": (ARM, "forward", {}),
    "forward of a loop": (BAR, "forward", {}),
    "inverse": (ARM, "inverse", {}),
    "inverse of a loop": (BAR, "inverse", {}),
    "hybrid": (ARM, "hybrid", {"known_accelerations": ["joint2"]}),
    "forward derivatives": (ARM, "forward", {"outputs": FORWARD}),
    "inverse derivatives": (ARM, "inverse", {"outputs": INVERSE}),
    "derivatives of a loop": (BAR, "forward", {"outputs": FORWARD}),
    "parameters": (ARM, "forward", {"parameters": "all"}),
    "parameters of a loop": (BAR, "inverse", {"parameters": "all"}),
    "effects": (ARM, "forward", {"parameters": ["gravity", "friction[joint1]", "armature[joint2]"]}),
    "kinematics": (ARM, "kinematics", {"outputs": ["T[link3]", "J[link3]", "V[link3]", *MASSES]}),
    "speeds": (ARM, "kinematics", {"outputs": ["dkinetic_regressor/dq", "dkinetic_regressor/dv"]}),
    "links": (ARM, "forward", {"outputs": ["A[link3]", "F[joint1]", "dF[joint1]/dq", "dF[joint1]/dv"]}),
    "regressor": (ARM, "regressor", {"outputs": ["regressor", "kinetic_regressor", "potential_regressor"]}),
    "iwim": (fgd.robots.five_bar(), "iwim", {}),
    "mass matrix": (ARM, "mass_matrix", {}),
    "inverse mass matrix": (ARM, "inverse_mass_matrix", {}),
    "estimate": (ARM, "estimate", {"measurements": SENSORS, "outputs": ["a", "tau", "gain[a]"]}),
}


def mutants(program, seed=0, count=MUTANTS):
    """The program with a sum that is a difference, or a constant that is another, in turn."""
    rng = np.random.default_rng(seed)
    sums = [node for _, nodes in program.stages for node in nodes if program.nodes[node][0] in (t.ADD, t.SUB)]
    read = {operand for node in program.nodes for operand in program.operands(node)}
    constants = [node for node in program.constants if node in read]
    for k in range(count):
        if k % 2 and constants:
            node = int(rng.choice(constants))
            other = {**program.constants, node: program.constants[node] * (1 + SMALL_ERROR)}
            yield replace(program, constants=other)
        else:
            node = int(rng.choice(sums))
            operation, left, right = program.nodes[node]
            other = (t.SUB if operation == t.ADD else t.ADD, left, right)
            yield replace(program, nodes={**program.nodes, node: other})


def run(program, *arguments):
    """The program's results by NumPy."""
    states = len(arguments[0])
    inputs = np.concatenate([argument.reshape(states, -1) for argument in arguments], axis=1).T
    outputs = np.array([np.broadcast_to(value, states) for value in Interpreter(program, list(inputs)).outputs()]).T
    ends = np.cumsum([result.size for result in program.results])[:-1]
    parts = np.split(outputs, ends, axis=1)
    return tuple(part.reshape(states, *result.shape) for part, result in zip(parts, program.results, strict=True))


@pytest.mark.parametrize("name", KERNELS)
def test_mutants_of_kernels_do_not_stand_their_proof(name):
    mechanism, problem, words = KERNELS[name]
    program = fgd.compile(mechanism, problem, **words).program()
    trial = (EstimateTrial if problem == "estimate" else Trial)(mechanism, make_problem(mechanism, problem, **words))
    true = []

    def kept(*arguments):
        true[:] = run(program, *arguments)
        return tuple(true)

    assert trial.judge(kept).holds
    refused = 0
    for mutant in mutants(program):
        found = []

        def wrong(*arguments, mutant=mutant, found=found):
            found[:] = run(mutant, *arguments)
            return tuple(found)

        if trial.judge(wrong).holds:  # what guards alone depend on changes no answer
            errors = [np.nanmax(np.abs(one - two), initial=0.0) for one, two in zip(found, true, strict=True)]
            assert max(errors) <= ALLOWED * max(np.nanmax(np.abs(two), initial=0.0) for two in true)
        else:
            refused += 1
    assert refused > MUTANTS / 3


@pytest.mark.parametrize(("integrator", "which"), [("semi_implicit", "forward"), ("rk4", "advances")])
def test_mutants_of_rollouts_do_not_stand_their_proof(monkeypatch, integrator, which):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    honest = rollouts.step_programs(fgd.compile(ARM), integrator, make_problem(ARM, "forward"))
    program = honest.forward if which == "forward" else honest.advances[0]
    for k, mutant in enumerate(mutants(program, seed=2, count=4)):
        other = replace(honest, **{which: mutant if which == "forward" else (mutant,)})
        monkeypatch.setattr(rollouts, "step_programs", lambda *_, other=other: other)
        with pytest.raises(CompileError, match="does not do what its kernel does"):
            rollouts.compiled_rollout(replace(ARM, name=f"mutant{k}"), integrator)


def test_mutants_of_steps_are_not_given_away(monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    arm = fgd.robots.pendulum(2)
    ordering = fgd.compile(arm, "forward", outputs=steps.OUTPUTS).ordering
    for mutant in mutants(steps.step_program(arm, "semi_implicit", ordering), count=4):
        monkeypatch.setattr(steps, "step_program", lambda *_, mutant=mutant: mutant)
        assert fgd.compile_step(arm).operations is None  # the chain rule on plain arrays takes its place


@pytest.mark.parametrize("name", ["parameters", "inverse derivatives"])
def test_kernels_of_mutants_are_refused_by_compile(monkeypatch, name):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    mechanism, problem, words = KERNELS[name]
    honest = compile_module._trace

    def wrong(*words):
        traced = honest(*words)
        return replace(traced, program=list(mutants(traced.program, count=2))[1])

    monkeypatch.setattr(compile_module, "_trace", wrong)
    with pytest.raises(CompileError, match="does not satisfy the mechanism's own equations"):
        fgd.compile(mechanism, problem, ordering="aba" if problem == "forward" else "rnea", **words)
