"""What a log tells of a mechanism: parameters, how sure they are, and how well they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import InputError, ModelError
from factorgraph_dyn.identification.columns import Columns
from factorgraph_dyn.identification.fit import BaseParameter
from factorgraph_dyn.identification.freedoms import Freedoms
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.notebook import Rows, html_table
from factorgraph_dyn.spatial import Floats

INSIGNIFICANT = 5.0  # standard deviations: losses that are less below zero are zero


@dataclass(frozen=True, eq=False)
class JointFit:
    """How well torques of a freedom are explained.

    Attributes:
        joint: Name of the joint, with the number of its freedom where it has several.
        samples: Measured torques.
        rms: Root mean square of what is left, N m or N.
        relative: The same beside the root mean square of the torques.
        r2: Share of the torques' variance that is explained.
        noise: Estimated standard deviation of the torques' noise, by which they were weighted.
    """

    joint: str
    samples: int
    rms: float
    relative: float
    r2: float
    noise: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Identified:
    """The parameters that a log tells.

    Attributes:
        prior_mechanism: The mechanism as it was known.
        links: Links whose parameters were unknown.
        parameters: Those, a row [m, mc_x, mc_y, mc_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz] a link, shape (links, 10).
        covariance: Of ``parameters.ravel()``, shape (10 links, 10 links). Without a prior the variance is infinite, and
            covariances nan, where the data leave a parameter open. Where bodies had to be made possible it is that of
            the answer before.
        standard_deviation: Square roots of its diagonal, shape (links, 10).
        armature, damping, friction: Of all freedoms, those known before included, shape (nv,).
        deviations: Standard deviations of these by kind, zero where they were known, shape (nv,) each.
        base: Combinations of unknowns that the data determine, from the data alone.
        structural: How many combinations torques of the mechanism can depend on.
        determined: For each unknown: "alone", "combined" (only together with others) or "not at all".
        fit: How well the torques of each freedom are explained.
        samples: Number of samples.
        condition: Condition number of the regressor with columns of length one.
        adjusted: Whether what fits best had to be changed so that bodies can have it; what the data leave open changes
            most.

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> q, v, a = np.random.default_rng(0).normal(size=(3, 50, 1))
        >>> found = fgd.identify(arm, q, v, a, fgd.compile(arm, "inverse")(q, v, a), effects=())
        >>> found.parameters.shape, found.covariance.shape
        ((1, 10), (10, 10))
    """

    prior_mechanism: Mechanism
    links: tuple[str, ...]
    parameters: Floats
    covariance: Floats
    armature: Floats
    damping: Floats
    friction: Floats
    deviations: Mapping[str, Floats]
    base: tuple[BaseParameter, ...]
    structural: int
    determined: Mapping[str, str]
    fit: tuple[JointFit, ...]
    samples: int
    condition: float
    adjusted: bool
    _columns: Columns
    _freedoms: Freedoms

    @cached_property
    def standard_deviation(self) -> Floats:
        """Standard deviations of the parameters, shape (links, 10)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)).reshape(-1, COUNT))

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism with what was identified.

        Raises:
            InputError: Parameters that no part can have, without ``physical=True``.
        """
        try:
            changed = self.prior_mechanism.with_parameters(self._parameters, self.links)
            joints = []
            for joint in changed.joints:
                place = changed.v_slices.get(joint.name, slice(0, 0))
                effects: Any = {kind: self._loss(kind)[place] for kind in self.deviations} if joint.nv else {}
                joints.append(replace(joint, **effects))
            return replace(changed, joints=tuple(joints))
        except (ModelError, InputError) as error:
            raise InputError(
                f"No mechanism has the parameters that fit best: {error} Identify with physical=True."
            ) from None

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of unknowns that no torque of the log depends on: they are what they were before, unless `adjusted`."""
        return tuple(name for name, how in self.determined.items() if how == "not at all")

    def compare(self, samples: Samples) -> tuple[Floats, Floats]:
        """Measured and predicted torques of the freedoms in ``fit``, shape (samples, freedoms) each."""
        effects = [getattr(self, effect.kind)[effect.entry] for effect in self._columns.effects]
        p, known = np.concatenate([self.parameters.ravel(), effects]), self._columns.known(samples)
        X, measured = self._freedoms.project(samples.q, self._columns.regressor(samples), samples.tau)
        _, given = self._freedoms.project(samples.q, np.zeros((*known.shape, 0)), known)
        shown = [self._freedoms.names.index(one.joint) for one in self.fit]
        return measured[:, shown], (X @ p + given)[:, shown]

    def plot(self, path: str | Path | None = None) -> Any:
        """Parameters with error bars, before and after, as a Matplotlib figure; with a path, written to a file, too."""
        # Pictures are drawn further on, and looked up when one is asked for.
        return import_module("factorgraph_dyn.show.plots.identified").plot_identified(self, path)

    def rows(self) -> Rows:
        """The unknowns with their values before and after, a row each."""
        before = self._columns.values
        effects = [(getattr(self, e.kind)[e.entry], self.deviations[e.kind][e.entry]) for e in self._columns.effects]
        after = [*zip(self.parameters.ravel(), self.standard_deviation.ravel(), strict=True), *effects]
        return Rows(
            {
                "name": name,
                "before": float(old),
                "value": float(value),
                "standard deviation": float(deviation),
                "determined": self.determined[name],
            }
            for name, old, (value, deviation) in zip(self._columns.names, before, after, strict=True)
        )

    def base_rows(self) -> Rows:
        """The combinations that the data determine, a row each."""
        return Rows(
            {"name": one.name, "value": one.value, "standard deviation": one.standard_deviation} for one in self.base
        )

    def fit_rows(self) -> Rows:
        """How well the torques of each freedom are explained, a row each."""
        return Rows(dict(vars(one)) for one in self.fit)

    @property
    def _parameters(self) -> Floats:
        """The parameters, masses at zero where they are below by chance."""
        found = self.parameters.copy()
        found[:, 0] = np.where(_by_chance(found[:, 0], self.standard_deviation[:, 0]), 0.0, found[:, 0])
        return found

    def _loss(self, kind: str) -> Floats:
        """Armature, damping or friction, at zero where it is below by chance."""
        values = getattr(self, kind)
        return np.where(_by_chance(values, self.deviations[kind]), 0.0, values)

    @property
    def _summary(self) -> str:
        worst = max(self.fit, key=lambda one: one.relative)
        return (
            f"{len(self.base)} of {self.structural} base parameters from {self.samples} samples, condition "
            f"{self.condition:.3g}, worst fit {100 * worst.relative:.2g} % at {worst.joint}"
        )

    def __repr__(self) -> str:
        return f"<Identified {self.prior_mechanism.name!r}: {self._summary}>"

    def _repr_html_(self) -> str:
        tables: list[Any] = [html_table(self.fit_rows(), f"Identified {self.prior_mechanism.name}: {self._summary}")]
        return "".join([*tables, html_table(self.base_rows()), html_table(self.rows())])


def _by_chance(values: Floats, deviations: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray((values < 0) & (values >= -INSIGNIFICANT * deviations))
