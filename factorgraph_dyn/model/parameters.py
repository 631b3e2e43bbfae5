"""The ten inertial parameters of links, in which every equation of motion is linear.

    p = [m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz]       (Pinocchio's order)

m is the mass, c the centre of mass and I the rotational inertia about the origin of the link's frame, all in the
link's axes: kg, kg m, kg m^2. With h = m c the spatial inertia is G = [[I, [h]], [-[h], m 1]]. Takes links or
parameters; gives the other. Whoever speaks of the parameters of all links means every link but the base, in the order
of ``link_names``: nothing depends on the base's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_names, check_finite
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model.description import Description
from factorgraph_dyn.model.inertia_checks import MOMENT_TOLERANCE
from factorgraph_dyn.model.parts import Link
from factorgraph_dyn.spatial import Array, Floats, skew

NAMES = ("m", "mc_x", "mc_y", "mc_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")
COUNT = len(NAMES)
ALL = "all"  # the word for every link but the base
_ROWS, _COLUMNS = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)  # where the inertia's six numbers stand


def parameter_links(mechanism: Description, links: str | Iterable[str] | None = None) -> tuple[str, ...]:
    """The links whose parameters are meant, in the order of their rows; by default all but the base.

    Raises:
        InputError: A name that is no link's, the base, or one that comes twice.
    """
    if links is None or (isinstance(links, str) and links == ALL):
        return tuple(name for name in mechanism.link_names if name != mechanism.base)
    names = as_names(links, "links")
    for name in names:
        mechanism.check_link(name)
    if mechanism.base in names:
        raise InputError(
            f"Link {mechanism.base!r} is the base of mechanism {mechanism.name!r}, fixed in the world: nothing depends "
            f"on its inertial parameters. Links that have some: {', '.join(parameter_links(mechanism))}."
        )
    if len(set(names)) < len(names):
        raise InputError(f"A link is named twice: {', '.join(names)}; name each one once.")
    return names


def parameters_of(G: Array) -> Array:
    """The parameters of a spatial inertia of any scalar type, shape (10,)."""
    parameters: Array = np.concatenate([[G[3, 3], G[2, 4], G[0, 5], G[1, 3]], G[_ROWS, _COLUMNS]])
    return parameters


def inertia_of(parameters: Array) -> Array:
    """The spatial inertia of parameters of any scalar type, shape (6, 6)."""
    m, h = parameters[0], parameters[1:4]
    G = np.zeros((6, 6), dtype=parameters.dtype)
    G[_ROWS, _COLUMNS] = G[_COLUMNS, _ROWS] = parameters[4:]
    G[:3, 3:] = skew(h)
    G[3:, :3] = -G[:3, 3:]
    G[(3, 4, 5), (3, 4, 5)] = m
    return G


UNIT_INERTIAS: Floats = np.array([inertia_of(unit) for unit in np.eye(COUNT)])  # of one parameter each, (10, 6, 6)


def moving_parameters(T: Floats) -> Floats:
    """The matrix that carries parameters to another frame, p_a = X p_b, from the pose T_a_b, shape (10, 10).

    m' = m        h' = R h + m r        I' = R I R^T + 2 (r . R h) 1 - r (R h)^T - (R h) r^T + m (r . r 1 - r r^T)
    """
    R, r = T[:3, :3], T[:3, 3]
    X = np.zeros((COUNT, COUNT))
    X[0, 0], X[1:4, 0], X[1:4, 1:4] = 1.0, r, R
    X[4:, 0] = _shifted(r, 0.5 * r)
    for k, h in enumerate(R.T):
        X[4:, 1 + k] = _shifted(r, h)
    for k, unit in enumerate(UNIT_INERTIAS[4:, :3, :3]):
        X[4:, 4 + k] = (R @ unit @ R.T)[_ROWS, _COLUMNS]
    return X


def _shifted(r: Floats, h: Floats) -> Floats:
    """What a shift by r makes of a first moment h in the rotational inertia, shape (6,)."""
    inertia: Floats = 2.0 * (r @ h) * np.eye(3) - np.outer(r, h) - np.outer(h, r)
    return inertia[_ROWS, _COLUMNS]


def parameters(mechanism: Description, links: str | Iterable[str] | None = None) -> Floats:
    """The parameters of links, a row each, shape (links, 10)."""
    names = parameter_links(mechanism, links)
    rows = [parameters_of(mechanism.link_by_name[name].spatial_inertia) for name in names]
    return np.array(rows).reshape(len(names), COUNT)


def with_parameters(
    mechanism: Description, values: npt.ArrayLike, links: str | Iterable[str] | None = None
) -> tuple[Link, ...]:
    """The mechanism's links, those named with the given parameters."""
    names = parameter_links(mechanism, links)
    rows = dict(zip(names, check_parameters(values, names), strict=True))
    return tuple(_link(link, rows[link.name]) if link.name in rows else link for link in mechanism.links)


def check_parameters(values: npt.ArrayLike, links: tuple[str, ...]) -> Floats:
    """The values as finite parameters of links, shape (links, 10), or an InputError."""
    of = f"The parameters, a row [{', '.join(NAMES)}] for each of the links {', '.join(links)},"
    return check_finite(values, (len(links), COUNT), of)


def impossible_parameters(values: Floats, length: float) -> npt.NDArray[np.bool_]:
    """Which rows of parameters, shape (..., 10), no rigid body can have.

    The second moments of a body, with its first ones and its mass beside them, are a matrix that is positive
    semidefinite (Wensing, Kim & Slotine, 2018): [[tr(I) / 2 - I, h], [h^T, m]].

    Args:
        values: The rows; those that are not finite are not looked at.
        length: What moments are compared in where a link has no size of its own, m.
    """
    inertia, mass = np.zeros((*values.shape[:-1], 3, 3)), values[..., 0]
    inertia[..., _ROWS, _COLUMNS] = inertia[..., _COLUMNS, _ROWS] = values[..., 4:]
    second = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - inertia
    with np.errstate(all="ignore"):
        own = np.sqrt(np.abs(second).max(axis=(-2, -1)) / np.abs(mass))
    unit = np.where(np.isfinite(own) & (own > 0), own, length)[..., None]
    moments = np.zeros((*mass.shape, 4, 4))
    moments[..., :3, :3] = second / unit[..., None] ** 2
    moments[..., :3, 3] = moments[..., 3, :3] = values[..., 1:4] / unit
    moments[..., 3, 3] = mass
    known = np.asarray(np.isfinite(moments).all(axis=(-2, -1)))
    sizes = np.linalg.eigvalsh(np.where(known[..., None, None], moments, 0.0))
    return np.asarray(sizes[..., 0] < -MOMENT_TOLERANCE * np.abs(sizes).max(axis=-1))


def _link(link: Link, row: Floats) -> Link:
    """The link with other parameters; itself where they are its own, so that there and back changes nothing."""
    if (row == parameters_of(link.spatial_inertia)).all():
        return link
    mass, moment = float(row[0]), row[1:4]
    if not mass and moment.any():
        raise InputError(
            f"The parameters of link {link.name!r} have no mass and the first moment {moment.tolist()} kg m: no centre "
            "of mass gives that. Give it a mass, or no first moment."
        )
    com = moment / mass if mass else np.zeros(3)
    return replace(link, mass=mass, com=com, inertia=_about_com(inertia_of(row)[:3, :3], mass, com))


def _about_com(inertia: Floats, mass: float, com: Floats) -> Floats:
    """The inertia about the centre of mass, corrected once for what its subtraction rounded away."""
    c = skew(com)
    moved: Any = mass * c @ c.T
    about = inertia - moved
    about = about + (inertia - (about + moved))
    return np.asarray(0.5 * (about + about.T))
