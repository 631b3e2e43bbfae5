"""Logs to identify from: smooth random motions of trees, random closed states, and their torques."""

from __future__ import annotations

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.identification.base import exciting_states


def waves(mechanism, samples, seed, duration=20.0):
    """A sum of sines for every joint of a tree of hinges, (q, v, a), a row a sample."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, duration, samples)[:, None]
    q = v = a = np.zeros((samples, mechanism.nv))
    for k in range(1, 6):
        w, size, phase = 2 * np.pi * k / duration, rng.normal(size=mechanism.nv) / k, rng.uniform(0, 6, mechanism.nv)
        angle = w * t + phase
        q, v, a = q + size * np.sin(angle), v + size * w * np.cos(angle), a - size * w**2 * np.sin(angle)
    return q, v, a


def states(mechanism, samples, seed):
    """Random states with accelerations that loops allow."""
    found = exciting_states(mechanism, samples, seed)
    return found.q, found.v, found.a


def torques(mechanism, motion):
    """The torques of a motion, by the graph's kernel."""
    return fgd.compile(mechanism, "inverse")(*motion)


def wrong(mechanism, seed):
    """The mechanism with links that are up to 30 % heavier or lighter."""
    factors = np.random.default_rng(seed).uniform(0.7, 1.3, (len(mechanism.links) - 1, 1))
    return mechanism.with_parameters(mechanism.parameters() * factors)
