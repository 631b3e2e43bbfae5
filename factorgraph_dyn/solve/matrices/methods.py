"""The ways to M^-1 B of a tree, by name.

``columns`` sweeps over the articulated bodies; the others are the papers', there to be compared. They stand in the
textbook, which builds on the solvers: this table is the one look-up from here into it, done when a method is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.solve.matrices.articulated import ArticulatedBodies
from factorgraph_dyn.spatial import Floats

Method = Callable[[ArticulatedBodies, Inputs], Floats]

OF_THE_PAPERS = {
    "iim": "iim:implicit_inversion",
    "eufm": "unit_forces:unit_force_method",
    "carpentier": "carpentier:three_passes",
}
METHODS = ("columns", *OF_THE_PAPERS)


def input_response(method: str) -> Method:
    """The function that gives M^-1 B, shape (nv, m), of articulated bodies and inputs.

    Raises:
        InputError: There is no such method.
    """
    check_name(method, METHODS, "method", "the ways to M^-1 B", InputError)
    if method == "columns":
        return ArticulatedBodies.respond
    module, function = OF_THE_PAPERS[method].split(":")
    found: Method = getattr(import_module(f"factorgraph_dyn.textbook.{module}"), function)
    return found
