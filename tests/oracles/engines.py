"""Engines nobody here wrote, fed with our mechanisms and answering in our conventions."""

from factorgraph_dyn.compare.peers.pinocchio import PinocchioOracle, pinocchio_oracle

__all__ = ["PinocchioOracle", "pinocchio_oracle"]
