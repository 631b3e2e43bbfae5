"""New mechanisms from an old one: methods that give what is asked for and change nothing in place.

Link frames, coordinates and names stay what they were wherever they can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_names, check_entries, check_finite, check_mapping
from factorgraph_dyn.errors import InputError, ModelError, check_name
from factorgraph_dyn.model.assembly import Connection, assemble, tidy
from factorgraph_dyn.model.description import PARTS
from factorgraph_dyn.model.moving import Moving
from factorgraph_dyn.model.parts import EFFECTS, Coupling, Frame, Joint, Link, Loop
from factorgraph_dyn.model.visuals import on_links
from factorgraph_dyn.spatial import Floats, skew

WORLD = "world"
FLOATING_BASE = "floating_base"


class Editable(Moving):
    """A mechanism from which others can be made."""

    def float_base(self) -> Self:
        """The mechanism on a free base: a floating joint to the old base from a new, fixed one.

        The new base is called ``world`` and the joint ``floating_base``, with underscores added where
        these names are taken. The joint is not actuated.
        """
        world = free_name(WORLD, self.place_names)
        tied: list[Joint | Loop | Coupling] = [*self.joints, *self.loops, *self.couplings]
        name = free_name(FLOATING_BASE, (part.name for part in tied))
        joint = Joint(name, "floating", world, self.base, actuated=False)
        return replace(self, links=(Link(world), *self.links), joints=(joint, *self.joints))

    def merge_fixed(self) -> Self:
        """The mechanism with every link on a fixed joint merged into its parent.

        A merged link leaves a frame of its name where it is, by ``place``.
        """
        carrier: dict[str, tuple[str, Floats]] = {self.base: (self.base, np.eye(4))}
        for joint in self.topology.outward:
            if not joint.nv:
                host, T = carrier[joint.parent]
                carrier[joint.child] = (host, tidy(T @ np.asarray(joint.placement)))
            else:
                carrier[joint.child] = (joint.child, np.eye(4))

        def placed(link: str, T: npt.ArrayLike) -> Floats:
            return tidy(carrier[link][1] @ np.asarray(T))

        links = {link.name: link for link in self.links if carrier[link.name][0] == link.name}
        frames = [replace(f, link=carrier[f.link][0], placement=placed(f.link, f.placement)) for f in self.frames]
        named = {frame.name for frame in frames}
        for link in self.links:
            host, T = carrier[link.name]
            if host != link.name:
                links[host] = _with_mass(links[host], link, T)
                if link.name not in named:
                    frames.append(Frame(link.name, host, T))
        joints = tuple(
            replace(joint, parent=carrier[joint.parent][0], placement=placed(joint.parent, joint.placement))
            for joint in self.joints
            if joint.nv
        )
        loops, notes = [], list(self.notes)
        for loop in self.loops:
            ends = carrier[loop.predecessor][0], carrier[loop.successor][0]
            if ends[0] == ends[1]:
                notes.append(f"Loop {loop.name!r} joins links that are merged into {ends[0]!r}; it is dropped.")
                continue
            loops.append(
                replace(
                    loop,
                    predecessor=ends[0],
                    successor=ends[1],
                    predecessor_placement=placed(loop.predecessor, loop.predecessor_placement),
                    successor_placement=placed(loop.successor, loop.successor_placement),
                )
            )
        return replace(
            self,
            links=tuple(links.values()),
            joints=joints,
            loops=tuple(loops),
            frames=tuple(frames),
            notes=tuple(notes),
            visuals=tuple(visual.moved(*carrier[visual.link][::-1]) for visual in self.visuals),
        )

    def subset(self, *, base: str | None = None, tips: Iterable[str] = (), q: npt.ArrayLike | None = None) -> Self:
        """The part of the mechanism from a link outward, to the given tips or to every end.

        The new base is fixed as it stands at the configuration q (default the neutral one), so that
        gravity keeps its direction. Loops, couplings and frames stay where all their ends do; a loop or
        coupling that is cut is dropped with a note.

        Args:
            base: Name of the link that becomes the base; default the base.
            tips: Names of the last links to keep; default all beyond the base.
            q: Where the base stands, shape (nq,).
        """
        start = self.base if base is None else base
        tips = as_names(tips, "tips")
        for name in (start, *tips):
            self.check_link(name)
        paths = {link: self._path(link, start) for link in self.link_names}
        ends = tips or tuple(link for link, path in paths.items() if path is not None)
        kept = {start}
        for tip in ends:
            path = paths[tip]
            if path is None:
                raise InputError(f"Link {tip!r} is not beyond link {start!r}; choose tips that are.")
            kept.update(path)
        joints = tuple(j for j in self.joints if j.child in kept and j.child != start)
        names = {joint.name for joint in joints}
        loops = tuple(x for x in self.loops if {x.predecessor, x.successor} <= kept)
        couplings = tuple(c for c in self.couplings if {c.joint, c.source} <= names)
        closed: list[Loop | Coupling] = [*self.loops, *self.couplings]
        staying: list[Loop | Coupling] = [*loops, *couplings]
        cut = [x.name for x in closed if x not in staying and not _outside(x, kept, names)]
        return replace(
            self,
            links=tuple(link for link in self.links if link.name in kept),
            joints=joints,
            loops=loops,
            couplings=couplings,
            frames=tuple(frame for frame in self.frames if frame.link in kept),
            gravity=self._gravity_at(start, q),
            visuals=on_links(self.visuals, kept),
            notes=(*self.notes, *(f"{name!r} was cut by taking a subset; it is dropped." for name in cut)),
        )

    def lock(self, joints: Iterable[str] | Mapping[str, npt.ArrayLike]) -> Self:
        """The mechanism with joints fixed where they stand.

        Args:
            joints: Names, to be fixed at their neutral place, or {name: coordinates}. A joint coupled to a
                locked one is locked with it.
        """
        values = dict(joints) if isinstance(joints, Mapping) else dict.fromkeys(as_names(joints, "joints"))
        places: dict[str, Floats] = {}
        for name, value in values.items():
            self.check_joint(name)
            joint = self.joint_by_name[name]
            if value is None:
                place = joint.type.neutral()
            else:
                what = f"The place where joint {name!r} is locked"
                place = check_finite(check_entries(value, joint.nq, what), (joint.nq,), what)
            places[name] = joint.type.normalise(place)
        couplings = self._propagate_locks(places)

        def locked(joint: Joint) -> Joint:
            if joint.name not in places:
                return joint
            T = tidy(joint.pose(places[joint.name]))
            return Joint(joint.name, "fixed", joint.parent, joint.child, placement=T)

        return replace(self, joints=tuple(locked(j) for j in self.joints), couplings=couplings)

    def change_base(self, link: str, *, q: npt.ArrayLike | None = None) -> Self:
        """The mechanism seen from another link, which becomes the base.

        Where the link hangs on a floating joint of the base, it becomes the floating one, and what else is on the base
        stays there; otherwise it is fixed as it stands at the configuration q (default the neutral one), so that
        gravity keeps its direction. Joints on the way are turned round: those of one freedom keep their coordinates,
        others describe the reversed motion.

        Raises:
            ModelError: A joint of several freedoms on the way, or the floating one, has damping, friction, armature
                or springs that the reversed joint cannot have.
        """
        self.check_link(link)
        if link == self.base:
            return self
        first = self.topology.path_to_base(link)[-1]
        if first.type.is_free:
            _check_free(first, link)
            others = (joint for joint in self.joints if joint.name != first.name)
            return self._assembled(self.base, (replace(first, child=link), *others), np.asarray(self.gravity))
        return self._assembled(link, self.joints, self._gravity_at(link, q))

    def add_payload(
        self,
        link: str,
        mass: float,
        com: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: npt.ArrayLike | None = None,
    ) -> Self:
        """The mechanism with a body rigidly added to a link.

        Args:
            link: Name of the link that carries it, or of a frame on it.
            mass: kg.
            com: Its centre of mass in the link or frame, m, shape (3,).
            inertia: About its com, in the link's or frame's axes, kg m^2, shape (3, 3); default a point mass.
        """
        body = Link("payload", mass, com, np.zeros((3, 3)) if inertia is None else inertia)
        host, T = self.place(link)
        links = tuple(_with_mass(x, body, T) if x.name == host else x for x in self.links)
        return replace(self, links=links)

    def add_frame(self, name: str, link: str, placement: npt.ArrayLike | None = None) -> Self:
        """The mechanism with one more named frame, on a link or relative to another frame."""
        host, T = self.place(link)
        pose = T if placement is None else T @ np.asarray(Frame(name, host, placement).placement)
        return replace(self, frames=(*self.frames, Frame(name, host, tidy(pose))))

    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> Self:
        """The mechanism with other names.

        Args:
            names: {old: new} for links, joints, loops, couplings and frames alike.
            name: A new name of the mechanism itself.
        """
        check_mapping(names, "names", "a mapping {old name: new name}")
        known = {part.name for group in PARTS for part in getattr(self, group)}
        for old in names:
            check_name(old, sorted(known), "name", f"mechanism {self.name!r}", InputError)

        def renamed(part: Any, fields: Iterable[str]) -> Any:
            return replace(part, **{field: names.get(old := getattr(part, field), old) for field in fields})

        parts: dict[str, Any] = {
            group: tuple(renamed(part, fields) for part in getattr(self, group)) for group, (_, fields) in PARTS.items()
        }
        parts["visuals"] = tuple(renamed(visual, ("link",)) for visual in self.visuals)
        return replace(self, name=self.name if name is None else name, **parts)

    def _assembled(self, base: str, joints: Iterable[Joint], gravity: Floats) -> Self:
        """The mechanism with its tree made anew of joints, some of which may be met from their children."""
        connections = [Connection(joint) for joint in joints] + [
            Connection(
                Joint(x.name, x.kind, x.predecessor, x.successor, x.predecessor_placement, x.axis, x.pitch),
                np.asarray(x.successor_placement),
                loop=True,
            )
            for x in self.loops
        ]
        made = assemble(
            type(self),
            self.name,
            self.links,
            connections,
            base=base,
            couplings=self.couplings,
            frames=self.frames,
            gravity=gravity,
            notes=self.notes,
            visuals=self.visuals,
        )
        return replace(made, strict=self.strict, closure_tolerance=self.closure_tolerance)

    def _propagate_locks(self, places: dict[str, Floats]) -> tuple[Coupling, ...]:
        """The couplings that are left when joints are locked; locks what they determine."""
        left = list(self.couplings)
        changed = True
        while changed:
            changed = False
            for coupling in list(left):
                here, source = places.get(coupling.joint), places.get(coupling.source)
                if here is None and source is None:
                    continue
                if here is not None and source is not None:
                    gap = float(here[0] - coupling.ratio * source[0] - coupling.offset)
                    one = self.joint_by_name[coupling.joint].freedom_units(self.size)[0]  # rad, or the size
                    if abs(gap) > self.closure_tolerance * max(one, abs(float(here[0]))):
                        raise ModelError(
                            f"Joints {coupling.joint!r} and {coupling.source!r} are locked {gap:g} off their "
                            f"coupling {coupling.name!r}; lock only one of them."
                        )
                elif source is not None:
                    places[coupling.joint] = coupling.ratio * source + coupling.offset
                elif here is not None and coupling.ratio != 0:
                    places[coupling.source] = (here - coupling.offset) / coupling.ratio
                left.remove(coupling)
                changed = True
        return tuple(left)

    def _gravity_at(self, link: str, q: npt.ArrayLike | None) -> Floats:
        """Gravity in the axes of a link, where it stands at q."""
        gravity = np.asarray(self.gravity)
        if link == self.base:
            return gravity
        here = self.neutral() if q is None else self.check_q(q)
        for joint in reversed(self.topology.path_to_base(link)):
            gravity = joint.pose(here[self.q_slices[joint.name]])[:3, :3].T @ gravity
        return gravity

    def _path(self, link: str, start: str) -> list[str] | None:
        """The links from a link inward to another, both included, or None where that is not on the way."""
        path = [link, *(joint.parent for joint in self.topology.path_to_base(link))]
        return path[: path.index(start) + 1] if start in path else None


def _with_mass(link: Link, body: Link, T_link_body: Floats) -> Link:
    """The link with a body added whose frame is placed at T_link_body."""
    mass = link.mass + body.mass
    R, p = T_link_body[:3, :3], T_link_body[:3, 3]
    coms = np.asarray(link.com), R @ np.asarray(body.com) + p
    com = (link.mass * coms[0] + body.mass * coms[1]) / mass if mass > 0 else coms[0]
    inertia = np.asarray(link.inertia) + R @ np.asarray(body.inertia) @ R.T
    for part, c in ((link, coms[0]), (body, coms[1])):
        arm = skew(c - com)
        inertia = inertia + part.mass * arm @ arm.T  # Steiner
    return Link(link.name, mass, com, 0.5 * (inertia + inertia.T))


def _check_free(floating: Joint, link: str) -> None:
    """Raise a ModelError where a floating joint that is to carry another link has effects on the one it carries."""
    effects = [name for name in EFFECTS if getattr(floating, name).any()]
    if effects and link != floating.child:
        raise ModelError(
            f"Joint {floating.name!r} floats and has {', '.join(effects)}, which act on link {floating.child!r}; as "
            f"the joint of {link!r} they would act on that. Set them to 0, or keep the base."
        )


def _outside(part: Loop | Coupling, links: set[str], joints: set[str]) -> bool:
    """Whether a loop or coupling has no end among the kept links or joints."""
    if isinstance(part, Loop):
        return part.predecessor not in links and part.successor not in links
    return part.joint not in joints and part.source not in joints


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name, with underscores added while it is taken."""
    names = set(taken)
    while wanted in names:
        wanted += "_"
    return wanted
