"""What measurements leave open: variables by name, and sensors that would tell of them.

Takes an estimate that is not determined and sensors that could be had; gives an error in words. Sensors are taken one
after the other as long as each tells something of what is still open. Runs only on failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.sensors import (
    Acceleration,
    Accelerometer,
    AngularAcceleration,
    ExternalWrench,
    ForceTorque,
    Gyroscope,
    PointVelocity,
    Sensor,
    Torque,
    Velocity,
)
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.solve.estimation.evidence import evidence
from factorgraph_dyn.solve.estimation.free_form import FreeForm
from factorgraph_dyn.spatial import Floats

FIRST = ("tau", "W", "v", "a", "lambda", "F", "V", "A", "disturbance")  # kinds as a message lists them
MOST_NAMES = 12  # of open variables that a message lists
FREE = 6  # freedoms of a link that nothing holds


def undetermined(form: FreeForm, names: Sequence[str], directions: Floats, tolerance: float) -> SingularSystemError:
    """The error for variables that the measurements leave open.

    Args:
        form: The unknowns as functions of free ones.
        names: The open variables.
        directions: What is open of the free unknowns, as columns.
        tolerance: Part of a row that counts as nothing.
    """
    helpful = would_tell(form, directions, tolerance)
    names = sorted(names, key=lambda name: FIRST.index(split_name(name)[0]))
    listed = ", ".join(names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    advice = f"These sensors would tell: {', '.join(helpful)}. " if helpful else ""
    prior = ", give wrenches from outside a prior," if any(name.startswith("W[") for name in names) else ""
    return SingularSystemError(
        f"The measurements do not determine {listed}{more} ({directions.shape[1]} freedom(s) are open). {advice}"
        f'Add some{prior} or take undetermined="infinite" for an answer with infinite variances there.',
        variables=tuple(names),
        sensors=helpful,
    )


def would_tell(form: FreeForm, directions: Floats, tolerance: float) -> tuple[str, ...]:
    """Sensors that together tell all, or as much as any do."""
    found = []
    for sensor in _sensors(form):
        if not directions.shape[1]:
            break
        nv = sensor.size(form.state.mechanism)
        rows = evidence(form, sensor.equation(form.state, np.zeros(nv)), sensor.label).K
        lengths = np.linalg.norm(rows, axis=1)[:, None]
        said = rows / np.where(lengths > 0, lengths, 1.0) @ directions
        _, sizes, V = np.linalg.svd(said)
        rank = int((sizes > tolerance).sum())
        if rank:
            found.append(sensor.label)
            directions = directions @ V[rank:].T
    return tuple(found)


def _sensors(form: FreeForm) -> Iterable[Sensor]:
    """Sensors that could be had, the commonest first."""
    mechanism = form.state.mechanism
    kinds = {variable.kind for variable in form.variables}
    if "v" in kinds:
        yield from _of_motion(mechanism, Velocity, (Gyroscope, PointVelocity))
        return
    yield from (Torque(joint.name) for joint in mechanism.movable_joints if joint.actuated)
    yield from _of_motion(mechanism, Acceleration, (Accelerometer, AngularAcceleration))
    yield from (ForceTorque(loop.name) for loop in mechanism.loops)
    yield from (ForceTorque(joint.name) for joint in mechanism.joints)
    yield from (ExternalWrench(variable.owner) for variable in form.variables if variable.kind == "W")


def _of_motion(
    mechanism: Mechanism, in_joint: Callable[[str], Sensor], in_link: Sequence[Callable[[str], Sensor]]
) -> Iterable[Sensor]:
    """A sensor for each joint; those that leave a link free have none, and the link has."""
    for joint in mechanism.movable_joints:
        yield from [kind(joint.child) for kind in in_link] if joint.nv == FREE else [in_joint(joint.name)]
