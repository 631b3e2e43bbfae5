"""A mechanism whose names try to be markup, formulas, paths and more."""

from __future__ import annotations

import numpy as np

import factorgraph_dyn as fgd

NAMES = (
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "$\\frac{1}{",
    "${document.title='broken'}`",
    "a*/b??/c\\",
    "名前_λ_😀",
    "x" * 300,
    "&lt;b&gt; @@DATA@@ %s {0}",
)


def hostile_mechanism() -> fgd.Mechanism:
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=0.1 * np.eye(3)) for name in NAMES)]
    joints = [
        fgd.Joint(f"joint {name}", "revolute", parent.name, child.name)
        for name, parent, child in zip(NAMES, links, links[1:], strict=False)
    ]
    return fgd.Mechanism("<b>arm</b> & $co", tuple(links), tuple(joints))
