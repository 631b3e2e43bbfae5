"""Logs of motions and torques become inertial parameters, with what the data determine and what they leave open.

columns -> freedoms -> base -> triangles -> fit -> posterior -> physical -> Identified
"""
