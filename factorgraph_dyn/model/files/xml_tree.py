"""An untrusted XML file becomes a tree of elements that know their file and line.

Only what model files need: elements, attributes and text. Document types are refused, so that no
entity is ever expanded and nothing outside the file is read; size, depth and number of elements are
bounded. Three faults that are common in published models are forgiven and noted: ``--`` inside
comments, junk after the root element, and an XML declaration that is misspelt or does not come first.
Runs once a file, in linear time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

import numpy as np

from factorgraph_dyn import storage
from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.names import check_own_name
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.text import parse_number

# Robots' files have some hundred kilobytes and at most some thousand elements; what is allowed loads in seconds.
MAX_BYTES = 10_000_000  # of a file and of all that it includes
MAX_DEPTH = 200  # of nested elements; readers descend recursively
MAX_ELEMENTS = 50_000  # of a file and of all that it includes
MAX_ATTRIBUTES = 100  # of one element
MAX_INCLUDES = 200
MAX_NUMBERS = 100  # in one attribute or text that is read
MAX_TAG = 1_000_000  # bytes of one tag, which expat takes apart as a whole
AT_ONCE = 65_536  # bytes that expat is given
MAX_SHOWN = 60  # characters of a bad value that a message repeats
DECLARATION = re.compile(rb"((?:\xef\xbb\xbf)?\s*)(<\?xml[^<>]*\?>)", re.IGNORECASE)


@dataclass(eq=False)
class Element:
    """One element of a file: its tag, attributes, text and children, and where it stands."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    @property
    def label(self) -> str:
        """How messages name the element: ``<joint name="elbow">``."""
        name = self.attributes.get("name")
        return f'<{self.tag} name="{shorten(name)}">' if name is not None else f"<{self.tag}>"

    def fail(self, message: str) -> NoReturn:
        """Raise a ModelError that says where the element is."""
        raise ModelError(
            f"{self.file}:{self.line}: {self.label}: {message}",
            file=self.file,
            line=self.line,
            element=self.tag,
        )

    def note(self, message: str) -> str:
        """A warning that says where the element is."""
        return f"{self.file}:{self.line}: {self.label}: {message}"

    def all(self, tag: str) -> list[Element]:
        """The children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Element | None:
        """The first child with a tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def below(self) -> Iterator[Element]:
        """All elements inside this one, as they are written."""
        for child in self.children:
            yield child
            yield from child.below()

    def require(self, tag: str) -> Element:
        """The first child with a tag, or a ModelError."""
        found = self.first(tag)
        if found is None:
            self.fail(f"<{tag}> is missing; add it.")
        return found

    def get(self, name: str, default: str | None = None) -> str | None:
        """An attribute's text."""
        return self.attributes.get(name, default)

    def name(self, attribute: str = "name") -> str:
        """A required, non-empty attribute that names something."""
        value = self.attributes.get(attribute, "").strip()
        if not value:
            self.fail(f"the attribute {attribute!r} is missing or empty; give a name.")
        try:
            check_own_name(value, self.tag)
        except ModelError as error:
            self.fail(str(error))
        return value

    def number(self, attribute: str, default: float | None = None, *, infinite: bool = False) -> float:
        """An attribute as one number, finite unless said otherwise."""
        text = self.attributes.get(attribute)
        if text is None:
            if default is None:
                self.fail(f"the attribute {attribute!r} is missing; give a number.")
            return default
        return self.parse_number(text, f"the attribute {attribute!r}", infinite=infinite)

    def vector(
        self,
        attribute: str,
        size: int,
        default: Floats | tuple[float, ...] | None = None,
        *,
        infinite: bool = False,
    ) -> Floats:
        """An attribute as ``size`` numbers, finite unless said otherwise, shape (size,)."""
        text = self.attributes.get(attribute)
        if text is None:
            if default is None:
                self.fail(f"the attribute {attribute!r} is missing; give {size} numbers.")
            return np.array(default, dtype=np.float64)
        return self.parse_numbers(text, f"the attribute {attribute!r}", (size,), infinite=infinite)

    def parse_number(self, text: str, what: str, *, infinite: bool = False) -> float:
        """Text as one number, finite unless said otherwise, or a ModelError."""
        return float(self.parse_numbers(text, what, (1,), infinite=infinite)[0])

    def parse_numbers(
        self, text: str, what: str, sizes: tuple[int, ...] | None = None, *, infinite: bool = False
    ) -> Floats:
        """Text as numbers, as many as one of the sizes says and finite unless said otherwise, or a ModelError."""
        if not text.isascii():  # blanks of other scripts separate no numbers either
            self.fail(f"{what} holds {shorten(text)!r}, which is not a number.")
        words = text.split(maxsplit=MAX_NUMBERS)
        if sizes is not None and len(words) not in sizes:
            allowed = " or ".join(map(str, sizes))
            self.fail(f"{what} holds {len(words)} values ({shorten(text)!r}); it must hold {allowed}.")
        values = []
        for word in words:
            try:
                value = parse_number(word)
            except ValueError:
                hint = " Expand xacro expressions first: fgd.load(path, xacro=True)." if "${" in text else ""
                self.fail(f"{what} holds {shorten(word)!r}, which is not a number.{hint}")
            if math.isnan(value) or (math.isinf(value) and not infinite):
                self.fail(f"{what} holds {shorten(word)!r}; numbers must be finite.")
            values.append(value)
        return np.array(values)


def noted_once(found: Iterable[tuple[Element, str]]) -> list[str]:
    """A warning for each sort of message, at the first element it concerns, with how many more there are."""
    elements: dict[str, list[Element]] = {}
    for element, message in found:
        elements.setdefault(message, []).append(element)
    return [
        first.note(message) + (f" The same holds for {len(others)} more." if others else "")
        for message, (first, *others) in elements.items()
    ]


@dataclass(frozen=True)
class Document:
    """A parsed file: its root element, what was forgiven in it, and how many bytes and elements it has."""

    root: Element
    notes: tuple[str, ...]
    bytes: int
    elements: int


class _TooMuchError(Exception):
    """Stops expat from inside a handler; carries the message."""


def shorten(text: str | None, most: int = MAX_SHOWN) -> str:
    """The text, cut to a length that fits a message."""
    text = "" if text is None else text
    return text if len(text) <= most else text[:most] + "..."


def read_bytes(path: Path) -> bytes:
    """The content of a regular file that is not too large."""
    try:
        return storage.read(path, MAX_BYTES)
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read: {error.strerror}.", file=str(path)) from None


class Includes:
    """Reads the files that a main one includes, and counts: all together are bounded as one file is."""

    def __init__(self, main: Document) -> None:
        self.files, self.bytes, self.elements = 0, main.bytes, main.elements

    def read(self, element: Element, path: Path) -> Document:
        """The content of a file that an element includes."""
        self.files += 1
        if self.files > MAX_INCLUDES:
            element.fail(f"more than {MAX_INCLUDES} files are included.")
        try:
            document = parse_xml(read_bytes(path), str(path))
        except ModelError as error:
            missing = "" if path.exists() else " Put it there, or remove the element that includes it."
            element.fail(f"the included file fails: {error}{missing}")
        self.bytes += document.bytes
        self.elements += document.elements
        if self.bytes > MAX_BYTES or self.elements > MAX_ELEMENTS:
            element.fail(
                f"with this file all that is included has {self.bytes} bytes and {self.elements} elements; at most "
                f"{MAX_BYTES} and {MAX_ELEMENTS} are read."
            )
        return document


def parse_xml(content: bytes, file: str) -> Document:
    """The tree of elements of an XML file.

    Args:
        content: The file's bytes.
        file: The name that messages give the file.

    Raises:
        ModelError: Not XML, too large, too deep, or with a document type.
    """
    cleaned, notes = _without_comments(content, file)
    builder = _Builder(file)
    error = builder.fault(cleaned)
    if error is not None and builder.root is None and (found := DECLARATION.match(cleaned)):
        builder = _Builder(file, _encoding(found[2]))
        error = builder.fault(found[1] + b"\n" * found[2].count(b"\n") + cleaned[found.end() :])
        line = 1 + found[1].count(b"\n")
        notes.append(f"{file}:{line}: the XML declaration is wrong or has something before it; it is skipped.")
    if error is not None:
        if builder.root is None or builder.stack:
            message = expat.ErrorString(error.code)
            raise ModelError(
                f"{file}:{error.lineno}: the file is not well-formed XML: {message}.{builder.whereabouts()}",
                file=file,
                line=error.lineno,
            )
        notes.append(f"{file}:{error.lineno}: what follows the root element is not read.")
    if builder.root is None:
        raise ModelError(f"{file}:1: the file holds no XML element.", file=file, line=1)
    return Document(builder.root, tuple(notes), len(content), builder.count)


class _Builder:
    """Collects elements while expat reads."""

    def __init__(self, file: str, encoding: str | None = None) -> None:
        self.file = file
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.texts: list[list[str]] = []  # of the open elements; joined once, when they close
        self.count = 0
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.doctype

    def fault(self, content: bytes) -> expat.ExpatError | None:
        """Read all of the content; where it is no longer XML, what expat says."""
        try:
            for start in range(0, len(content), AT_ONCE):
                self.parser.Parse(content[start : start + AT_ONCE], False)
                if start - self.parser.CurrentByteIndex > MAX_TAG:
                    raise _TooMuchError(f"a tag has more than {MAX_TAG} bytes; the file is not read.")
            self.parser.Parse(b"", True)
        except _TooMuchError as stop:
            line = self.parser.CurrentLineNumber
            raise ModelError(f"{self.file}:{line}: {stop}", file=self.file, line=line) from None
        except expat.ExpatError as error:
            return error
        except (ValueError, LookupError) as error:  # unknown encodings, embedded nulls
            raise ModelError(f"{self.file}:1: the file cannot be decoded: {error}.", file=self.file, line=1) from None
        return None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise _TooMuchError(f"the file holds more than {MAX_ELEMENTS} elements; it is not read.")
        if len(self.stack) >= MAX_DEPTH:
            raise _TooMuchError(f"elements are nested deeper than {MAX_DEPTH}; the file is not read.")
        if len(attributes) > MAX_ATTRIBUTES:
            raise _TooMuchError(f"an element has more than {MAX_ATTRIBUTES} attributes; the file is not read.")
        element = Element(tag, attributes, self.file, self.parser.CurrentLineNumber)
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)
        self.texts.append([])

    def end(self, tag: str) -> None:
        self.stack.pop().text = "".join(self.texts.pop())

    def characters(self, text: str) -> None:
        if self.texts:
            self.texts[-1].append(text)

    def doctype(self, *_: object) -> None:
        raise _TooMuchError(
            "the file declares a document type or entities; these are refused because they can read "
            "other files or grow without bound. Remove the <!DOCTYPE ...> declaration."
        )

    def whereabouts(self) -> str:
        """The element that was open, for messages."""
        if not self.stack:
            return ""
        return f" The innermost open element is {self.stack[-1].label} of line {self.stack[-1].line}."


def _encoding(declaration: bytes) -> str | None:
    """The encoding that an XML declaration names."""
    found = re.search(rb"""encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""", declaration)
    return found[1].decode("ascii") if found else None


def _without_comments(content: bytes, file: str) -> tuple[bytes, list[str]]:
    """The content with comments blanked out, line breaks kept; expat refuses ``--`` inside them."""
    kept = bytearray()  # not a list of pieces: joining it takes a hundred bytes a comment
    first_wrong, wrong = 0, 0  # the first line of comments that XML forbids, and how many there are
    position, line = 0, 1
    while True:
        start = content.find(b"<!--", position)
        if start < 0:
            break
        data = content.find(b"<![CDATA[", position, start)
        if data >= 0:  # a comment's opening inside character data is text
            end = content.find(b"]]>", data)
            if end < 0:
                break
            kept += content[position : end + 3]
            line += content.count(b"\n", position, end)
            position = end + 3
            continue
        end = content.find(b"-->", start + 4)
        if end < 0:
            break
        line += content.count(b"\n", position, start)
        body = content[start + 4 : end]
        if b"--" in body or body.endswith(b"-"):
            first_wrong, wrong = first_wrong or line, wrong + 1
        breaks = body.count(b"\n")
        kept += content[position:start]
        kept += b"\n" * breaks
        line += breaks
        position = end + 3
    kept += content[position:]
    more = f" The same holds for {wrong - 1} more." if wrong > 1 else ""
    note = f"{file}:{first_wrong}: a comment holds '--', which XML forbids; it is skipped.{more}"
    return bytes(kept), [note] if wrong else []
