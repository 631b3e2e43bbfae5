"""What is known of a and tau: checked arrays, or an error that says what was allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_array, check_entries, check_finite, check_mapping
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.spatial import Array, Floats

Mask = npt.NDArray[np.bool_]
Partial = npt.ArrayLike | Mapping[str, npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the joint accelerations and torques.

    Attributes:
        a: Values where ``a_mask`` is true, shape (nv,).
        tau: Values where ``tau_mask`` is true, shape (nv,).
        a_mask: Which entries of a are known, shape (nv,).
        tau_mask: Which entries of tau are known, shape (nv,).

    Examples:
        >>> fgd.Known.forward(np.array([1.0, 2.0])).tau_mask.tolist()
        [True, True]
    """

    a: Array
    tau: Array
    a_mask: Mask
    tau_mask: Mask

    @classmethod
    def forward(cls, tau: Array) -> Known:
        """All torques, no acceleration."""
        return cls(np.full(len(tau), np.nan), tau, np.zeros(len(tau), dtype=bool), np.ones(len(tau), dtype=bool))

    @classmethod
    def inverse(cls, a: Array, sought: Mask | None = None) -> Known:
        """All accelerations; the torques that are not sought are zero, by default all are."""
        everything = np.ones(len(a), dtype=bool)
        return cls(a, np.zeros(len(a)), everything, ~(everything if sought is None else sought))

    @classmethod
    def nothing(cls, nv: int) -> Known:
        """Neither accelerations nor torques."""
        unknown, no_entry = np.full(nv, np.nan), np.zeros(nv, dtype=bool)
        return cls(unknown, unknown, no_entry, no_entry)


def check_wrenches(mechanism: Mechanism, wrenches: Mapping[str, npt.ArrayLike] | None) -> dict[str, Floats]:
    """External wrenches as arrays, by the name of a link or frame."""
    if wrenches is None:
        return {}
    check_mapping(
        wrenches, "external_wrenches", "wrenches by the name of a link or frame: {'hand': [0, 0, 0, 1, 0, 0]}"
    )
    checked = {}
    for name, value in wrenches.items():
        mechanism.place(name)
        checked[name] = check_finite(value, (6,), f"The external wrench on {name!r}")
    return checked


def hybrid_known(mechanism: Mechanism, a: Partial, tau: Partial) -> Known:
    """What is given of a and tau; in a tree exactly one of the two for every freedom."""
    check_mechanism(mechanism)
    a_values = _partial(mechanism, a, "a")
    tau_values = _partial(mechanism, tau, "tau")
    a_mask, tau_mask = ~np.isnan(a_values), ~np.isnan(tau_values)
    if not mechanism.is_closed_kind:
        for given, fault in ((a_mask & tau_mask, "Both"), (~a_mask & ~tau_mask, "Neither")):
            if given.any():
                names = [n for n in mechanism.joint_names if given[mechanism.v_slices[n]].any()]
                raise InputError(
                    f"{fault} of a and tau given for joints "
                    f"{', '.join(names)}; give exactly one for every freedom of a tree "
                    "(nan, or no entry, where it is unknown)."
                )
    return Known(a_values, tau_values, a_mask, tau_mask)


def _partial(mechanism: Mechanism, given: Partial, what: str) -> Floats:
    """An array of shape (nv,) with nan where nothing is given."""
    if not isinstance(given, Mapping):
        values = check_array(given, (mechanism.nv,), what)
    else:
        values = np.full(mechanism.nv, np.nan)
        for name, value in given.items():
            entries = mechanism.v_slice(name)
            values[entries] = check_entries(value, entries.stop - entries.start, f"{what} of joint {name!r}")
    if np.isinf(values).any():
        names = [n for n in mechanism.joint_names if np.isinf(values[mechanism.v_slices[n]]).any()]
        raise InputError(f"{what} is infinite at joints {', '.join(names)}; give finite numbers or nan.")
    return values
