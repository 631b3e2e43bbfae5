"""The unknowns of identification, a column of the regressor each, and the torques of what is known.

    tau = Y(q, v, a) p  +  armature a + damping v + friction sign(v)  +  what is known: other links, springs

Takes a mechanism and which links and effects are unknown. The regressor is a kernel; the known torques are those of
inverse dynamics, of the mechanism without what is unknown. Kernels are compiled once a mechanism, blocks of samples
evaluated once each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factorgraph_dyn.checks import as_names, check_choice
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.equations.free import EFFECTS
from factorgraph_dyn.errors import CompileError, InputError
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parameters import COUNT, NAMES, parameter_links
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from factorgraph_dyn.solve.matrices.regressors import regressor
from factorgraph_dyn.spatial import Floats

FREE_BODY = 6  # freedoms of a joint that holds nothing: it has no bearing that could rub

_MOTIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "armature": lambda v, a: a,
    "damping": lambda v, a: v,
    "friction": lambda v, a: np.sign(v),
}


@dataclass(frozen=True, eq=False)
class Effect:
    """An unknown of a joint's freedom: armature, damping or friction."""

    kind: str
    joint: str
    entry: int  # of v
    name: str


@dataclass(frozen=True, eq=False)
class Columns:
    """What is unknown: ten parameters a link, then effects of joints.

    Attributes:
        mechanism: The mechanism.
        links: Links whose parameters are unknown.
        effects: Effects that are unknown.
    """

    mechanism: Mechanism
    links: tuple[str, ...]
    effects: tuple[Effect, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names such as ``link2.mc_x`` and ``damping[joint3]``."""
        inertial = [f"{link}.{parameter}" for link in self.links for parameter in NAMES]
        return (*inertial, *(effect.name for effect in self.effects))

    def __len__(self) -> int:
        return self.inertial + len(self.effects)

    @property
    def inertial(self) -> int:
        """Number of columns that belong to links; those of effects follow."""
        return COUNT * len(self.links)

    @cached_property
    def values(self) -> Floats:
        """The mechanism's own values, shape (columns,)."""
        joints = self.mechanism.joint_by_name
        places = {name: place.start for name, place in self.mechanism.v_slices.items()}
        effects = [getattr(joints[e.joint], e.kind)[e.entry - places[e.joint]] for e in self.effects]
        return np.concatenate([self.mechanism.parameters(self.links).ravel(), effects])

    @cached_property
    def units(self) -> Floats:
        """Units in which the unknowns are of order one, shape (columns,)."""
        own, rate = natural(self.mechanism), natural_rate(self.mechanism) or 1.0
        of_link = own.mass * own.length ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
        felt = own.tau / own.v
        sizes = {"armature": felt, "damping": felt * rate, "friction": own.tau * rate**2}
        return np.concatenate([*[of_link] * len(self.links), [sizes[e.kind][e.entry] for e in self.effects]])

    def regressor(self, samples: Samples) -> Floats:
        """The torques of the tree for units of the unknowns, shape (samples, nv, columns)."""
        X = np.empty((len(samples), self.mechanism.nv, len(self)))
        Y = self._evaluate(samples)
        X[:, :, self.inertial :] = 0.0
        X[:, :, : self.inertial] = Y if self._chosen is None else Y[:, :, self._chosen]
        for k, effect in enumerate(self.effects, start=self.inertial):
            motion = _MOTIONS[effect.kind]
            X[:, effect.entry, k] = motion(samples.v[:, effect.entry], samples.a[:, effect.entry])
        return X

    def known(self, samples: Samples) -> Floats:
        """The torques of the tree for what is not unknown, shape (samples, nv)."""
        if self._known is None:
            return np.zeros_like(samples.v)
        return np.asarray(self._known(samples.q, samples.v, samples.a))

    @cached_property
    def _chosen(self) -> list[int] | None:
        """Which of all links' columns are unknown; None for all in order."""
        every = parameter_links(self.mechanism)
        if self.links == every:
            return None
        return [COUNT * every.index(link) + k for link in self.links for k in range(COUNT)]

    @cached_property
    def _evaluate(self) -> Callable[[Samples], Floats]:
        try:
            kernel = compile(self.mechanism.tree, "regressor")
        except CompileError:
            return lambda samples: regressor(self.mechanism, samples.q, samples.v, samples.a)
        return lambda samples: _finite(kernel(samples.q, samples.v, samples.a))

    @cached_property
    def _known(self) -> Callable[..., Floats] | None:
        """Inverse dynamics of what is known; None where that takes no torque."""
        rest = self.mechanism.tree.with_parameters(np.zeros((len(self.links), COUNT)), self.links)
        kinds: dict[str, set[str]] = {}
        for effect in self.effects:
            kinds.setdefault(effect.joint, set()).add(effect.kind)
        rest = replace(rest, joints=tuple(_without(joint, kinds.get(joint.name, set())) for joint in rest.joints))
        if not rest.parameters().any() and all(j.is_lossless and not j.armature.any() for j in rest.joints):
            return None
        kernel = compile(rest, "inverse")
        return lambda q, v, a: _finite(kernel(q, v, a))


def make_columns(mechanism: Mechanism, links: str | Iterable[str] | None, effects: str | Iterable[str]) -> Columns:
    """The unknowns that words ask for."""
    kinds = as_names(effects, "effects")
    for kind in kinds:
        check_choice(kind, EFFECTS, "An entry of effects")
    names = parameter_links(mechanism, links)
    found = tuple(effect for kind in dict.fromkeys(kinds) for effect in _effects(mechanism, kind))
    if not names and not found:
        raise InputError("Neither links nor effects are unknown: there is nothing to identify.")
    return Columns(mechanism, names, found)


def _effects(mechanism: Mechanism, kind: str) -> Iterable[Effect]:
    """The effects of a kind: armature where there is a motor, losses where there is a bearing."""
    for joint in mechanism.movable_joints:
        if joint.nv == FREE_BODY or (kind == "armature" and not joint.actuated):
            continue
        for k, entry in enumerate(range(*mechanism.v_slices[joint.name].indices(mechanism.nv))):
            yield Effect(kind, joint.name, entry, f"{kind}[{joint.name}]{f'.{k}' if joint.nv > 1 else ''}")


def _without(joint: Joint, kinds: set[str]) -> Joint:
    return replace(joint, **dict.fromkeys(kinds, 0.0)) if kinds else joint  # type: ignore[arg-type]


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values.sum()):  # one pass over large blocks
        k = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise InputError(
            f"The torques of sample {k} of a block cannot be computed: its coordinates are beyond what kernels take, "
            "such as angles of more than 2^30 rad."
        )
    return values
