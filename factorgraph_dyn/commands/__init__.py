"""The commands of ``fgdyn``: words become calls. One module a group, each with ``register(app)``."""
