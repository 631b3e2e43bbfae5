"""Identification: motions and torques of a log become inertial parameters of links, and losses of joints.

    tau = Y(q, v, a) p  +  armature a + damping v + friction sign(v)  +  noise

1. ``columns``: the regressor of the unknowns, a kernel; ``freedoms``: along the motions that loops allow.
2. ``base``: which combinations of unknowns torques depend on at all, once a mechanism.
3. ``triangles``: samples in blocks become small triangles; ``fit``: weights by the noise of each torque.
4. ``posterior``: what data leave open stays as it was known; ``physical``: bodies that there can be, for which it may
   have to move after all.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations.free import EFFECTS
from factorgraph_dyn.identification.base import ABSENT, Base, find_base
from factorgraph_dyn.identification.columns import Columns, make_columns
from factorgraph_dyn.identification.fit import Fit, determined_parameters, fit_base
from factorgraph_dyn.identification.freedoms import Freedoms, find_freedoms
from factorgraph_dyn.identification.identified import Identified, JointFit
from factorgraph_dyn.identification.physical import make_possible
from factorgraph_dyn.identification.posterior import Unknowns, infer_unknowns
from factorgraph_dyn.identification.prior import PriorLike, link_sizes, make_prior
from factorgraph_dyn.identification.progress import watched
from factorgraph_dyn.identification.samples import Samples, check_samples
from factorgraph_dyn.identification.triangles import Triangle, find_triangles
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.spatial import Floats


def identify(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    links: str | Iterable[str] | None = None,
    effects: str | Iterable[str] = EFFECTS,
    prior: PriorLike = 1.0,
    physical: bool = True,
    progress: bool | None = False,
) -> Identified:
    """The inertial parameters of links and the losses of joints that explain measured torques best.

    Torques are weighted by their noise, which is found from the data, a number a joint. Nothing depends on units. What
    the data do not determine at all stays at what was known before, unless bodies must be made possible
    (``Identified.adjusted``), and is as uncertain as that was; ``Identified.determined`` and ``Identified.base`` tell
    what they determine, whatever the prior. Standard deviations hold for noise in torques that is independent from
    sample to sample: of a filtered log give only as many samples as its filter leaves independent.

    States count as exact. Accelerations found from noisy velocities are not, and standard deviations are too small
    then: with a noise in v of 0.1 to 3 % of its rms, differentiated over five samples at 100 to 1000 Hz, errors were
    0.9 to 29 times the deviations (rms over four seeds each, three-joint arm and PUMA 560), with exact accelerations
    1.0 to 1.2 times. A higher rate or a longer log makes it worse: deviations shrink and the errors stay. Measure a;
    or take v and a from a low-pass filter without delay (0.9 to 2.3 times there); or repeat one motion and give its
    mean. If results change by more than their deviations with the filter's width, the deviations are too small.

    Args:
        mechanism: The mechanism, with parameters as they are known, from a drawing or a file.
        q: Coordinates, rad and m, shape (..., nq).
        v: Velocities, rad/s and m/s, shape (..., nv).
        a: Accelerations, rad/s^2 and m/s^2, shape (..., nv).
        tau: Measured torques, N m or N, shape (..., nv); nan where they were not measured, such as those of a floating
            base that stands on unknown forces. Of closed mechanisms also those of the motors alone, (..., motors):
            other joints are passive.
        links: Links whose parameters are unknown, such as the last one for a payload; by default all but the base.
        effects: What is unknown of joints: "armature" (where there is a motor), "damping", "friction".
        prior: What is known before. A number: the mechanism's own values, each link's with this spread relative to
            its mass m, m l and m l^2, l its length. (mean, sigma): other values, shape (links, 10), with their
            deviations, or covariance (10 links, 10 links). None: nothing; what data leave open stays at the
            mechanism's own values, as far as bodies can have them, with infinite variance.
        physical: Whether links have to be bodies that there can be, and losses not negative. Needs Clarabel
            (``pip install 'factorgraph_dyn[identify]'``) where those that fit best are not.
        progress: Whether to show a bar on standard error; None means where there is a terminal.

    Raises:
        InputError: Wrong shapes or names, states that are not finite or not closed, or too few torques.

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> loaded = arm.add_payload("link3", mass=0.5, com=(0.1, 0, 0))
        >>> rng = np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 100, 3))
        >>> tau = fgd.compile(loaded, "inverse")(q, v, a) + 1e-3 * rng.normal(size=(100, 3))
        >>> found = fgd.identify(arm, q, v, a, tau, links="link3", effects=())
        >>> round(found.mechanism.link_by_name["link3"].mass - arm.link_by_name["link3"].mass, 1)
        0.5
    """
    columns = make_columns(check_mechanism(mechanism), links, effects)
    samples = check_samples(mechanism, q, v, a, tau)
    freedoms = find_freedoms(mechanism, samples.q, samples.tau)
    base = find_base(columns, freedoms)
    triangles = find_triangles(columns, freedoms, base, samples, lambda starts: watched(starts, "samples", progress))
    fit = fit_base(triangles, base)
    before = make_prior(columns, triangles, _motion(samples), prior)
    unknowns = infer_unknowns(fit, base, before)
    p = make_possible(columns, unknowns, link_sizes(columns)) if physical else unknowns.mean
    return _identified(columns, freedoms, base, triangles, fit, unknowns, p, len(samples))


def _motion(samples: Samples) -> tuple[Floats, Floats]:
    """Root mean squares of velocities and accelerations, shape (nv,) each."""
    v, a = (np.sqrt(np.einsum("ni,ni->i", x, x) / len(x)) for x in (samples.v, samples.a))
    return v, a


def _identified(
    columns: Columns,
    freedoms: Freedoms,
    base: Base,
    triangles: tuple[Triangle, ...],
    fit: Fit,
    unknowns: Unknowns,
    p: Floats,
    samples: int,
) -> Identified:
    n, covariance = columns.inertial, unknowns.covariance
    effects, deviations = _effects(columns, p, np.sqrt(np.diag(covariance)))
    beta = base.K @ p
    return Identified(
        prior_mechanism=columns.mechanism,
        links=columns.links,
        parameters=p[:n].reshape(-1, COUNT),
        covariance=covariance[:n, :n],
        **effects,
        deviations=deviations,
        base=determined_parameters(fit, base),
        structural=len(base),
        determined=_determined(fit, base, unknowns, columns.units),
        fit=tuple(_joint_fit(*each, beta) for each in zip(triangles, fit.sigma.tolist(), strict=True)),
        samples=samples,
        condition=fit.condition,
        adjusted=bool((p != unknowns.mean).any()),
        _columns=columns,
        _freedoms=freedoms,
    )


def _effects(columns: Columns, p: Floats, deviation: Floats) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Armature, damping and friction of all freedoms, and their standard deviations, by kind."""
    joints = columns.mechanism.movable_joints
    values = {kind: np.concatenate([getattr(joint, kind) for joint in joints]) for kind in EFFECTS}
    deviations = {kind: np.zeros_like(found) for kind, found in values.items()}
    for k, effect in enumerate(columns.effects, start=columns.inertial):
        values[effect.kind][effect.entry] = p[k]
        deviations[effect.kind][effect.entry] = deviation[k]
    return values, deviations


def _determined(fit: Fit, base: Base, unknowns: Unknowns, units: Floats) -> dict[str, str]:
    """How the data determine each unknown."""
    shown = np.linalg.norm(fit.R @ base.K, axis=0) * units
    touched = shown > ABSENT * shown.max(initial=0.0)
    words = np.where(~touched, "not at all", np.where(unknowns.unseen, "combined", "alone"))
    return dict(zip(base.names, words.tolist(), strict=True))


def _joint_fit(triangle: Triangle, noise: float, beta: Floats) -> JointFit:
    residual = triangle.residual(beta)
    rms = float(np.sqrt(residual / triangle.count))
    varied = triangle.square - triangle.total**2 / triangle.count
    return JointFit(
        triangle.name,
        triangle.count,
        rms,
        rms / triangle.size if triangle.size else 0.0,
        1.0 - residual / varied if varied > 0 else 1.0,
        noise,
    )
