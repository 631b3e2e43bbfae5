"""Problems in the mechanism's own units, for whatever decides a rank, a condition or a size.

Takes a state, what is known and what pushes, in the units of the caller; gives the same of the mechanism's twin in
units in which it is of order one (``sizes.units``). The units are powers of two: what comes back has lost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from factorgraph_dyn.equations import Known, State, evaluate_state
from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats


def own_state(state: State) -> State:
    """The state of the mechanism's twin."""
    own = natural(state.mechanism)
    if own.length == own.mass == 1.0:
        return state
    return evaluate_state(own.mechanism, state.q / own.q, state.v / own.v)


def own_known(state: State, known: Known) -> Known:
    """What is known, for the twin."""
    own = natural(state.mechanism)
    return replace(known, a=known.a / own.v, tau=known.tau / own.tau)


def own_wrenches(state: State, wrenches: Mapping[str, Floats] | None) -> dict[str, Floats]:
    """Wrenches from outside, for the twin."""
    own = natural(state.mechanism)
    return {link: wrench / own.wrench for link, wrench in (wrenches or {}).items()}


def own_inputs(state: State, inputs: Inputs) -> Inputs:
    """What inputs of the caller's units do to the twin."""
    own = natural(state.mechanism)
    wrenches = {link: W / own.wrench[:, None] for link, W in inputs.wrenches.items()}
    return Inputs(inputs.names, inputs.torques / own.tau[:, None], wrenches)
