"""Mechanisms described anew so that constants vanish: frames, inertias, placements."""
