"""Find a forward dynamics for the PUMA 560 that is in no book, and say what is different about it.

python 08_better_forward_dynamics.py [SECONDS]
"""

import sys

import numpy as np

import factorgraph_dyn as fgd

puma = fgd.robots.puma560()
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
found = fgd.search_orderings(puma, "forward", budget=seconds, seed=0)

print(f"{found.evaluations} orderings looked at in {found.seconds:.0f} s")
for name, classical in found.baseline.items():
    print(f"{name:>7}: {classical.operations.total:5d} operations, error {classical.error:.1e}")
print(f" search: {found.operations.total:5d} operations, error {found.error:.1e}")
print(f"{found.saving:.0%} fewer operations than the best classical ordering")

# What changed: aba goes link by link from the tip, crba takes all wrenches, all links, then all joints.
kernels = {name: fgd.compile(puma, "forward", ordering=name) for name in ("aba", "crba")}
kernels["search"] = fgd.compile(puma, "forward", ordering=found)
places = {name: {x: k + 1 for k, x in enumerate(kernels[name].ordering)} for name in ("aba", "crba")}
print("\nthe new ordering, and the place of each variable in aba and crba:")
for k, variable in enumerate(found, start=1):  # may be a half, or on the way to a link: A[link5]:shift.linear
    whole = variable.split("]")[0] + "]"
    print(f"{k:3d}  {variable:22} {places['aba'][whole]:3d} {places['crba'][whole]:3d}")
cost = {name: fgd.ordering_cost(puma, "forward", kernel.ordering) for name, kernel in kernels.items()}
print("\n        operations  of these divisions  clique tree's levels  widest clique")
for name, c in cost.items():
    print(f"{name:>7} {c.operations.total:11d} {c.operations.divisions:19d} "
          f"{c.structure.depth:21d} {c.structure.largest_clique:14d}")  # fmt: skip

# The same accelerations, to the last digits.
rng = np.random.default_rng(1)
states = [puma.random_state(rng) for _ in range(1000)]
q, v = (np.array(column) for column in zip(*states, strict=True))
tau = rng.normal(size=(1000, puma.nv))
difference = np.abs(kernels["search"](q, v, tau) - kernels["aba"](q, v, tau)).max(axis=1)
print(f"largest difference from aba over 1000 states: {difference.max():.1e} rad/s^2")
