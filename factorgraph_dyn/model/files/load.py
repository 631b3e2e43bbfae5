"""A file becomes a ``Mechanism``: URDF, MJCF, SDF, a YAML of closures or the package's own format.

Files are untrusted: only what the model file's own folder holds is read, sizes are bounded, and every failure is a
``ModelError`` with file, line and element.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from factorgraph_dyn.checks import check_kind, check_mapping, check_path, shown
from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.edit import WORLD
from factorgraph_dyn.model.files.closures import add_closures, is_closure_file, parse_closures
from factorgraph_dyn.model.files.expand_xacro import expanded
from factorgraph_dyn.model.files.formats import BLANK, NOT_XML, Source
from factorgraph_dyn.model.files.mjcf.reader import read_actuation
from factorgraph_dyn.model.files.xml_tree import parse_xml, read_bytes
from factorgraph_dyn.model.mechanism import Mechanism, check_mechanism
from factorgraph_dyn.spatial import Floats

DESCRIPTIONS_PREFIX = "robot_descriptions:"


def load(
    path: str | PathLike[str],
    *,
    floating_base: bool = False,
    merge_fixed: bool = False,
    closures: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    xacro: bool = False,
    xacro_arguments: Mapping[str, str] | None = None,
) -> Mechanism:
    """The mechanism that a URDF, xacro, MJCF, SDF or own-format file describes.

    Args:
        path: The file; a YAML of closures stands for the URDF of the same name beside it; a name such
            as ``robot_descriptions:panda_description`` is loaded through that package.
        floating_base: Free the base: a floating joint ``floating_base`` from a new base ``world``. A model
            that floats already stays as it is: one on a floating joint of a base without mass, or of one called
            ``world``. What moves on that base without floating is noted.
        merge_fixed: Merge links joined by fixed joints; each leaves a frame of its name.
        closures: A YAML file that lists loop closures between links, frames or joints.
        folder: The folder that included files must not leave; default the file's own. Files are sought beside
            the one loaded, then beside the one that includes them; a folder of models may lie above.
        xacro: Expand the file by xacro first, which needs the extra ``factorgraph_dyn[xacro]``. Xacro files are
            programs, and run with your rights while they are expanded: ask for it where you trust the file. They run
            in a process of their own, whose time and memory are bounded.
        xacro_arguments: Values of the xacro file's arguments, by name; it is expanded where they are given, even if
            there are none.

    Raises:
        ModelError: The file cannot be read or makes no mechanism; says file, line and element.

    Examples:
        >>> fgd.robots.panda().save("panda.json")
        >>> fgd.load("panda.json")  # or .urdf, .xml (MJCF), .sdf
        <Mechanism 'panda': 8 links, 7 movable joints, nq 7, nv 7>
    """
    if isinstance(path, str) and path.lstrip().startswith(("<", "{")):
        raise ModelError(
            f"fgd.load takes the path of a file, and this is a description itself: {shown(path)}. Use fgd.loads(text)."
        )
    file = check_path(path, "The file to load", ModelError)
    if str(path).startswith(DESCRIPTIONS_PREFIX):
        file = Path(_description_path(str(path).removeprefix(DESCRIPTIONS_PREFIX)))
    root = _folder(folder)
    content = read_bytes(file)
    if is_closure_file(content):
        if closures is not None:
            raise ModelError(f"{file}: the file itself lists closures; give the model's file as path.")
        closures, file = file, file.with_suffix(".urdf")
        if not file.is_file():
            raise ModelError(
                f"{closures}: the file lists loop closures of a model, and there is no {file.name!r} beside it. Give "
                f"the model's file: fgd.load('model.urdf', closures={str(closures)!r}).",
                file=str(closures),
            )
        content = read_bytes(file)
    elif file.suffix in (".yaml", ".yml") and not content.lstrip(BLANK).startswith((b"<", b"{")):
        raise ModelError(
            f"{file}: YAML is read only where it lists loop closures (closed_loop: ...). Models are URDF, xacro, MJCF, "
            "SDF or the package's own JSON: fgd.load('model.urdf', closures='closures.yaml').",
            file=str(file),
        )
    source = Source(content, file, root or file.parent, floating_base)
    arguments = {} if xacro_arguments is None else xacro_arguments
    check_mapping(arguments, "xacro_arguments", "a mapping {name: value}")
    if (xacro or xacro_arguments is not None) and source.format not in NOT_XML:
        source = replace(source, content=expanded(file, root, arguments))
    mechanism = source.read()
    if closures is None:
        mechanism = _note_closures(mechanism, file)
    else:
        yaml = check_path(closures, "The file of closures", ModelError)
        mechanism = add_closures(mechanism, parse_closures(read_bytes(yaml), str(yaml)), str(yaml))
    if floating_base:
        mechanism = _floating(mechanism, file)
    if merge_fixed:
        mechanism = mechanism.merge_fixed()
    return mechanism


def loads(text: str | bytes, *, file: str = "<text>", folder: str | PathLike[str] | None = None) -> Mechanism:
    """The mechanism that a text in any of the formats describes.

    Args:
        text: The content of a URDF, MJCF, SDF or own-format file; texts of xacro files are not expanded.
        file: What messages call it; included files are sought beside it.
        folder: The folder that included files must not leave; default none may be included.

    Raises:
        ModelError: The text makes no mechanism; says line and element.

    Examples:
        >>> text = '''<robot name="slider"><link name="rail"/><link name="cart"><inertial><mass value="2"/>
        ... <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        ... <joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
        ... <limit lower="-1" upper="1" effort="10" velocity="1"/></joint></robot>'''
        >>> float(fgd.forward_dynamics(fgd.loads(text), [0.0], [0.0], [4.0]).a[0])
        2.0
    """
    content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    check_kind(content, bytes, "The model's description", "text or bytes", ModelError)
    return Source(content, check_path(file, "The file's name", ModelError), _folder(folder)).read()


def load_actuation(
    path: str | PathLike[str], mechanism: Mechanism, *, folder: str | PathLike[str] | None = None
) -> tuple[tuple[str, ...], Floats]:
    """The names of an MJCF file's linear actuators and the matrix B of tau = B u, shape (nv, actuators).

    Args:
        path: The MJCF file.
        mechanism: What was loaded from it; tells the order of the joints.
        folder: The folder that included files must not leave; default the file's own.

    Raises:
        ModelError: The file cannot be read or is not MJCF.

    Examples:
        >>> text = '''<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 1 0"/>
        ... <geom size="0.1" mass="1"/></body></worldbody>
        ... <actuator><motor name="motor" joint="hinge" gear="30"/></actuator></mujoco>'''
        >>> _ = open("arm.xml", "w").write(text)
        >>> names, B = fgd.load_actuation("arm.xml", fgd.load("arm.xml"))
        >>> names, B.tolist()
        (('motor',), [[30.0]])
    """
    check_mechanism(mechanism)
    file = check_path(path, "The MJCF file", ModelError)
    document = parse_xml(read_bytes(file), str(file))
    if document.root.tag != "mujoco":
        document.root.fail("actuators are read from MJCF files only.")
    return read_actuation(document, _folder(folder) or file.parent, mechanism)


def _folder(folder: str | PathLike[str] | None) -> Path | None:
    return None if folder is None else check_path(folder, "The folder of included files", ModelError)


def _note_closures(mechanism: Mechanism, file: Path) -> Mechanism:
    """The mechanism with a note where a file of closures lies beside its own and is not used."""
    beside = file.with_suffix(".yaml")
    if not beside.is_file() or not is_closure_file(read_bytes(beside)):
        return mechanism
    note = f"{beside}: the file lists loop closures, which are not used; to use them, load it instead of {file.name!r}."
    return replace(mechanism, notes=(note, *mechanism.notes))  # first: it changes more than any other


def _floating(mechanism: Mechanism, file: Path) -> Mechanism:
    """The mechanism on a free base, or as it is where it floats on a base that is no body of its own."""
    still, moving = {mechanism.base}, []
    for joint in mechanism.topology.outward:
        if joint.parent in still:
            if joint.nv:
                moving.append(joint)
            else:
                still.add(joint.child)
    free = [joint.name for joint in moving if joint.type.is_free]
    weighs = mechanism.base != WORLD and any(mechanism.link_by_name[link].mass for link in still)
    if not free or weighs:
        return mechanism.float_base()
    held = [joint.name for joint in moving if joint.name not in free]
    if not held:
        return mechanism
    note = (
        f"{file}: floating_base=True frees nothing more: {', '.join(free)} float on the base {mechanism.base!r}, and "
        f"{', '.join(held)} move on it as it stands. To free the base itself, call mechanism.float_base()."
    )
    return replace(mechanism, notes=(note, *mechanism.notes))  # first: it changes more than any other


def _description_path(name: str) -> str:
    """The file of a robot of the ``robot_descriptions`` package, which may fetch it."""
    if not name.isidentifier():
        raise ModelError(f"{name!r} is no robot description's name; they look like 'panda_description'.")
    try:
        importlib.import_module("robot_descriptions")
    except ImportError:
        raise ModelError(
            f"Loading {name!r} needs the package robot_descriptions: pip install factorgraph_dyn[descriptions]"
        ) from None
    try:
        module: Any = importlib.import_module(f"robot_descriptions.{name}")
    except ModuleNotFoundError as error:
        raise ModelError(
            f"robot_descriptions has no robot {name!r} ({error}); its list is in robot_descriptions.DESCRIPTIONS."
        ) from None
    except Exception as error:  # the package clones repositories while it is imported
        raise ModelError(
            f"robot_descriptions could not fetch {name!r}: {error}. It needs a network the first time."
        ) from error
    for attribute in ("URDF_PATH", "MJCF_PATH"):
        if hasattr(module, attribute):
            return str(getattr(module, attribute))
    raise ModelError(f"robot_descriptions gives no URDF or MJCF file for {name!r}.")
