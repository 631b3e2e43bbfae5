"""Where this user's files are kept, by the customs of each operating system."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

# Of each kind: below the home folder on macOS; elsewhere the variable that names it, and its usual place.
PLACES = {
    "cache": ("Library/Caches", "XDG_CACHE_HOME", ".cache"),
    "data": ("Library/Application Support", "XDG_DATA_HOME", ".local/share"),
}


def user_folder(kind: Literal["cache", "data"]) -> Path:
    """The package's folder for files that can be made again ("cache") or that cannot ("data")."""
    on_mac, variable, usual = PLACES[kind]
    if sys.platform == "darwin":
        return Path.home() / on_mac / "factorgraph_dyn"
    if sys.platform == "win32":
        variable, usual = "LOCALAPPDATA", "AppData/Local"
    chosen = os.environ.get(variable)
    return (Path(chosen) if chosen else Path.home() / usual) / "factorgraph_dyn"
