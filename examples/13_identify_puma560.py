"""What a PUMA 560 weighs, from a noisy log; then the torques of another motion, which it was not told.

The arm that is measured is heavier than its data sheet says and rubs in its joints. An exciting motion of 20 s is
sampled at 200 Hz with 1 % of noise in the torques. Then somebody puts a load into its hand, and another log finds it.
"""

from dataclasses import replace

import numpy as np

import factorgraph_dyn as fgd

rng = np.random.default_rng(0)
sheet = fgd.robots.puma560()  # what we believe
joints = [replace(j, armature=0.3, damping=0.8, friction=0.5) for j in sheet.joints]
arm = replace(sheet.with_parameters(sheet.parameters() * rng.uniform(0.8, 1.4, (6, 1))), joints=joints)  # what is true


def measured(robot, q, v, a):
    """Torques of a robot's motors, with 1 % of noise."""
    tau = fgd.compile(robot, "inverse")(q, v, a)
    return tau + 0.01 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)


# A motion that shows much, and how well it does.
motion = fgd.excitation(sheet, duration=20.0, velocity_limit=2.0)
print(motion)
t, q, v, a = motion.sampled(rate=200)

# Identify: torques depend on 36 combinations of the links' 60 parameters, and on the joints' losses.
found = fgd.identify(sheet, q, v, a, measured(arm, q, v, a))
print(found)
print("\nsome of the combinations that the log determines")
for one in found.base[-8:]:
    print(f"  {one.value:9.5f} +- {one.standard_deviation:.5f}  {one.name}")
kinds = list(found.determined.values())
print(", ".join(f"{kinds.count(kind)} unknowns {kind}" for kind in ("alone", "combined", "not at all")))
print(f"bodies that cannot be: {len(sheet.warnings)} in the data sheet, {len(found.mechanism.warnings)} identified")
print(f"friction of 0.5 N m in each joint: {np.round(found.friction, 3)} +- {found.deviations['friction'].max():.1g}")

# Predict another motion, by what was believed and by what was identified.
_, q, v, a = fgd.excitation(sheet, seed=1, candidates=50, velocity_limit=2.0).sampled(rate=200)
tau = fgd.compile(arm, "inverse")(q, v, a)
print("\ntorques of another motion: what is missed, % of what there is")
for name, robot in (("data sheet", sheet), ("identified", found.mechanism)):
    missed = np.linalg.norm(fgd.compile(robot, "inverse")(q, v, a) - tau, axis=0) / np.linalg.norm(tau, axis=0)
    print(f"  {name}" + "".join(f"{100 * share:8.2f}" for share in missed))

# A load in its hand: only the last link is unknown now.
loaded = arm.add_payload("link6", mass=2.0, com=(0.0, 0.03, 0.1), inertia=np.diag([0.01, 0.01, 0.004]))
tau = measured(loaded, q, v, a)
hand = fgd.identify(found.mechanism, q, v, a, tau, links="link6", effects=())
load = hand.parameters[0] - found.mechanism.parameters("link6")[0]
print(f"\nload: {load[0]:.3f} +- {hand.standard_deviation[0, 0]:.3f} kg at {np.round(load[1:4] / load[0], 4)} m")
