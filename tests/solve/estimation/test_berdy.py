"""Means equal those of iDynTree's BERDY, whose matrices and solver nobody here wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd

idt = pytest.importorskip("idyntree.swig", reason="iDynTree is not installed: pip install idyntree")

S = fgd.sensors
n = 3
FIRST = "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
SIGMA = {"acceleration": 0.5, "torque": 0.2, "wrench": 2.0, "imu": 0.1}
ENTRIES = 26  # of every link and its joint: A 6, net wrench 6, F 6, tau 1, external wrench 6, a 1


def numbers(values):
    return " ".join(repr(float(value)) for value in values)


def urdf(seed):
    rng = np.random.default_rng(seed)
    text = f"<link name='base'><inertial><mass value='1'/>{FIRST}</inertial></link>"
    for i in range(1, n + 1):
        X = rng.normal(size=(3, 3))
        about_com = X @ X.T * 0.01 + np.eye(3) * 0.02
        entries = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
        inertia = " ".join(f"i{name}='{float(about_com[place])!r}'" for name, place in entries.items())
        mass = f"<mass value='{rng.uniform(0.5, 2)}'/><origin xyz='{numbers(rng.uniform(-0.2, 0.2, 3))}'/>"
        text += f"<link name='link{i}'><inertial>{mass}<inertia {inertia}/></inertial></link>"
        axis = rng.normal(size=3)
        place = f"xyz='{numbers(rng.uniform(-0.3, 0.3, 3))}' rpy='{numbers(rng.uniform(-1, 1, 3))}'"
        text += f"<joint name='joint{i}' type='revolute'><parent link='{f'link{i - 1}' if i > 1 else 'base'}'/>"
        text += f"<child link='link{i}'/><origin {place}/><axis xyz='{numbers(axis / np.linalg.norm(axis))}'/>"
        text += "<limit lower='-3' upper='3' effort='9' velocity='9'/></joint>"
    return f"<robot name='arm'>{text}</robot>"


class Berdy:
    """An arm with an accelerometer in its last link, all torques, accelerations and external wrenches measured."""

    def __init__(self, text, q, v):
        self.loader = idt.ModelLoader()
        assert self.loader.loadModelFromString(text)
        self.model, sensors = self.loader.model(), idt.SensorsList()
        imu = idt.AccelerometerSensor()
        imu.setName("imu")
        imu.setParentLink(f"link{n}")
        imu.setParentLinkIndex(self.model.getLinkIndex(f"link{n}"))
        self.place = idt.Transform(idt.Rotation.RPY(0.3, -0.2, 0.5), idt.Position(0.1, -0.2, 0.05))
        imu.setLinkSensorTransform(self.place)
        sensors.addSensor(imu)
        options = idt.BerdyOptions()
        options.berdyVariant = idt.ORIGINAL_BERDY_FIXED_BASE
        options.includeAllJointTorquesAsSensors = options.includeAllJointAccelerationsAsSensors = True
        options.includeAllNetExternalWrenchesAsSensors = True
        options.includeFixedBaseExternalWrench = False
        self.helper = idt.BerdyHelper()
        assert self.helper.init(self.model, sensors, options)
        self.q, self.v, self.gravity = (
            idt.JointPosDoubleArray(self.model),
            idt.JointDOFsDoubleArray(self.model),
            idt.Vector3(),
        )
        for i in range(n):
            self.q.setVal(i, q[i])
            self.v.setVal(i, v[i])
        for i, g in enumerate((0.0, 0.0, -9.81)):
            self.gravity.setVal(i, g)
        self.base = self.model.getFrameIndex("base")

    @property
    def placement(self):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = self.place.getRotation().toNumPy(), self.place.getPosition().toNumPy()
        return T

    def with_its_matrices(self, y, s):
        """The exact minimum over BERDY's own equations."""
        assert self.helper.updateKinematicsFromFixedBase(self.q, self.v, self.base, self.gravity)
        parts = idt.MatrixDynSize(), idt.VectorDynSize(), idt.MatrixDynSize(), idt.VectorDynSize()
        self.helper.resizeAndZeroBerdyMatrices(*parts)
        assert self.helper.getBerdyMatrices(*parts)
        D, b_D, Y, b_Y = (part.toNumPy() for part in parts)
        start = np.linalg.lstsq(D, -b_D, rcond=None)[0]
        N = np.linalg.svd(D)[2][len(D) :].T
        return start + N @ np.linalg.lstsq(Y @ N / s[:, None], (y - b_Y - Y @ start) / s, rcond=None)[0]

    def with_its_solver(self, y, s, softness):
        """BERDY's own answer, with equations of motion that are soft."""
        solver, unknowns = idt.BerdySparseMAPSolver(self.helper), ENTRIES * n
        assert solver.initialize()
        solver.setDynamicsConstraintsPriorCovariance(_diagonal(np.full(19 * n, softness)))
        solver.setDynamicsRegularizationPriorCovariance(_diagonal(np.full(unknowns, 1e8)))
        solver.setMeasurementsPriorCovariance(_diagonal(s**2))
        zero = idt.VectorDynSize(unknowns)
        zero.zero()
        solver.setDynamicsRegularizationPriorExpectedValue(zero)
        readings = idt.VectorDynSize.FromPython(y)
        solver.updateEstimateInformationFixedBase(self.q, self.v, self.base, self.gravity, readings)
        assert solver.doEstimate()
        found = idt.VectorDynSize(unknowns)
        solver.getLastEstimate(found)
        return found.toNumPy()


def _diagonal(values):
    matrix = idt.SparseMatrixColMajor(len(values), len(values))
    for i, value in enumerate(values):
        matrix.setValue(i, i, float(value))
    return matrix


def swapped(wrench):
    """Force first, as iDynTree has it, to moment first, and back."""
    return np.concatenate([wrench[3:], wrench[:3]])


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_equals_that_of_berdy(seed):
    rng = np.random.default_rng(seed)
    q, v, text = rng.uniform(-1, 1, n), rng.normal(size=n), urdf(seed)
    berdy = Berdy(text, q, v)
    mechanism = fgd.loads(text)
    mechanism = replace(mechanism, frames=(*mechanism.frames, fgd.Frame("imu", f"link{n}", berdy.placement)))
    y = rng.normal(size=3 + 2 * n + 6 * n)
    sizes = [3, n, n, 6 * n]
    s = np.repeat([SIGMA[name] for name in ("imu", "acceleration", "torque", "wrench")], sizes)
    imu, a, tau, wrenches = np.split(y, np.cumsum(sizes)[:-1])
    sensors = [S.Accelerometer("imu", imu, SIGMA["imu"])]
    for i in range(n):
        sensors.append(S.Acceleration(f"joint{i + 1}", a[i], SIGMA["acceleration"]))
        sensors.append(S.Torque(f"joint{i + 1}", tau[i], SIGMA["torque"]))
        sensors.append(S.ExternalWrench(f"link{i + 1}", swapped(wrenches[6 * i : 6 * i + 6]), SIGMA["wrench"]))
    estimate = fgd.estimate(mechanism, q, v, sensors)
    parts = [(f"link{i + 1}", f"joint{i + 1}") for i in range(n)]
    ours = np.concatenate(
        [
            [
                *swapped(estimate.wrenches[joint]),
                *estimate.mean(f"tau[{joint}]"),
                *swapped(estimate.external[link]),
                *estimate.mean(f"a[{joint}]"),
            ]
            for link, joint in parts
        ]
    )
    shown = np.concatenate([np.arange(ENTRIES * i + 12, ENTRIES * i + 26) for i in range(n)])
    exact = berdy.with_its_matrices(y, s)[shown]
    assert np.allclose(ours, exact, rtol=1e-9, atol=1e-9)
    # BERDY's equations are soft, and its normal equations lose their digits where they are made stiff: in between, what
    # is missed is proportional to the softness.
    soft, softer = (berdy.with_its_solver(y, s, softness)[shown] for softness in (1e-6, 2e-6))
    assert np.abs(soft - ours).max() < 1e-2 * np.abs(ours).max()
    assert np.allclose(2 * soft - softer, ours, atol=1e-4 * np.abs(ours).max())
