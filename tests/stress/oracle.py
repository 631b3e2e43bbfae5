"""The answers that everything is compared with: a dense solve in extended precision, for the tests alone.

Newton-Euler equations of every link in the world's axes, projected on the joint motions (Kane), with loops and
couplings as constraints:

    M a + h = tau + J^T lambda        J a + Jdot v = 0

    M = sum of m U_c^T U_c + W^T I W, + armature
    h = sum of m U_c^T (beta_c - g) + W^T (I alpha + w x I w), + losses - external

Whatever is known goes to the right. The matrix is scaled by powers of two until its rows and columns are of order
one; an SVD in double precision gives its rank, condition and null space, and refinement with residuals in extended
precision gives the answer. Every result is linear in the unknowns, y = P x + c: it is unique where P has nothing on
the null space, and what rounding of the equations can change of it is bounded by |P| |K^-1| (|K| |x| + |terms of b|).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tests.stress.constraints import RANK, TINY, constraint_rows
from tests.stress.kinematics import LD, TURNS, array, bodies, cross, hat, norm, outward, slices

NORMWISE = 0.1  # of the largest scaled row's terms that may show in every row, as in any stable dense solve
ROUNDING = 1e-13  # some hundred roundings of every term, carried through the inverse: what a bound allows
NOTHING = 1e-12  # of the largest terms, in scaled rows
TURNED = 1e-8  # the root of what a rotation's entries are exact to: a needle's inertia about itself has their squares
NEEDLE = 1e-13  # of the inertia that bodies have about other axes: less is rounding of that
UNIQUE = 1e-7  # share of the null space that a result may have and still be unique, of scaled unknowns


@dataclass
class Answer:
    """One result: its value, what rounding may change of it (in units of eps), and whether it is unique.

    `usual` is the size of such results in this mechanism, for those that are zero.
    """

    value: np.ndarray
    bound: np.ndarray
    unique: bool
    usual: np.ndarray | None = None


@dataclass
class Solved:
    """A linear system's solution.

    x and bound (n,), the null space (n, k), the condition of the scaled matrix without its null space, how far the
    equations contradict each other as a share of their terms, the last correction as a share of x, and the
    unknowns' scales (n,).
    """

    x: np.ndarray
    bound: np.ndarray
    null: np.ndarray
    condition: float
    contradiction: float
    own_error: float
    columns: np.ndarray

    def is_unique(self, P) -> bool:
        """Whether P x is the same for all solutions x."""
        if not self.null.size:
            return True
        moved = np.abs(P @ self.null).max(axis=1, initial=LD(0))
        return bool((moved <= UNIQUE * (np.abs(P) @ self.columns)).all())


def powers_of_two(K, rows, columns, rounds: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Scales of rows and columns, near the given ones, that bring the largest entries of both near one (Ruiz)."""
    rows, columns = (np.exp2(np.round(np.log2(scales.astype(float)))).astype(LD) for scales in (rows, columns))
    size = np.abs(K)
    for _ in range(rounds):
        scaled = rows[:, None] * size * columns
        rows = rows * _half_inverse(scaled.max(axis=1, initial=LD(0)))
        scaled = rows[:, None] * size * columns
        columns = columns * _half_inverse(scaled.max(axis=0, initial=LD(0)))
    return rows, columns


def _half_inverse(sizes) -> np.ndarray:
    powers = np.zeros(len(sizes))
    some = sizes > 0
    powers[some] = -np.round(np.log2(sizes[some]).astype(float) / 2)
    return np.exp2(powers.astype(LD))


def solve(K, b, K_terms, terms, scales) -> Solved:
    """K x = b by refinement in extended precision; K_terms and terms bound what K and b are summed from.

    Solved with rows and columns as they are and near the given scales; the better one counts. Beside equations of
    closure, in which there are no masses, those of light links look like nothing as they are; needles and links
    without mass that closure holds do so by their inertias.
    """
    plain = tuple(np.ones(size, dtype=LD) for size in K.shape)
    found = [_solve(K, b, K_terms, terms, start) for start in (plain, scales)]
    return min(found, key=lambda solved: (solved.null.shape[1], solved.condition))


def _solve(K, b, K_terms, terms, scales) -> Solved:
    """The same with rows and columns near given scales."""
    n = K.shape[1]
    if not K.size:
        nothing = np.zeros((n, *b.shape[1:]), dtype=LD)
        contradiction = float((np.abs(b) / np.maximum(terms, TINY)).max(initial=LD(0)))
        return Solved(nothing, nothing, np.eye(n, dtype=LD), 1.0, contradiction, 0.0, np.ones(n, dtype=LD))
    rows, columns = powers_of_two(K_terms, *scales)  # so that what is zero but for rounding stays so
    scaled = (rows[:, None] * K * columns).astype(float)
    left, s, right = np.linalg.svd(scaled, full_matrices=True)
    rank = int((s > RANK * max(s[0], 1.0)).sum())  # its terms are of order one, if it is not
    inverse = (right[:rank].T / s[:rank]) @ left[:, :rank].T
    wide_rows = rows.reshape(-1, *[1] * (b.ndim - 1))
    wide_columns = columns.reshape(-1, *[1] * (b.ndim - 1))
    x = np.zeros((n, *b.shape[1:]), dtype=LD)
    last = np.inf
    for _ in range(12):
        step = wide_columns * (inverse @ (wide_rows * (b - K @ x)).astype(float))
        x = x + step
        size = float(np.abs(step / wide_columns).max(initial=LD(0)) / max(np.abs(x / wide_columns).max(), TINY))
        if not size < 0.5 * last:
            break
        last = size
    spread = K_terms @ np.abs(x) + terms
    scaled_spread = (wide_rows * spread).astype(float)
    scaled_spread += NORMWISE * scaled_spread.max(axis=0)
    bound = wide_columns * (np.abs(inverse) @ scaled_spread)
    # Row by row, but not of rows in which there is nothing but rounding.
    least = NOTHING * scaled_spread.max() / wide_rows
    contradiction = float((np.abs(b - K @ x) / np.maximum(np.maximum(spread, least), TINY)).max(initial=LD(0)))
    condition = float(s[0] / s[rank - 1]) if rank else 1.0
    # What rounding of the terms that entries are summed from does, whatever the scales (Bauer, Skeel).
    amplified = np.abs(inverse) @ (rows[:, None] * K_terms * columns).astype(float)
    condition = max(condition, float(amplified.sum(axis=1).max(initial=0.0)))
    return Solved(x, bound, columns[:, None] * right[rank:].T, condition, contradiction, min(last, 1.0), columns)


class Oracle:
    """A mechanism at a state, with its external wrenches (by link, in the link's frame)."""

    def __init__(self, mechanism, q, v, wrenches=None):
        self.mechanism = mechanism
        self.q, self.v = array(q), array(v)
        self.nv = len(self.v)
        self.wrenches = {name: array(wrench) for name, wrench in (wrenches or {}).items()}
        self.bodies = bodies(mechanism, q, v)
        self.rows = constraint_rows(mechanism, q, v, self.bodies)
        self.gravity = array(mechanism.gravity)
        self.at_v = slices(mechanism, 1)
        self._dynamics()

    # ---- sizes

    @cached_property
    def length(self) -> LD:
        """The longest arm of a moving link: what metres are compared with."""
        return own_length(self.mechanism)

    @cached_property
    def units(self) -> np.ndarray:
        """Units of v: 1 of turning freedoms, the length of sliding ones."""
        return freedom_units(self.mechanism)

    @cached_property
    def has_needles(self) -> bool:
        """Whether a joint moves less inertia than rounding of the bodies' largest would be."""
        rough = np.array(self.armature)
        for link in self.mechanism.links:
            body = self.bodies[link.name]
            arms = body.U - hat(body.R @ array(link.com)) @ body.W
            largest = np.abs(array(link.inertia)).max(initial=LD(0))
            rough = rough + largest * (body.W**2).sum(axis=0) + LD(link.mass) * (arms**2).sum(axis=0)
        return bool((np.diag(self.M) < NEEDLE * rough).any())

    # ---- the equations

    def _dynamics(self):
        nv = self.nv
        self.M, self.h, self.h_terms = np.zeros((nv, nv), dtype=LD), np.zeros(nv, dtype=LD), np.zeros(nv, dtype=LD)
        self.M_terms = np.zeros((nv, nv), dtype=LD)
        self.pushes = {}  # by link: wrench needed about its origin, linear in a, and its terms
        for link in self.mechanism.links:
            body = self.bodies[link.name]
            linear, constant, terms, linear_terms = self._inertia(link, body)
            self.pushes[link.name] = (linear, constant, terms)
            motion = np.concatenate([body.W, body.U])
            self.M += motion.T @ linear
            self.M_terms += np.abs(motion).T @ linear_terms
            self.h += motion.T @ constant
            self.h_terms += np.abs(motion).T @ terms
        self.M = (self.M + self.M.T) / 2
        self.losses = np.zeros(nv, dtype=LD)
        at_q = slices(self.mechanism, 0)
        self.armature = np.zeros(nv, dtype=LD)
        for joint in self.mechanism.joints:
            here = self.at_v[joint.name]
            self.armature[here] = array(joint.armature)
            v = self.v[here]
            self.losses[here] = array(joint.damping) * v + array(joint.friction) * np.sign(v)
            if np.any(joint.stiffness):
                q = self.q[at_q[joint.name]]
                self.losses[here] += array(joint.stiffness) * (q - array(joint.rest))
                self.h_terms[here] += array(joint.stiffness) * (np.abs(q) + np.abs(array(joint.rest)))
        self.M += np.diag(self.armature)
        self.M_terms += np.diag(self.armature)
        self.h += self.losses
        self.h_terms += np.abs(self.losses)
        none = np.zeros((0, nv), dtype=LD)
        self.J = np.concatenate([none, *(row.J for row in self.rows)])
        self.J_terms = np.concatenate([none, *(row.J_terms for row in self.rows)])
        empty = np.zeros(0, dtype=LD)
        self.gamma = -np.concatenate([empty, *(row.Jdot_v for row in self.rows)])
        self.gamma_terms = np.concatenate([empty, *(row.terms for row in self.rows)])

    def _inertia(self, link, body):
        """The wrench [moment; force] about a link's origin, world axes: linear in a, at a = 0, and its terms."""
        m, c = LD(link.mass), body.R @ array(link.com)
        given = array(link.inertia)
        inertia = body.R @ ((given + given.T) / 2) @ body.R.T
        R_terms = np.maximum(np.abs(body.R), TURNED)
        inertia_terms = R_terms @ np.abs(given) @ R_terms.T
        H = hat(c)
        force = m * (body.U - H @ body.W)
        force_terms = m * (np.abs(body.U) + np.abs(H) @ np.abs(body.W))
        moment_terms = inertia_terms @ np.abs(body.W) + np.abs(H) @ force_terms
        centre = body.beta - H @ body.alpha + cross(body.w, cross(body.w, c)) - self.gravity
        push = m * centre
        moment = inertia @ body.W + H @ force
        turn = inertia @ body.alpha + cross(body.w, inertia @ body.w) + H @ push
        w2 = norm(body.w) ** 2
        size = m * (body.beta_terms + norm(c) * (body.alpha_terms + w2) + norm(self.gravity))
        spin = np.abs(inertia).max() * (body.alpha_terms + w2) + norm(c) * size
        linear, constant = np.concatenate([moment, force]), np.concatenate([turn, push])
        terms = np.concatenate([np.full(3, spin), np.full(3, size)])
        if link.name in self.wrenches:
            given = self.wrenches[link.name]
            outside = np.concatenate([body.R @ given[:3], body.R @ given[3:]])
            constant = constant - outside
            terms = terms + np.abs(outside)
        # Whoever eliminates wrenches as vectors of six mixes their parts: sizes are of the whole, in its own units.
        force = max(terms[:3].max() / self.length, terms[3:].max())
        terms = force * array([self.length] * 3 + [1] * 3)
        return linear, constant, terms, np.concatenate([moment_terms, force_terms])

    # ---- problems

    def ask(self, a, tau, a_known, tau_known) -> Answered:
        """Everything, where some entries of a and of tau are known."""
        a = np.where(a_known, array(a), LD(0))
        tau = np.where(tau_known, array(tau), LD(0))
        ua, ut, m = np.flatnonzero(~a_known), np.flatnonzero(~tau_known), len(self.J)
        E = np.eye(self.nv, dtype=LD)[:, ut]
        nothing = np.zeros((m, len(ut) + m), dtype=LD)
        K = np.block([[self.M[:, ua], -E, -self.J.T], [self.J[:, ua], nothing]])
        K_terms = np.block([[self.M_terms[:, ua], E, self.J_terms.T], [self.J_terms[:, ua], nothing]])
        b = np.concatenate([tau - self.h - self.M @ a, self.gamma - self.J @ a])
        terms = np.concatenate(
            [
                np.abs(tau) + self.h_terms + self.M_terms @ np.abs(a),
                self.gamma_terms + self.J_terms @ np.abs(a),
            ]
        )
        of_a, of_rows = self._scales
        scales = np.concatenate([of_a, of_rows]), np.concatenate([of_a[ua], 1 / of_a[ut], of_rows])
        return Answered(self, solve(K, b, K_terms, terms, scales), a, tau, ua, ut)

    @cached_property
    def _scales(self) -> tuple[np.ndarray, np.ndarray]:
        """One over the root of the inertia that each joint moves, and of equations of closure what they are then."""
        inertia = np.diag(self.M_terms)
        least = inertia[inertia > 0].min() if (inertia > 0).any() else LD(1)
        of_a = 1 / np.sqrt(np.where(inertia > 0, inertia, least))
        size = (self.J_terms * of_a).max(axis=1, initial=LD(0))
        return of_a, 1 / np.where(size > 0, size, LD(1))

    def respond(self, entries) -> tuple[Answer, float]:
        """Accelerations for unit torques at the entries, under closure: (nv, inputs), and the condition."""
        m = len(self.J)
        nothing = np.zeros((m, m), dtype=LD)
        K = np.block([[self.M, -self.J.T], [self.J, nothing]])
        K_terms = np.block([[self.M_terms, self.J_terms.T], [self.J_terms, nothing]])
        b = np.zeros((self.nv + m, len(entries)), dtype=LD)
        b[entries, np.arange(len(entries))] = 1
        solved = solve(K, b, K_terms, np.abs(b), [np.concatenate(self._scales)] * 2)
        unique = solved.is_unique(np.eye(self.nv, self.nv + m, dtype=LD))
        inertia = np.diag(self.M_terms)
        # What motors do where nothing holds their joint; joints that move no inertia do nothing usual.
        free = np.where(inertia > 0, 1 / np.sqrt(np.maximum(inertia, TINY)), LD(0))
        usual = np.outer(free, free[entries])
        return Answer(solved.x[: self.nv], solved.bound[: self.nv], unique, usual), solved.condition

    def tree(self) -> Oracle:
        """The same without loops and couplings."""
        return Oracle(replace(self.mechanism, loops=(), couplings=()), self.q, self.v, self.wrenches)


class Answered:
    """The answer of a problem: all results by name (a, tau, A[link], V[link], F[joint])."""

    def __init__(self, oracle: Oracle, solved: Solved, a, tau, ua, ut):
        self.oracle, self.solved = oracle, solved
        self.condition, self.contradiction = solved.condition, solved.contradiction
        nv, m = oracle.nv, len(oracle.J)
        # All of (a, tau, lambda) as a linear function of the unknowns.
        n = len(ua) + len(ut) + m
        self.P = np.zeros((2 * nv + m, n), dtype=LD)
        self.P[ua, np.arange(len(ua))] = 1
        self.P[nv + ut, len(ua) + np.arange(len(ut))] = 1
        self.P[2 * nv + np.arange(m), len(ua) + len(ut) + np.arange(m)] = 1
        self.c = np.concatenate([a, tau, np.zeros(m, dtype=LD)])
        self.all = self.P @ solved.x + self.c

    def __getitem__(self, name: str) -> Answer:
        nv = self.oracle.nv
        if name in ("a", "tau"):
            L = np.zeros((nv, len(self.all)), dtype=LD)
            L[np.arange(nv), np.arange(nv) + (nv if name == "tau" else 0)] = 1
            return self._linear(L, np.zeros(nv, dtype=LD), np.zeros(nv, dtype=LD))
        kind, owner = name[0], name[2:-1]
        if kind == "F":
            L, constant, terms = self._wrenches[owner]
            answer = self._linear(L, constant, terms + self._usual_wrench)
            answer.usual = self._usual_wrench
            return answer
        return self._motion(kind, owner)

    def _linear(self, L, constant, terms) -> Answer:
        P = L @ self.P
        value = L @ self.all + constant
        bound = np.abs(P) @ self.solved.bound + np.abs(L) @ np.abs(self.c) + terms
        return Answer(value, bound, self.solved.is_unique(P))

    def _motion(self, kind, link) -> Answer:
        oracle = self.oracle
        body = oracle.bodies[link]
        R, nv = body.R, oracle.nv
        L = np.zeros((6, len(self.all)), dtype=LD)
        u = R.T @ body.u
        if kind == "V":
            value = np.concatenate([R.T @ body.w, u])
            speeds = np.abs(oracle.v)
            terms = np.concatenate([np.abs(R.T @ body.W) @ speeds, np.abs(R.T @ body.U) @ speeds])
            return self._linear(L, value, terms)
        L[:3, :nv], L[3:, :nv] = R.T @ body.W, R.T @ body.U
        constant = np.concatenate([R.T @ body.alpha, R.T @ (body.beta - oracle.gravity) - cross(R.T @ body.w, u)])
        linear = body.beta_terms + norm(oracle.gravity) + norm(body.w) * norm(u)
        return self._linear(L, constant, np.concatenate([np.full(3, body.alpha_terms), np.full(3, linear)]))

    @cached_property
    def _usual_wrench(self) -> np.ndarray:
        """The largest terms of any link's balance: what a wrench that should be zero is compared with.

        Where links only slide, v x m v is one, as in any algebra of twists.
        """
        oracle, length = self.oracle, self.oracle.length
        forces = [terms[3] for _, _, terms in oracle.pushes.values()]
        forces += [LD(link.mass) * norm(oracle.bodies[link.name].u) ** 2 / length for link in oracle.mechanism.links]
        tau = self.all[oracle.nv : 2 * oracle.nv]
        force = max([*forces, np.abs(tau * oracle.units).max(initial=LD(0)) / length])
        return force * array([length, length, length, 1, 1, 1])

    @cached_property
    def _wrenches(self):
        """What each joint and loop passes on, in its child's frame, linear in (a, tau, lambda)."""
        oracle, mechanism = self.oracle, self.oracle.mechanism
        nv, size = oracle.nv, len(self.all)
        sums = {}
        for name, (linear, constant, terms) in oracle.pushes.items():
            L = np.zeros((6, size), dtype=LD)
            L[:, :nv] = linear
            sums[name] = [L, constant.copy(), terms.copy()]
        found = {}
        start = 2 * nv
        for row in oracle.rows:
            if row.C is not None:
                loop = next(loop for loop in mechanism.loops if loop.name == row.name)
                own = np.zeros((6, size), dtype=LD)
                own[:, start : start + row.C.shape[1]] = row.C
                for link, sign in ((loop.successor, -1), (loop.predecessor, 1)):
                    arm = row.point - oracle.bodies[link].p
                    sums[link][0] += sign * _carried(own, arm)
                R = oracle.bodies[loop.successor].R
                at_link = _carried(own, row.point - oracle.bodies[loop.successor].p)
                found[loop.name] = (_rotated(at_link, R), np.zeros(6, dtype=LD), np.zeros(6, dtype=LD))
            start += len(row.J)
        for joint in reversed(outward(mechanism)):
            L, constant, terms = sums[joint.child]
            body, parent = oracle.bodies[joint.child], oracle.bodies[joint.parent]
            found[joint.name] = (_rotated(L, body.R), _rotated(constant, body.R), np.abs(_rotated_size(terms)))
            arm = body.p - parent.p
            sums[joint.parent][0] += _carried(L, arm)
            sums[joint.parent][1] += _carried(constant, arm)
            moment = terms[:3] + norm(arm) * terms[3:].max()
            sums[joint.parent][2] += np.concatenate([moment, terms[3:]])
        return found


def _carried(wrench, arm):
    """A wrench about a point, about another one from which the arm leads to it."""
    moved = wrench.copy()
    moved[:3] += hat(arm) @ wrench[3:]
    return moved


def _rotated(wrench, R):
    return np.concatenate([R.T @ wrench[:3], R.T @ wrench[3:]])


def _rotated_size(terms):
    return np.concatenate([np.full(3, terms[:3].max()), np.full(3, terms[3:].max())])


def own_length(mechanism) -> LD:
    """The longest arm or radius of gyration of a moving link, or pitch; 1 where there is none."""
    base = ({link.name for link in mechanism.links} - {joint.child for joint in mechanism.joints}).pop()
    sizes = [LD(0)]
    for link in mechanism.links:
        if link.name != base and link.mass > 0:
            sizes += [norm(array(link.com)), np.sqrt(np.abs(array(link.inertia)).max() / LD(link.mass))]
    ends = [(joint.parent, joint.placement) for joint in mechanism.joints]
    for loop in mechanism.loops:
        ends += [(loop.predecessor, loop.predecessor_placement), (loop.successor, loop.successor_placement)]
    sizes += [norm(array(placement)[:3, 3]) for link, placement in ends if link != base]
    sizes += [abs(LD(part.pitch)) for part in (*mechanism.joints, *mechanism.loops)]
    return max(sizes) or LD(1)


def freedom_units(mechanism) -> np.ndarray:
    """Units of v: 1 of turning freedoms, the mechanism's length of sliding ones."""
    length = own_length(mechanism)
    turns = [turn for joint in mechanism.joints for turn in TURNS[joint.kind]]
    return array([LD(1) if turn else length for turn in turns])
