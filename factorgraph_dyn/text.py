"""Texts that others wrote, made harmless where they go, and numbers that they wrote, read by one rule.

Names, warnings and paths come from model files. On a terminal a control character acts, a mark of writing direction
reverses what stands beside it, and a lone surrogate cannot be written at all; in a comment of generated code some
sequences end the comment; in a spreadsheet some first characters begin a formula.
"""

from __future__ import annotations

import re

# C0 and C1 controls, separators of lines and paragraphs, marks of writing direction, lone surrogates.
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# No *, which ends a comment with the / behind it, no \, which joins lines, no ?, of whose trigraphs one is a \.
NOT_IN_COMMENTS = re.compile(r"[^A-Za-z0-9 _.,:;()\[\]{}<>+=^/#'-]")
FORMULA = re.compile("\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]")  # full width, too


def acting_character(text: str) -> str | None:
    """The first character of a text that acts where it is shown, as ``U+001B``; None where there is none."""
    found = ACTING.search(text)
    return f"U+{ord(found[0]):04X}" if found else None


def printable(text: str) -> str:
    r"""The text with every acting character as its escape, such as ``\x1b``, in one line."""
    return ACTING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def in_comment(text: str) -> str:
    """The text as a comment of any generated code may hold it: plain characters, an underscore for any other."""
    return NOT_IN_COMMENTS.sub("_", text)


def in_spreadsheet(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula: printable, with an apostrophe where it would."""
    return printable(f"'{text}" if FORMULA.match(text) else text)


def parse_number(text: str) -> float:
    """The number that a text is as C reads it in decimal: no underscores, no digits of other scripts.

    Raises:
        ValueError: It is no such number.
    """
    if not text.isascii() or "_" in text:  # float takes both
        raise ValueError(f"{text[:60]!r} is not a number")
    return float(text)
