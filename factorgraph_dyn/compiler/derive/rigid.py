"""How a tree changes with q and v, as rigid motions: what makes derivatives cheap.

Takes a solved tree of symbols; gives the equations of its change, with one column for each direction. Differentiated as
they stand, the equations of every link beyond a joint change with that joint's q and v, because all velocities do. In
other unknowns only the joint's own equations change. With ' the change, V' = [w'; .] of a twist, s = S q' and, seen
from the child, B = Ad_cp V_p = [w; l], the parent's angular acceleration and its body's acceleration at the joint
[Aw; al],

    X_i = A_i' - ad(V_i') V_i                   for the acceleration
    Z_j = F_j' - ad(s)^T F_j                    for the wrench, as the parent sees it

satisfy, W_i = w_i' being an unknown of its own,

    W_c - R_cp W_p                = (B x s)_w + S_w v'
    X_c - Ad_cp X_p - S a'        = [Aw x s_w - (w x s_w) x w; al x s_w - 2 (w x s_w) x l + Aw x s_v - (w x s_v) x w]
                                    + 2 ad(B) S v' + ad(S v) S v'
    G X_i + 2 K_i W_i - Z_in + sum Ad^T Z_out  =  ad(s)^T F_in
    S^T Z + armature a' - tau'    = -(losses)' - S^T ad(s)^T F

    2 K w' = 2 [tr(L) w' - L^T w'; w' x p]      L = h u^T - Sigma [w],  p = m u + w x h,  Sigma = tr(I)/2 - I

where u is the velocity of the link's origin, m, h, I its mass, first moment and inertia about the origin. Eliminated
link by link from the tips, this is the derivative of recursive Newton-Euler on composite bodies; what is left before
the last step is M a' = tau' - (d tau / d q) q' - (d tau / d v) v'.

Sources: Carpentier & Mansard (2018); Singh, Russo & Wensing (2022); Echeandia & Wensing (2021) for K.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from factorgraph_dyn.compiler.derive.rates import Rates
from factorgraph_dyn.compiler.eliminate import Unknown
from factorgraph_dyn.compiler.outputs import Solved, read_output
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ZERO
from factorgraph_dyn.equations.linear_graph import Factor
from factorgraph_dyn.equations.state import JointState
from factorgraph_dyn.spatial import Array, Floats, bracket, cross, dual_bracket, skew

Terms = list[tuple[int, Array]]
"""Columns, and what the rows of an equation hold in each, on its left side."""


class RigidChange:
    """The change of a tree with q and v."""

    def __init__(self, solved: Solved, rates: Rates, q: Sequence[int], v: Sequence[int]) -> None:
        """Look at a solved tree.

        Args:
            solved: The tree's problem after its elimination.
            rates: Changes of the tape's values.
            q, v: Columns of the directions, one a freedom; none where they are not asked for.
        """
        self.solved, self.rates = solved, rates
        self._q, self._v = q, v
        joints = solved.state.joints.values()
        first = range(solved.graph.columns, solved.graph.columns + 3 * len(joints), 3)
        self.turns = {joint.child: range(k, k + 3) for k, joint in zip(first, joints, strict=True)}
        self._into = {joint.child: joint for joint in joints}
        self._a = symbols(solved.tape, read_output(solved, "a"))

    # The equations

    def kinds(self) -> Iterator[tuple[int, bool]]:
        """Every row's number, and whether what q and v change in it is written here."""
        number = 0
        for factor in self.solved.graph.factors:
            for _ in range(factor.rows):
                yield number, factor.kind in ("acceleration", "wrench")
                number += 1

    def completed(self, rows: dict[int, Row]) -> tuple[dict[int, Row], list[Unknown], dict[int, int]]:
        """The equations with the columns of q and v, the order of their unknowns, and the rows to solve for these.

        Args:
            rows: The equations with what other arguments change in them; those of motors and couplings with all
                of it. They are completed in place.
        """
        partners, number = {}, 0
        beside = {"acceleration": self.acceleration, "wrench": self.wrench, "torque": self.torque}
        for factor in self.solved.graph.factors:
            if factor.kind in beside:
                self._add(rows, number, beside[factor.kind](factor.owner))
            for k, column in enumerate(self._solved_by(factor)):
                partners[column] = number + k
            number += factor.rows
        for joint in self.solved.state.joints.values():
            self._add(rows, number, self.turn(joint.name))
            for k, column in enumerate(self.turns[joint.child]):
                partners[column] = number + k
            number += 3
        return rows, self._order(), partners

    def _add(self, rows: dict[int, Row], first: int, terms: Terms) -> None:
        tape = self.solved.tape
        for column, entries in terms:
            for number, ref in enumerate(references(tape, entries), start=first):
                row = rows.setdefault(number, {})
                row[column] = tape.add(row.get(column, ZERO), int(ref))

    def _solved_by(self, factor: Factor) -> Sequence[int]:
        """Columns that a factor's rows are solved for, one each."""
        if factor.kind == "acceleration":
            return self._columns(f"A[{self.solved.state.joints[factor.owner].child}]")
        return self._columns(f"F[{self._into[factor.owner].name}]") if factor.kind == "wrench" else ()

    def _columns(self, name: str) -> Sequence[int]:
        part = self.solved.graph.column_slices[self.solved.graph.by_name[name]]
        return range(part.start, part.stop)

    def _order(self) -> list[Unknown]:
        """Composite bodies: link by link from the tips, then what joints do."""
        inward = list(reversed(tuple(self.solved.state.joints.values())))
        links = [name for j in inward for name in (f"F[{j.name}]", f"W[{j.child}]", f"A[{j.child}]")]
        graph = self.solved.graph
        joints = [f"a[{joint.name}]" for joint in inward]
        joints += sorted((name for name, one in graph.by_name.items() if one.kind in ("lambda", "tau")))
        turns = {f"W[{link}]": columns for link, columns in self.turns.items()}
        there = [name for name in (*links, *joints) if name in turns or name in graph.by_name]
        return [Unknown(name, tuple(turns[name] if name in turns else self._columns(name))) for name in there]

    def link_columns(self) -> set[int]:
        """Columns of the unknowns of links, which those of joints do not need."""
        slices = self.solved.graph.column_slices
        links = {column for one, part in slices.items() if one.kind in "AF" for column in range(part.start, part.stop)}
        return links | {column for columns in self.turns.values() for column in columns}

    def changes(self, solution: Mapping[int, Row], *, of_links: bool) -> Iterator[tuple[int, Row]]:
        """The change of every unknown of the problem, by column.

        Args:
            solution: Of the equations of this change.
            of_links: Whether those of links' accelerations and wrenches are asked for, too.
        """
        for variable, part in self.solved.graph.column_slices.items():
            columns = range(part.start, part.stop)
            if variable.kind not in ("A", "F"):
                yield from ((column, solution[column]) for column in columns)
            elif of_links:
                back = self._acceleration_back if variable.kind == "A" else self._wrench_back
                yield from zip(columns, back(variable.owner, columns, solution), strict=True)

    def _acceleration_back(self, link: str, columns: Sequence[int], solution: Mapping[int, Row]) -> list[Row]:
        """Of a classical acceleration: X + [W x w; 2 W x u]."""
        tape, V = self.solved.tape, self.solved.state.twists[link]
        found = [dict(solution[column]) for column in columns]
        turns = [solution[column] for column in self.turns[link]]
        for direction in dict.fromkeys(direction for turn in turns for direction in turn):
            W = symbols(tape, [turn.get(direction, ZERO) for turn in turns])
            more = np.concatenate([cross(W, V[:3]), 2.0 * cross(W, V[3:])])
            for row, ref in zip(found, references(tape, more), strict=True):
                row[direction] = tape.add(row.get(direction, ZERO), int(ref))
        return found

    def _wrench_back(self, joint: str, columns: Sequence[int], solution: Mapping[int, Row]) -> list[Row]:
        """Of a wrench: Z + ad(s)^T F."""
        tape = self.solved.tape
        found = [dict(solution[column]) for column in columns]
        for direction, pushed in _Moving(self, self.solved.state.joints[joint]).pushed():
            for row, ref in zip(found, references(tape, pushed), strict=True):
                row[direction] = tape.add(row.get(direction, ZERO), int(ref))
        return found

    # Their parts

    def acceleration(self, name: str) -> Terms:
        """Beside X_c - Ad X_p - S a' in the equation of a joint."""
        return _Moving(self, self.solved.state.joints[name]).acceleration()

    def turn(self, name: str) -> Terms:
        """The equation of a joint's W, in full."""
        return _Moving(self, self.solved.state.joints[name]).turn()

    def wrench(self, link: str) -> Terms:
        """Beside G X - Z_in + sum Ad^T Z_out in the balance of a link."""
        G = self.solved.mechanism.link_by_name[link].spatial_inertia
        K = _twice_coriolis(G, self.solved.state.twists[link])
        here = _Moving(self, self._into[link])
        return [*zip(self.turns[link], K.T, strict=True), *((column, -pushed) for column, pushed in here.pushed())]

    def torque(self, name: str) -> Terms:
        """Beside what the equation of a motor becomes where F' is taken for Z."""
        here = self.solved.state.joints[name]
        return [(column, here.S.T @ pushed) for column, pushed in _Moving(self, here).pushed()]

    def directions(self, joint: JointState) -> tuple[Sequence[int], Sequence[int]]:
        """Columns of a joint's q and v."""
        part = self.solved.mechanism.v_slices[joint.name]
        return self._q[part], self._v[part]

    def a(self, joint: JointState) -> Array:
        """The joint's acceleration."""
        return self._a[self.solved.mechanism.v_slices[joint.name]]

    def value(self, variable: str) -> SymbolArray:
        """What was solved for."""
        return symbols(self.solved.tape, self.solved.of(variable))

    def varied(self, values: Array, column: int) -> Array:
        """The change of values along a direction."""
        tape = self.solved.tape
        refs = [self.rates.of(int(ref)).get(column, ZERO) for ref in references(tape, values).flat]
        return symbols(tape, refs).reshape(values.shape)


class _Moving:
    """A joint, and what its own motion changes."""

    def __init__(self, change: RigidChange, joint: JointState) -> None:
        self.change, self.joint = change, joint
        self.q, self.v = change.directions(joint)
        self.B = joint.Ad_child_parent @ change.solved.state.twists[joint.parent]

    @cached_property
    def _parent_acceleration(self) -> tuple[Array, Array]:
        """Angular acceleration of the parent, and classical one of its body where the child's origin is."""
        joint, w = self.joint, self.B[:3]
        u = joint.S @ joint.v
        A = self.change.value(f"A[{joint.child}]") - joint.S @ self.change.a(joint)
        if joint.S_rate_v is not None:
            A = A - joint.S_rate_v
        return A[:3] - cross(w, u[:3]), A[3:] - 2.0 * cross(w, u[3:]) - cross(u[:3], u[3:])

    def acceleration(self) -> Terms:
        joint, B = self.joint, self.B
        u, V = joint.S @ joint.v, self.change.solved.state.twists[joint.child]
        terms: Terms = [
            (column, -self._displaced(s) - self._reshaped(column, V))
            for column, s in zip(self.q, joint.S.T, strict=False)
        ]
        for column, s in zip(self.v, joint.S.T, strict=False):
            rest = bracket(u, s)
            if joint.S_rate_v is not None:
                rest = rest + self.change.varied(joint.S_rate_v, column)
            terms.append((column, -2.0 * bracket(B, s) - rest))
        return terms

    def _displaced(self, s: Array) -> Array:
        """What a displacement of the child by s does to its X."""
        (Aw, al), w, slide = self._parent_acceleration, self.B[:3], self.B[3:]
        turned, slid = s[:3], s[3:]
        a = cross(w, turned)
        linear = cross(al, turned) - 2.0 * cross(a, slide) + cross(Aw, slid) - cross(cross(w, slid), w)
        return np.concatenate([cross(Aw, turned) - cross(a, w), linear])

    def _reshaped(self, column: int, V: Array) -> Array | float:
        """What the change of S itself does to X: S' a + ad(V) S' v - ad(S' v) B + (dS v)'."""
        joint = self.joint
        if joint.S_rate_v is None:
            return 0.0
        S = self.change.varied(joint.S, column)
        moved = S @ joint.v
        bent = S @ self.change.a(joint) + bracket(V, moved) - bracket(moved, self.B)
        return bent + self.change.varied(joint.S_rate_v, column)

    def turn(self) -> Terms:
        joint, turns = self.joint, self.change.turns
        terms: Terms = list(zip(turns[joint.child], np.eye(3), strict=True))
        if joint.parent in turns:
            terms += zip(turns[joint.parent], -joint.Ad_child_parent[:3, :3].T, strict=True)
        for column, s in zip(self.q, joint.S.T, strict=False):
            turned = cross(self.B[:3], s[:3])
            if joint.S_rate_v is not None:
                turned = turned + (self.change.varied(joint.S, column) @ joint.v)[:3]
            terms.append((column, -turned))
        return terms + [(column, -s[:3]) for column, s in zip(self.v, joint.S.T, strict=False)]

    def pushed(self) -> Terms:
        """The wrench ad(s)^T F of every direction of q."""
        if not len(self.q):
            return []
        F = self.change.value(f"F[{self.joint.name}]")
        return [(column, dual_bracket(s, F)) for column, s in zip(self.q, self.joint.S.T, strict=True)]


def _twice_coriolis(G: Floats, V: Array) -> Array:
    """The matrix 2 K of a link: the wrench that a change of its angular velocity asks for, shape (6, 3)."""
    inertia, mass, w, u = G[:3, :3], G[3, 3], V[:3], V[3:]
    h = np.array([G[2, 4], G[0, 5], G[1, 3]])  # from the block m [c]
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    L = np.outer(2.0 * h, u) - (2.0 * second) @ skew(w)
    p = (2.0 * mass) * u + cross(w, 2.0 * h)
    return np.concatenate([np.trace(L) * np.eye(3) - L.T, -skew(p)])
