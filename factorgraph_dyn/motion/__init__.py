"""A mechanism at q: poses and Jacobians, closure and its rank, closed and random states; forces are unknown here.

What a ``Mechanism`` answers about its states is answered by the functions named here.
"""

from factorgraph_dyn.motion.closing import close
from factorgraph_dyn.motion.closure import closure_error, complete_velocity
from factorgraph_dyn.motion.random_states import neutral, random_configuration, random_state

__all__ = ["close", "closure_error", "complete_velocity", "neutral", "random_configuration", "random_state"]
