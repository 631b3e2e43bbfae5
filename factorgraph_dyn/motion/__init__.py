"""A mechanism at q: poses and Jacobians, closure and its rank, closed and random states; forces are unknown here."""
