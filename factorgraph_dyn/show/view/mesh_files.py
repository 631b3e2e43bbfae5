"""Where the files of meshes are, and which may be read.

A model file is untrusted: it may name files in its own folder, in the package that the folder belongs to and in
packages it names, and nothing else; who draws it may allow more folders. Links that lead out are refused.

A package is a folder of its name that holds ``package.xml`` (of ROS) or ``model.config`` (of Gazebo), that lies in the
model file's own package, or that lies in a folder of the user's environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from factorgraph_dyn.model import Visual

MOST_ABOVE = 8  # folders above a model file in which packages are sought
PACKAGE_MARKS = ("package.xml", "model.config")
PACKAGE_PATHS = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH")
# Folders of model files inside a package, beside those of its meshes.
MODEL_FOLDERS = ("urdf", "xacro", "robots", "robot", "mjcf", "xml", "sdf", "model", "models", "description")


def find_mesh(visual: Visual, folders: Sequence[Path] = ()) -> Path | None:
    """The file of a mesh, or None where there is none that may be read.

    Args:
        visual: The mesh, with the name and folder of its file.
        folders: Other folders in which it may lie, allowed by whoever draws.
    """
    name = unquote(visual.mesh) if "://" in visual.mesh else visual.mesh
    try:
        for place, path in _candidates(name.replace("\\", "/"), visual.folder, folders):
            found = path.resolve()
            if found.is_relative_to(place.resolve()) and found.is_file():
                return found
    except (OSError, ValueError, RuntimeError):
        pass
    return None


def _candidates(name: str, folder: str, others: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Folders that may be read in, each with the file in it that may be meant."""
    kind, _, rest = name.partition("://") if "://" in name else ("", "", name)
    if kind in ("package", "model"):
        package, _, rest = rest.lstrip("/").partition("/")
        if folder and package not in ("", ".", ".."):
            yield from ((place, place / rest) for place in _packages(package, Path(folder).resolve()))
    elif folder and kind in ("", "file"):
        here = Path(folder).resolve()
        yield _home(here), here / rest
    for place in others:
        yield place, place / rest
        yield place, place / Path(rest).name


def _packages(name: str, here: Path) -> Iterator[Path]:
    """Folders that a package of a name may be: above the model file, beside those, or where ROS looks."""
    own = _home(here)
    for above in (here, *here.parents[:MOST_ABOVE]):
        for place in (above, above / name):
            if place.name == name and (place.resolve().is_relative_to(own) or _is_package(place)):
                yield place
    for variable in PACKAGE_PATHS:
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry) / name
            yield Path(entry) / "share" / name


def _home(here: Path) -> Path:
    """The folder of the package that a model file's folder belongs to, else the folder itself."""
    for above in (here, *here.parents[:3]):
        if (above / PACKAGE_MARKS[0]).is_file():
            return above
    named = here.name.lower() in MODEL_FOLDERS and here.parent.name  # the root of all files is no package
    return here.parent if named else here


def _is_package(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in PACKAGE_MARKS)
