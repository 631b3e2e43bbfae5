"""A graph and an ordering become a solution, through GTSAM; also mass matrices from the same graph."""
