"""The file formats: a new one is a reader and a row of ``FORMATS``.

A format is told by what the content begins with, never by the file's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.errors import FactorGraphDynError, ModelError
from factorgraph_dyn.model.files.closures import is_closure_file
from factorgraph_dyn.model.files.mjcf.reader import read_mjcf
from factorgraph_dyn.model.files.native.reader import read_native
from factorgraph_dyn.model.files.sdf.reader import read_sdf
from factorgraph_dyn.model.files.urdf.reader import read_urdf
from factorgraph_dyn.model.files.xml_tree import MAX_BYTES, Document, Element, parse_xml, read_bytes
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.notes import merged

BLANK = b"\xef\xbb\xbf \t\r\n"  # what may come before the content, a byte order mark included


@dataclass(frozen=True)
class Source:
    """A file's content, and what its reader may need.

    Attributes:
        content, file: All of it, and its name.
        folder: The folder that included files must be in, or None to allow no includes.
        floating_base: Whether models that nothing ties to the world float.
    """

    content: bytes
    file: Path
    folder: Path | None = None
    floating_base: bool = False

    @cached_property
    def document(self) -> Document:
        """The parsed XML."""
        return parse_xml(self.content, str(self.file))

    @cached_property
    def root(self) -> str:
        """What the content begins with: the root element of XML, a brace, or the key that lists closures."""
        if self.content[:64].lstrip(BLANK).startswith(b"{"):
            return "{"
        return "closed_loop" if is_closure_file(self.content) else self.document.root.tag

    @property
    def format(self) -> Format | None:
        """The format that begins so."""
        return next((format for format in FORMATS if self.root in format.roots), None)

    def read(self) -> Mechanism:
        """The mechanism that the file describes."""
        if len(self.content) > MAX_BYTES:
            raise ModelError(
                f"{self.file}: there are {len(self.content)} bytes; at most {MAX_BYTES} are read.", file=str(self.file)
            )
        if self.format is not None:
            mechanism = self.format.read(self)
            if (notes := merged(mechanism.notes)) != mechanism.notes:
                mechanism = replace(mechanism, notes=notes)
            return mechanism if self.folder is not None else without_meshes(mechanism)
        root = self.document.root
        if root.tag == "mujocoinclude":
            root.fail("this file is a part that other MJCF files include; load the file that includes it.")
        known = [f"<{tag}> ({format.name})" for format in FORMATS for tag in format.roots if format not in NOT_XML]
        return root.fail(
            f"the root element is none that is known. Roots: {', '.join(known)}; the package's own files are JSON."
        )


class Format(NamedTuple):
    """A file format: its name, what its files begin with (as ``Source.root`` tells it), and its reader."""

    name: str
    roots: tuple[str, ...]
    read: Callable[[Source], Mechanism]


def _read_own(source: Source) -> Mechanism:
    try:
        return read_native(source.content.decode("utf-8-sig"), str(source.file))
    except UnicodeDecodeError as error:
        raise ModelError(f"{source.file}:1: the file is not UTF-8: {error}.", file=str(source.file)) from None


def _read_closures(source: Source) -> Mechanism:
    raise ModelError(f"{source.file}:1: the text lists the closures of a model; load it as a file beside the model's.")


def _xml(reader: Callable[[Source], Mechanism]) -> Callable[[Source], Mechanism]:
    """A reader of XML whose errors say where they come from."""

    def read(source: Source) -> Mechanism:
        root = source.document.root
        try:
            with np.errstate(all="ignore"):  # overflow is found by the parts' own checks
                return reader(source)
        except ArithmeticError as error:
            root.fail(f"the file holds numbers too large or too small to compute with: {error}.")
        except RecursionError:
            root.fail("what the file holds leans on itself, or is nested too deeply.")
        except FactorGraphDynError as error:
            if str(error).startswith(str(source.file)) or error.details.get("file"):
                raise
            where = _named(root, error.details["name"]) if "name" in error.details else root
            message = f"{where.file}:{where.line}: {where.label}: {error}"
            raise ModelError(message, file=where.file, line=where.line, element=where.tag) from None

    return read


def _named(root: Element, name: str) -> Element:
    """The first element that has a name among its attributes, the root where there is none."""
    return next((element for element in root.below() if name in element.attributes.values()), root)


NOT_XML = (Format("own", ("{",), _read_own), Format("closures", ("closed_loop",), _read_closures))
FORMATS = (
    *NOT_XML,
    Format("URDF", ("robot",), _xml(lambda source: read_urdf(source.document))),
    Format("MJCF", ("mujoco",), _xml(lambda source: read_mjcf(source.document, source.folder))),
    Format(
        "SDF",
        ("sdf", "gazebo"),
        _xml(lambda source: read_sdf(source.document, source.folder, floating_base=source.floating_base)),
    ),
)


def format_of(path: str | PathLike[str]) -> str:
    """The format of a file, told by its content: one of ``FORMATS``, or unknown."""
    return getattr(Source(read_bytes(Path(path)), Path(path)).format, "name", "unknown")


def without_meshes(mechanism: Mechanism) -> Mechanism:
    """The mechanism of a text, which has no folder: meshes that it names are not sought anywhere."""
    return replace(mechanism, visuals=tuple(replace(visual, folder="") for visual in mechanism.visuals))
