"""A xacro file becomes the URDF it stands for, by the package xacrodoc where it is installed.

Xacro files are programs: they evaluate expressions and include other files, also of packages that ``$(find ...)``
names: sought above the file, in the folder that the caller names and where ROS knows them. Expand only files you
trust. Runs once a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.files.xml_tree import Element

NEEDS_EXPANDING = ("xacro:include", "xacro:macro", "xacro:property", "xacro:arg", "xacro:if", "xacro:unless")
HOW = "install the extra that expands it, pip install 'factorgraph_dyn[xacro]', and fgd.load it again"


def is_xacro(root: Element) -> bool:
    """Whether a robot's description has to be expanded before it can be read."""
    return root.tag == "robot" and any(child.tag in NEEDS_EXPANDING for child in root.children)


def expanded(file: Path, folder: Path | None, arguments: Mapping[str, str]) -> bytes:
    """The URDF text of a xacro file.

    Args:
        file: The file.
        folder: A folder in which packages lie, or None.
        arguments: Values of its <xacro:arg>s by name.

    Raises:
        ModelError: The extra is not installed, or the file cannot be expanded.
    """
    try:
        packages: Any = importlib.import_module("xacrodoc.packages")
        xacro: Any = importlib.import_module("xacro")
    except ImportError:
        raise ModelError(f"{file}: this is a xacro file; {HOW}.", file=str(file)) from None
    given = {str(name): str(value) for name, value in arguments.items()}
    try:
        packages.reset()  # a package of another file's tree must not stand in for this one's
        if folder is not None:
            packages.look_in([str(folder)])
        packages.walk_up_from(file)
        return bytes(xacro.process_file(str(file), mappings=given).toxml().encode())
    except Exception as error:  # whatever the file's own expressions and includes raise
        raise ModelError(
            f"{file}: the xacro file cannot be expanded: {error or type(error).__name__}. Its arguments are given by "
            "fgd.load(path, xacro_arguments={name: value}); packages that it names have to lie above it, or in the "
            "folder of fgd.load(path, folder=...).",
            file=str(file),
        ) from None
