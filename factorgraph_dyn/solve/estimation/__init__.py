"""Estimation: exact equations and noisy sensors give the most probable motion and forces, with their covariance.

    free_form    the equations of the tree, eliminated by GTSAM:  x = x_0 + N z  for free z
    evidence     what sensors, motors that are missing, loops and couplings say of z: rows K z = y with noise
                 (``equations.posterior`` chooses those that determine z, most exact first; all others correct them)
    estimate     fgd.estimate, of accelerations and forces; velocity: fgd.estimate_velocity
    unseen       what the rows leave open, in names, and which sensors would tell

Nothing here compares a noise with another one's size: 1e-6 and 1e6 stand in one problem without loss.
"""
