"""What estimates of motion and of velocities share: means, covariances and innovations by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.posterior import INDEPENDENT, UNTESTED, Evidence, Posterior, joined, posterior
from factorgraph_dyn.equations.quantities import split_name, unique_names
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.motion.closure import rank_tolerance
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.estimation.evidence import evidence
from factorgraph_dyn.solve.estimation.free_form import FreeForm
from factorgraph_dyn.solve.estimation.unseen import undetermined as not_determined
from factorgraph_dyn.solve.rows import QUIET, QUIET_LOOPS, Rows
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.solve.solution import check_residual
from factorgraph_dyn.spatial import Floats

UNDETERMINED = ("error", "infinite")
INTERNAL = (
    "F",
    "lambda",
)  # wrenches that a redundant loop leaves open whatever moves, as ``Solution.not_unique`` tells
Entries = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Estimated:
    """The most probable values of all variables, with their covariance.

    A[link] and V[link] are in the link's own frame, as everywhere (``mechanism.place``); wrenches of joints in link
    frames.

    Attributes:
        state: The mechanism at the state.
        sensors: The measurements.
        residual: Largest misfit of an equation of motion, relative to its terms.
    """

    state: State
    sensors: tuple[Sensor, ...]
    residual: float
    _form: FreeForm
    _posterior: Posterior
    _rows: tuple[slice, ...]  # where those of each sensor are
    _noises: tuple[slice, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The variables, such as ``tau[elbow]``."""
        return tuple(self._form.by_name)

    @cached_property
    def undetermined(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the entries that the measurements leave open, by variable name."""
        found = {name: np.flatnonzero(self._open[self._entries(name)]).tolist() for name in self.names}
        return {name: tuple(entries) for name, entries in found.items() if entries}

    def mean(self, name: str) -> Floats:
        """The most probable value of a variable; nan where the measurements leave it open."""
        entries = self._entries(name)
        return np.where(self._open[entries], np.nan, self._x[entries])

    def covariance(self, *names: str) -> Floats:
        """The joint covariance of variables by name, one after the other.

        Args:
            names: Variables such as ``tau[elbow]`` or ``F[wrist]``; a kind of joints, such as ``tau``, for all of it.
                Where the measurements leave an entry open, its variance is infinite and its covariances are nan.
        """
        entries = np.concatenate([np.zeros(0, dtype=int), *(self._entries(name) for name in names)])
        S, is_open = self._root[entries], self._open[entries]
        covariance = S @ S.T
        covariance[is_open] = covariance[:, is_open] = np.nan
        covariance[is_open, is_open] = np.inf
        return np.asarray(covariance)

    def gain(self, name: str) -> Floats:
        """How the mean of a variable follows the readings of all sensors, one after the other, shape (size, readings).

        Readings that say nothing have none; nan where the measurements leave an entry open.
        """
        entries = self._entries(name)
        rows = self._posterior.gain[:, [row for place in self._rows for row in range(place.start, place.stop)]]
        return np.where(self._open[entries][:, None], np.nan, self._combinations[entries] @ rows)

    @cached_property
    def standard_deviation(self) -> Mapping[str, Floats]:
        """Standard deviations of every variable's entries by name; infinite where the measurements leave them open."""
        sizes = np.where(self._open, np.inf, np.linalg.norm(self._root, axis=1))
        return {name: sizes[self._entries(name)] for name in (*self._wholes, *self.names)}

    @cached_property
    def innovations(self) -> Mapping[str, Floats]:
        """What each sensor reads above what all sensors together make probable, normalised, by sensor.

        Each entry is a standard normal number if all noises are what they are said to be: an outlier shows. Entries
        that no other sensor can test are nan. Sensors of one name are counted, as in ``Torque[elbow] #2``.
        """
        found: dict[str, Floats] = {}
        for label, sensor, place in zip(labels(self.sensors), self.sensors, self._noises, strict=True):
            L = sensor.noise(self.state.mechanism).spoken
            tests = L @ self._posterior.tests[place]
            sizes, own = np.linalg.norm(tests, axis=1), np.linalg.norm(L, axis=1)
            tested = sizes > UNTESTED * own
            residuals = L @ self._posterior.residuals[place]
            found[label] = np.where(tested, residuals / np.where(tested, sizes, 1.0), np.nan)
        return found

    @property
    def chi_square(self) -> float:
        """Sum of squares of all normalised noises; its expectation is ``degrees_of_freedom``."""
        return self._posterior.chi_square

    @property
    def degrees_of_freedom(self) -> int:
        """How many more readings there are than it takes."""
        return int(self._posterior.tests.shape[1])

    @property
    def log_likelihood(self) -> float:
        """Logarithm of the probability density of the noisy readings, priors included, at the most probable unknowns.

        Unknowns are not integrated out, and exact readings have no density: compare estimates with the same sensors.
        """
        return self._posterior.log_likelihood

    @property
    def _wholes(self) -> tuple[str, ...]:
        """Kinds of variables of joints that make a vector."""
        raise NotImplementedError

    def _entries(self, name: str) -> Entries:
        if name in self._wholes:
            mechanism = self.state.mechanism
            parts = [self._entries(f"{name}[{joint}]") for joint in mechanism.joint_names]
            return np.concatenate([np.zeros(0, dtype=int), *parts])
        if not isinstance(name, str) or name not in self._form.by_name:
            check_name(name, [*self._wholes, *self.names], "variable", "the estimate", InputError)
        place = self._form.places[self._form.by_name[name]]
        return np.arange(place.start, place.stop)

    @cached_property
    def _combinations(self) -> Floats:
        return self._posterior.basis.combinations(self._form.unit_rows) * self._form.sizes[:, None]

    @cached_property
    def _x(self) -> Floats:
        return np.asarray(self._form.offset + self._posterior.mean(self._combinations))

    @cached_property
    def _root(self) -> Floats:
        return self._posterior.square_root(self._combinations)

    @cached_property
    def _open(self) -> Mask:
        return self._posterior.basis.open(self._form.unit_rows)


def labels(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    """A name for each sensor; those of one name are counted."""
    return unique_names(sensor.label for sensor in sensors)


def infer(
    kind: type[Estimated], form: FreeForm, sensors: tuple[Sensor, ...], exact: Sequence[Evidence], undetermined: str
) -> Estimated:
    """The estimate from equations and sensors.

    Args:
        kind: Of the estimate.
        form: The unknowns as functions of free ones.
        sensors: The measurements.
        exact: What is known exactly besides.
        undetermined: "error" or "infinite", for what is left open.
    """
    check_choice(undetermined, UNDETERMINED, "undetermined")
    mechanism = form.state.mechanism
    parts = [*exact, *(_said(form, sensor, label) for sensor, label in zip(sensors, labels(sensors), strict=True))]
    rows = _consecutive([len(part.y) for part in parts])[len(exact) :]
    noises = _consecutive([part.L.shape[1] for part in parts])[len(exact) :]
    closed = mechanism.is_closed_kind
    tolerance = rank_tolerance(mechanism) if closed else INDEPENDENT
    found = posterior(joined(parts, form.N.shape[1]), tolerance, tolerance if closed else 0.0)
    estimate = kind(form.state, sensors, np.nan, form, found, rows, noises)
    missing = [name for name in estimate.undetermined if split_name(name)[0] not in INTERNAL]
    if undetermined == "error" and missing:
        raise not_determined(form, list(estimate.undetermined), found.basis.open_directions, tolerance)
    object.__setattr__(estimate, "residual", _residual(estimate, form))
    # Equations and sensors speak of link frames; who reads the answer means links by their names, as in ``Solution``.
    own = form.at_own_places()
    return estimate if own is form else replace(estimate, _form=own)


def _said(form: FreeForm, sensor: Sensor, label: str) -> Evidence:
    """What a sensor says of the free unknowns."""
    return evidence(form, sensor.factor(form.state), label)


def _consecutive(sizes: Sequence[int]) -> tuple[slice, ...]:
    ends = np.cumsum([0, *sizes]).tolist()
    return tuple(slice(*pair) for pair in pairwise(ends))


def _residual(estimate: Estimated, form: FreeForm) -> float:
    """The backward error of the equations of motion, checked."""
    rows = Rows(form.graph, graph_units(form.state.mechanism))
    x = np.concatenate([np.zeros(0), *(estimate._x[form.places[variable]] for variable in form.graph.variables)])
    quiet = QUIET_LOOPS if form.state.mechanism.is_closed_kind else QUIET
    residual, worst = rows.backward_error(rows.missed(x / rows.columns), quiet)
    check_residual(residual, worst, form.graph, Ordering("rnea", ()))
    return residual
