"""A mechanism at q and v: poses, Jacobians, momentum, energy, closure, closed and random states; no forces here.

What a ``Mechanism`` answers about its states is answered by the functions named here.
"""

from factorgraph_dyn.motion.closed_places import random_configuration
from factorgraph_dyn.motion.closing import close
from factorgraph_dyn.motion.closure import closure_error, complete_velocity
from factorgraph_dyn.motion.random_states import neutral, random_state

__all__ = ["close", "closure_error", "complete_velocity", "neutral", "random_configuration", "random_state"]
