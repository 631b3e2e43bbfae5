"""``python -m factorgraph_dyn`` is ``fgdyn``."""

from factorgraph_dyn.cli import main

main()
