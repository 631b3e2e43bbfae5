#!/usr/bin/env python3
"""Measure this package and its peers side by side, in one run on one core, and print the tables as Markdown.

    python scripts/benchmark.py [kernels] [derivatives] [parameters] [steps] [rollouts] [compile] [graph] [chains]
                                [estimators] [identification]

All by default. Needs the extra ``dev`` (Pinocchio and MuJoCo); nothing else should run on the machine meanwhile. With
gcc and CasADi (``pip install casadi``), kernels are compared with Pinocchio's algorithms as CasADi writes them in C,
too, which takes some minutes the first time; with MJX and
frax (``pip install mujoco-mjx frax``) also with these. ``FACTORGRAPH_DYN_INSTRUCTIONS=avx2`` measures kernels as
machines without AVX-512 have them.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: one core
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import ctypes
import sys
import time
from collections.abc import Callable
from functools import partial

import gtsam
import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.benchmark import benchmark_kernels, machine_name
from factorgraph_dyn.compare.timing import best_of
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.kernel.cache import ENVIRONMENT_VARIABLE
from factorgraph_dyn.compiler.program import Operations
from factorgraph_dyn.compiler.proof.proof import Trial
from factorgraph_dyn.equations.problem import Problem, make_problem

ARMS_AND_HUMANOID = ("puma560", "ur5", "panda", "humanoid")


def kernels() -> None:
    """Kernels beside Pinocchio, its algorithms as CasADi's C, MuJoCo and JAX; and the share of what pipes allow."""
    hertz = clock()
    rows = []
    for name in ARMS_AND_HUMANOID:
        mechanism = fgd.robots.BUILT_IN[name]()
        for row in benchmark_kernels(mechanism, casadi=True, jax=True):
            bound = 1e9 * bound_cycles(fgd.compile(mechanism, row["problem"]).operations) / hertz
            row["share of bound"] = f"{100 * bound / row['ns a state']:.0f} %"
            rows.append(row)
    instructions = {8: "AVX-512", 4: "AVX2"}.get(machine.host().width, "vectors of two")
    markdown(f"Kernels, {instructions}, batches of 4096 ({1e-9 * hertz:.2f} GHz)", rows)


def bound_cycles(operations: Operations) -> float:
    """Cycles a state: two 256-bit pipes for multiplications, fused or not, and 10 a vector for a sine and cosine.

    Zen 4 has as many for AVX-512; processors with two 512-bit pipes have twice as many.
    """
    return (operations.multiplications / 2 + 10 * operations.sincos) / 4


def clock() -> float:
    """Additions that depend on each other which the core does in a second: its clock, Hz; nan on other machines."""
    host = machine.host()
    if not host.is_x86:
        return float("nan")
    text = r"spin:\0A1:\0A" + r"addq $1, %rax\0A" * 32 + r"decq %rdi\0Ajnz 1b\0Aretq"
    ir = f'module asm "{text}"\ndeclare dso_local void @spin(i64)\n'
    ir += "define void @go(i64 %n) {\n  call void @spin(i64 %n)\n  ret void\n}\n"
    code = machine.load(machine.object_code(ir, host), ("go",), host)
    go = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.addresses["go"])
    return 32 * 3000 / best_of(lambda: go(3000), 500)


def derivatives() -> None:
    """Values with derivatives by q and v beside Pinocchio's, which gives those by a or tau with them."""
    import pinocchio as pin

    from factorgraph_dyn.compare.peers.pinocchio import PinocchioEngine

    rows = []
    for name in ARMS_AND_HUMANOID:
        mechanism = fgd.robots.BUILT_IN[name]()
        peer = PinocchioEngine.build(mechanism)
        q, v, x = many_states(mechanism)
        theirs = {"inverse": pin.computeRNEADerivatives, "forward": pin.computeABADerivatives}
        for problem, outputs in (("inverse", ("tau", "dtau/dq", "dtau/dv")), ("forward", ("a", "da/dq", "da/dv"))):
            with fresh_cache():
                cold = seconds(lambda m=mechanism, p=problem, o=outputs: fgd.compile(m, p, outputs=o))
                kernel = fgd.compile(mechanism, problem, outputs=outputs)
            out = tuple(np.empty_like(array) for array in kernel(q, v, x))
            batch = best_of(lambda k=kernel, s=(q, v, x), o=out: k(*s, out=o), 30) / len(q)
            one = best_of(lambda k=kernel, s=(q[0], v[0], x[0]): k(*s), 2000)
            words = (peer.model, peer.data, q[0], v[0], x[0])
            call = best_of(lambda f=theirs[problem], w=words: f(*w), 2000)
            row = {"robot": name, "problem": problem, "operations": kernel.operations.total, "compile s": cold}
            row |= {"ns a state": 1e9 * batch, "Pinocchio call ns": 1e9 * call, "batch ratio": call / batch}
            rows.append(row | {"single call ns": 1e9 * one, "single ratio": call / one})
    markdown("Value, d/dq and d/dv, batches of 4096", rows)


def parameters() -> None:
    """Kernels whose inertial parameters are all free beside constant ones: shared by a batch, and each state's own."""
    rows = []
    for name in ARMS_AND_HUMANOID:
        mechanism = fgd.robots.BUILT_IN[name]()
        states = many_states(mechanism)
        shared = mechanism.parameters()
        own = np.tile(shared, (len(states[0]), 1, 1))
        for problem in ("inverse", "forward"):
            constant, free = (fgd.compile(mechanism, problem, parameters=words) for words in (None, "all"))
            row = {"robot": name, "problem": problem, "operations": constant.operations.total}
            row |= {"free": free.operations.total, "ratio": free.operations.total / row["operations"]}
            out = np.empty_like(states[2])
            calls = {
                "ns a state": (constant, states),
                "shared": (free, (*states, shared)),
                "own": (free, (*states, own)),
            }
            taken = {word: best_of(lambda k=k, s=s, o=out: k(*s, out=o), 200) for word, (k, s) in calls.items()}
            row |= {word: 1e9 * spent / len(out) for word, spent in taken.items()}
            rows.append(row | {f"{word} ratio": taken[word] / taken["ns a state"] for word in ("shared", "own")})
    markdown("All inertial parameters free, batches of 4096", rows)


def steps() -> None:
    """Integration steps with A and B beside the Pinocchio calls that they need, without the algebra around them."""
    import pinocchio as pin

    from factorgraph_dyn.compare.peers.pinocchio import PinocchioEngine

    rows = []
    for name in ARMS_AND_HUMANOID:
        mechanism = fgd.robots.BUILT_IN[name]()
        q, v, tau = many_states(mechanism)
        peer = PinocchioEngine.build(mechanism)
        words = (peer.model, peer.data, q[0], v[0], tau[0])
        call = best_of(lambda w=words: pin.computeABADerivatives(*w), 2000)
        for integrator, stages in (("semi_implicit", 1), ("rk4", 4)):
            step = fgd.compile_step(mechanism, integrator)
            batch = best_of(lambda f=step, s=(q, v, tau, 1e-3): f(*s), 30) / len(q)
            one = best_of(lambda f=step, s=(q[0], v[0], tau[0], 1e-3): f(*s), 2000)
            row = {"robot": name, "integrator": integrator, "ns a state": 1e9 * batch, "single call ns": 1e9 * one}
            row |= {"Pinocchio calls": stages, "their ns": 1e9 * stages * call}
            rows.append(row | {"batch ratio": stages * call / batch, "single ratio": stages * call / one})
    markdown("One integration step with its derivatives, batches of 4096", rows)


def many_states(mechanism: fgd.Mechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A batch of 4096 states q and v, and accelerations or torques."""
    rng = np.random.default_rng(0)
    starts = [mechanism.random_state(rng) for _ in range(8)]
    q, v = (np.tile([start[k] for start in starts], (512, 1)) for k in (0, 1))
    return q, v, rng.normal(size=v.shape)


def rollouts() -> None:
    """Batches of motions beside the forward kernel called as often, and MuJoCo's own rollouts on one thread."""
    rows = []
    count, steps, step = 10_000, 50, 1e-3
    mechanisms = [fgd.robots.BUILT_IN[name]() for name in ("puma560", "panda", "humanoid", "five_bar")]
    mechanisms[2:2] = [fgd.robots.pendulum(7), fgd.robots.random_tree(7, seed=0, kinds=("revolute",))]
    for mechanism in mechanisms:
        rng, kernel = np.random.default_rng(0), fgd.compile(mechanism)
        starts = [mechanism.random_state(rng) for _ in range(8)]
        q, v = (np.tile([start[k] for start in starts], (count // 8, 1)) for k in (0, 1))
        tau = rng.normal(size=(count, steps, mechanism.nv))
        states = [np.repeat(x, steps, axis=0) for x in (q, v)] + [tau.reshape(-1, mechanism.nv)]
        accelerations = np.empty_like(states[2])  # written to before, as what rollouts write to
        forward = best_of(lambda k=kernel, x=states, out=accelerations: k(*x, out=out), 10)
        row: dict[str, object] = {"robot": mechanism.name, "rollouts": count, "steps": steps}
        row["forward kernel ns a step"] = 1e9 * forward / (count * steps)
        for integrator in ("rk4", "semi_implicit"):
            words = (mechanism, q, v, tau, step)
            out = fgd.rollout(*words, integrator=integrator)
            taken = best_of(lambda w=words, i=integrator, out=out: fgd.rollout(*w, integrator=i, out=out), 10)
            row[f"{integrator} ns a step"] = 1e9 * taken / (count * steps)
            row[f"{integrator} / kernel"] = taken / forward
        last = [x[:256, -1] for x in out]  # of semi_implicit, the integrator that MuJoCo has
        row |= mujoco_rollout(mechanism, [x[:256] for x in (q, v, tau)], step, last)
        if "MuJoCo ns a step" in row:
            row["MuJoCo / semi_implicit"] = row["MuJoCo ns a step"] / row["semi_implicit ns a step"]
        rows.append(row)
    markdown("Rollouts, one thread; MuJoCo's loops are soft", rows)


def mujoco_rollout(
    mechanism: fgd.Mechanism, start: list[np.ndarray], step: float, last: list[np.ndarray]
) -> dict[str, object]:
    """MuJoCo's semi-implicit Euler on one thread: time of a step, and how far its last states are from ours."""
    try:
        from mujoco import MjData, mjtIntegrator, mjtState, rollout

        from factorgraph_dyn.compare.peers.mujoco import MujocoEngine

        peer = MujocoEngine.build(mechanism, soft_loops=True)
    except (ImportError, fgd.FactorGraphDynError) as error:
        return {"MuJoCo": f"skipped: {error}"}
    q, v, tau = start
    peer.model.opt.timestep = step
    peer.model.opt.integrator = mjtIntegrator.mjINT_EULER
    words = {
        "initial_state": np.hstack([np.zeros((len(q), 1)), q, v]),
        "control": tau,
        "control_spec": mjtState.mjSTATE_QFRC_APPLIED.value,
    }
    data = MjData(peer.model)
    states, _ = rollout.rollout(peer.model, data, **words)
    taken = best_of(lambda: rollout.rollout(peer.model, data, **words), 5)
    row: dict[str, object] = {"MuJoCo ns a step": 1e9 * taken / (tau.shape[0] * tau.shape[1])}
    if not mechanism.loops and mechanism.nq == mechanism.nv:  # else coordinates differ, or the loops are soft
        row["difference of last states"] = float(np.abs(states[:, -1, 1:] - np.hstack(last)).max())
    return row


def estimators() -> None:
    """Compiled estimators of the humanoid: torques of all joints, an IMU in the torso and a wrench at each foot."""
    S, robot = fgd.sensors, fgd.robots.humanoid()
    sensors = [S.Torque(name, sigma=0.1) for name in robot.joint_names[1:]]
    sensors += [S.Accelerometer("torso", sigma=0.05), S.AngularAcceleration("torso", sigma=0.5)]
    sensors += [S.ExternalWrench(foot, sigma=5.0) for foot in ("left_foot", "right_foot")]
    rows = []
    q, v, _ = many_states(robot)
    values = np.random.default_rng(0).normal(size=(len(q), sum(sensor.size(robot) for sensor in sensors)))
    for outputs in (None, ("a", "W[left_foot]", "gain[W[left_foot]]")):
        kernel = fgd.compile(robot, "estimate", measurements=sensors, outputs=outputs)
        taken = best_of(lambda k=kernel: k(q, v, values), 30) / len(q)
        row = {"robot": robot.name, "outputs": ", ".join(kernel.outputs), "operations": kernel.operations.total}
        rows.append(row | {"ns a state": 1e9 * taken, "accuracy": kernel.accuracy})
    markdown("Estimators, batches of 4096", rows)


def identification() -> None:
    """A million samples of the PUMA 560 with noise: seconds on one core."""
    robot, rng = fgd.robots.puma560(), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 1_000_000, robot.nv))
    tau = fgd.compile(robot, "inverse")(q, v, a) + 0.1 * rng.normal(size=v.shape)
    rows = []
    for samples in (4_000, 1_000_000):
        log = [x[:samples] for x in (q, v, a, tau)]
        fgd.identify(robot, *(x[:1000] for x in log))  # compiles
        before, used = time.perf_counter(), time.process_time()
        found = fgd.identify(robot, *log)
        taken, used = time.perf_counter() - before, time.process_time() - used
        row = {"robot": robot.name, "samples": samples, "base parameters": len(found.base)}
        rows.append(row | {"s": taken, "s of processor": used})
    markdown("Identification", rows)


def compile_times() -> None:
    """CPU time to compile with an empty cache, the share that the proof takes of it, and to load from a full one."""
    rows = []
    mechanisms = [fgd.robots.BUILT_IN[name]() for name in ARMS_AND_HUMANOID]
    mechanisms += [fgd.robots.random_tree(50, seed=0, kinds=("revolute",)), fgd.robots.pendulum(200)]
    mechanisms += [fgd.robots.five_bar(), fgd.robots.stewart()]
    fgd.compile(fgd.robots.rrr())  # imports what compiling needs
    for mechanism in mechanisms:
        for problem in ("inverse", "forward"):
            with fresh_cache():
                cold = seconds(lambda m=mechanism, p=problem: fgd.compile(m, p), time.process_time)
                warm = best_of(lambda m=mechanism, p=problem: fgd.compile(m, p), 5)
                kernel = fgd.compile(mechanism, problem)
            prove = partial(_prove, mechanism, make_problem(mechanism, problem), kernel)
            proof = min(seconds(prove, time.process_time) for _ in range(3))
            row = {"robot": mechanism.name, "problem": problem, "compile s": cold, "proof %": 100 * proof / cold}
            rows.append({**row, "cached load ms": 1e3 * warm})
    markdown("Compilation", rows)


def _prove(mechanism: fgd.Mechanism, problem: Problem, kernel: fgd.Kernel) -> None:
    Trial(mechanism, problem).judge(kernel.gufunc)


class fresh_cache:  # noqa: N801 - used like a function
    """An empty kernel cache while it lasts."""

    def __enter__(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.before = os.environ.get(ENVIRONMENT_VARIABLE)
        os.environ[ENVIRONMENT_VARIABLE] = self.folder.name

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()
        if self.before is None:
            del os.environ[ENVIRONMENT_VARIABLE]
        else:
            os.environ[ENVIRONMENT_VARIABLE] = self.before


def graph_calls() -> None:
    """What a call through GTSAM costs beside the elimination inside it, on factors as fresh as the call's."""
    rows = []
    for name in ("puma560", "humanoid"):
        mechanism = fgd.robots.BUILT_IN[name]()
        q, v = mechanism.random_state(0)
        tau = np.ones(mechanism.nv)
        graph = fgd.forward_dynamics(mechanism, q, v, tau).graph
        call = best_of(lambda m=mechanism, x=(q, v, tau): fgd.forward_dynamics(m, *x), 500)
        row = {"robot": name, "call us": 1e6 * call}
        for label, function in (("Cholesky", ()), ("QR", (gtsam.EliminateQR,))):
            inside = min(fresh_elimination(mechanism, graph, *function) for _ in range(500))
            row[f"elimination by {label} us"] = 1e6 * inside
        rows.append(row)
    markdown("forward_dynamics through GTSAM (aba)", rows)


def fresh_elimination(mechanism: fgd.Mechanism, graph: fgd.LinearGraph, *function: object) -> float:
    """Time of one sequential elimination of new factors, s; by Cholesky where no other function is given."""
    order = fgd.gtsam_ordering(graph, fgd.choose_ordering(mechanism, graph, "aba"))
    factors = fgd.to_gtsam(graph, noise="unit")
    return seconds(lambda: factors.eliminateSequential(order, *function))


def chains() -> None:
    """Time of forward dynamics through GTSAM against the length of a chain, open and closed."""
    rows = []
    for n in (25, 50, 100, 200, 400, 500):
        mechanism = fgd.robots.pendulum(n)
        q, v = 0.1 * np.random.default_rng(0).normal(size=(2, n))
        call = best_of(lambda m=mechanism, x=(q, v, 0 * v): fgd.forward_dynamics(m, *x), 5)
        rows.append({"mechanism": "pendulum", "links": n, "ms": 1e3 * call, "ms a link": 1e3 * call / n})
    for n in (25, 50, 100, 200):
        mechanism = fgd.robots.four_bar_chain(n)
        q, v = mechanism.neutral(), np.zeros(mechanism.nv)
        call = best_of(lambda m=mechanism, x=(q, v, v): fgd.forward_dynamics(m, *x, ordering="colamd"), 3)
        rows.append({"mechanism": "four-bar chain", "links": n, "ms": 1e3 * call, "ms a link": 1e3 * call / n})
    markdown("Growth with the length of a chain", rows)


def seconds(work: Callable[[], object], now: Callable[[], float] = time.perf_counter) -> float:
    """How long one run takes by a clock, s."""
    begin = now()
    work()
    return now() - begin


def markdown(title: str, rows: list[dict[str, object]]) -> None:
    """Print rows as a Markdown table."""
    print(f"\n### {title}\n")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        cells = (row.get(column, "") for column in columns)
        print(
            "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |",
            flush=True,
        )


SECTIONS = {
    "kernels": kernels,
    "derivatives": derivatives,
    "parameters": parameters,
    "steps": steps,
    "rollouts": rollouts,
    "compile": compile_times,
    "graph": graph_calls,
    "chains": chains,
    "estimators": estimators,
    "identification": identification,
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SECTIONS)
    if unknown := [name for name in chosen if name not in SECTIONS]:
        sys.exit(f"There is no section {unknown[0]!r}. Sections: {', '.join(SECTIONS)}.")
    print(f"One core of {machine_name()}, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    for name in chosen:
        SECTIONS[name]()
