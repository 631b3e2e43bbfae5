#!/usr/bin/env python3
"""The ordering comparison as a script: compare_orderings.py [ROBOT] [--problem ...], as ``fgdyn compare``."""

import sys

from factorgraph_dyn.cli import main

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        arguments.insert(0, "puma560")
    sys.argv = ["fgdyn", "compare", *arguments]
    main()
