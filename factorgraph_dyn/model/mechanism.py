"""The mechanism: its description, its states and its edits in one class, and its file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Self

import numpy.typing as npt

from factorgraph_dyn.checks import check_kind, check_path
from factorgraph_dyn.errors import FactorGraphDynError, InputError
from factorgraph_dyn.model import parameters
from factorgraph_dyn.model.edit import Editable
from factorgraph_dyn.model.files.native.writer import fingerprint, to_json
from factorgraph_dyn.spatial import Floats


class Mechanism(Editable):
    """Links joined to a tree by joints, with loops and couplings; never changes.

    The one link that is no joint's child is the base, fixed in the world; a floating base is a
    floating joint to it.

    Args:
        name: The mechanism's name.
        links: The links, base included.
        joints: The joints of the tree.
        loops: Joints that close loops.
        couplings: Gears and mimic joints.
        gravity: In the world's (the base's) axes, m/s^2, shape (3,).
        frames: Named places on links.
        notes: Warnings found by whoever made the description, such as a file's reader.
        strict: Make inertias that no body can have an error instead of a warning.
        closure_tolerance: How far loops and couplings of a closed state may be open: rad, and lengths in parts of
            the mechanism's ``size``; also of speeds, in parts of the largest. Loops that are constrained more than
            once close no better than their file's digits; where these are few, it must be larger.
        visuals: Shapes that links are drawn as.

    Raises:
        ModelError: The parts do not make a mechanism.

    Examples:
        >>> rod = fgd.Link("rod", mass=2.0, com=(0, 0, -0.5), inertia=np.diag([1 / 6, 1 / 6, 1e-3]))
        >>> hinge = fgd.Joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0))
        >>> fgd.Mechanism("pendulum", [fgd.Link("base"), rod], [hinge])
        <Mechanism 'pendulum': 2 links, 1 movable joints, nq 1, nv 1>
    """

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything but the notes and visuals, 64 hexadecimal digits; equal for equal mechanisms."""
        return fingerprint(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mechanism in full to a file that ``fgd.load`` reads back exactly, whose name ends in .json.

        Raises:
            InputError: The name ends otherwise: ``fgdyn convert robot.json -o robot.urdf`` makes URDF of the file.
        """
        file = check_path(path, "The path to save to")
        if file.suffix.lower() != ".json":
            raise InputError(
                f"Mechanisms are saved as .json, and {str(file)!r} ends otherwise. For URDF save as .json, then run "
                f"'fgdyn convert {file.stem}.json -o {file.stem}.urdf'; other formats are read, not written."
            )
        file.write_text(to_json(self), encoding="utf-8")

    def parameters(self, links: str | Iterable[str] | None = None) -> Floats:
        """The inertial parameters of links, shape (links, 10): a row [m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz] each.

        The inertia is about the origin of the link's frame; everything in the link's axes, kg, kg m, kg m^2.

        Args:
            links: Names of the links, in the order of the rows; by default (None or "all") every link but the base, in
                the order of ``link_names``.
        """
        return parameters.parameters(self, links)

    def with_parameters(self, values: npt.ArrayLike, links: str | Iterable[str] | None = None) -> Self:
        """The mechanism with other inertial parameters, shape (links, 10), as ``parameters`` gives them.

        Inertias that no body has are taken, and told in ``warnings``. A link whose parameters are its own stays as it
        is to the last bit; for others the centre of mass and the inertia about it are rounded.

        Raises:
            InputError: A wrong shape, a link that there is not, or a first moment without mass.
            ModelError: A negative mass, which a link cannot have; kernels with parameters as arguments take it.
        """
        return replace(self, links=parameters.with_parameters(self, values, links))


def check_mechanism(value: object) -> Mechanism:
    """The value, if it is a mechanism."""
    how = "fgd.robots.puma560(), fgd.load('robot.urdf') or one built by fgd.Mechanism(...)"
    return check_kind(value, Mechanism, "The mechanism", f"a Mechanism, such as {how}")


def check_movable(value: object, purpose: str, error: type[FactorGraphDynError] = InputError) -> Mechanism:
    """The value, if it is a mechanism in which something moves; ``purpose`` says what is to be done with it."""
    mechanism = check_mechanism(value)
    if not mechanism.nv:
        raise error(f"Mechanism {mechanism.name!r} has no movable joint; there is nothing to {purpose}.")
    return mechanism
