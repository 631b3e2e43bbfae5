"""What a sensor is: a reading of the graph's variables, a value and its noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from factorgraph_dyn.checks import as_names, check_entries, check_finite, real_numbers, shown
from factorgraph_dyn.equations.linear_graph import Factor, Variable
from factorgraph_dyn.equations.sensors.noise import Noise, make_noise
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Array, Floats

AXES = ("x", "y", "z")
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")
Blocks = tuple[tuple[Variable, Array], ...]


class Reading(NamedTuple):
    """What a sensor reads: the sum of block @ variable, plus an offset."""

    blocks: Blocks
    offset: Array


class Sensor:
    """Something that reads variables of a mechanism's graph with noise.

    Attributes:
        value: What it reads, a number or an array, or 0 for nothing at all; None for an input of a compiled estimator.
        sigma: A standard deviation, one for each entry (0 exact, inf unknown), or a covariance matrix.
    """

    value: Any
    sigma: Any
    of_velocities: ClassVar[bool] = False  # or of accelerations and forces

    @property
    def place(self) -> str:
        """Name of the joint, link or frame it is on."""
        return str(getattr(self, fields(cast(Any, self))[0].name))

    @property
    def label(self) -> str:
        """What messages and innovations call it, such as ``Torque[elbow]``."""
        return f"{type(self).__name__}[{self.place}]"

    @property
    def key(self) -> str:
        """Text that differs wherever two sensors do, their values apart."""
        others = {field.name: getattr(self, field.name) for field in fields(cast(Any, self)) if field.name != "value"}
        return repr((self.label, {name: _plain(value) for name, value in others.items()}))

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless the mechanism has what the sensor is on."""
        raise NotImplementedError

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        raise NotImplementedError

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state; ``classical`` as for ``dynamics_graph``."""
        raise NotImplementedError

    def noise(self, mechanism: Mechanism) -> Noise:
        """Its noise."""
        self.check(mechanism)
        return make_noise(self.sigma, self.size(mechanism), self.label)

    def values(self, mechanism: Mechanism) -> Floats:
        """What it reads, as an array; anything where it is known not to know."""
        self.check(mechanism)
        if self.value is None and np.isinf(self.noise(mechanism).s).all():
            return np.zeros(self.size(mechanism))
        if self.value is None:
            raise InputError(f"{self.label} has no value; give {self.size(mechanism)} numbers.")
        what, size = f"The value of {self.label}", self.size(mechanism)
        given = real_numbers(self.value, what, InputError)
        if given.ndim == 0 and not given:
            return np.zeros(size)
        return check_finite(check_entries(given, size, what), (size,), what)

    def factor(self, state: State, values: Array | None = None, *, classical: bool = False) -> Factor:
        """Its equation at a state with its noise, for its own value or others; ``graph.with_factors`` takes it."""
        read = self.values(state.mechanism) if values is None else values
        return self.equation(state, read, classical=classical)._replace(noise=self.noise(state.mechanism))

    def equation(self, state: State, values: Array, *, classical: bool = False) -> Factor:
        """Its equation for given values, without its noise."""
        blocks, offset = self.reading(state, classical=classical)
        return Factor("sensor", self.label, blocks, values - offset)


class OfComponents(Sensor):
    """A sensor of a vector, or of some of its components.

    Attributes:
        components: Names of the components it reads, such as ("x", "z") or ("fx", "fz"); all by default.
    """

    components: Any
    names: ClassVar[tuple[str, ...]] = AXES

    def __post_init__(self) -> None:
        for name in self._components:
            check_name(name, self.names, "component", f"what {self.label} reads", InputError)
        if len(set(self._components)) < len(self._components) or not self._components:
            raise InputError(f"The components of {self.label} are {shown(self.components)}; name each at most once.")

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        return len(self._components)

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state."""
        chosen = [self.names.index(name) for name in self._components]
        blocks, offset = self._seen_from(state, self._whole(state, classical))
        return Reading(tuple((variable, block[chosen]) for variable, block in blocks), offset[chosen])

    def _seen_from(self, state: State, whole: Reading) -> Reading:
        """The reading of all components in the axes that the sensor has."""
        return whole

    def _whole(self, state: State, classical: bool) -> Reading:
        """What a sensor of all components reads."""
        raise NotImplementedError

    @property
    def _components(self) -> tuple[str, ...]:
        return self.names if self.components is None else as_names(self.components, f"The components of {self.label}")


def _plain(value: Any) -> Any:
    """A field as plain Python, exact and without what arrays print of themselves."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return np.asarray(value).tolist()
