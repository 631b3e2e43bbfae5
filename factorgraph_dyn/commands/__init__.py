"""The commands of ``fgdyn``: words become calls. ``cli.py`` lists them; their docstrings are the help."""
