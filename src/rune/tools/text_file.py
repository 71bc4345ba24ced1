"""The bytes of a text file as text, and back: what was not edited stays byte for byte as it was.

Which encoding a file has is decided by a rule, not guessed (docs/decisions/text-files.md): a byte order mark, else
UTF-8, else Windows-1252 or Latin-1, which give every byte back whatever was meant by it.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rune.errors import InvalidArgumentsError
from rune.tools.line_ends import Change, LineEnds, changed_keeping_ends, line_ends, with_lf
from rune.tools.same_lines import same_lines

Encoding = Literal["utf-8", "utf-8-bom", "utf-8-damaged", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]

_MARKS: Final[tuple[tuple[bytes, Encoding], ...]] = (
    (codecs.BOM_UTF8, "utf-8-bom"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODECS: Final[dict[Encoding, tuple[str, str]]] = {
    "utf-8": ("utf-8", "strict"),
    "utf-8-bom": ("utf-8", "strict"),
    "utf-8-damaged": ("utf-8", "surrogateescape"),
    "utf-16-le": ("utf-16-le", "strict"),
    "utf-16-be": ("utf-16-be", "strict"),
    "cp1252": ("cp1252", "strict"),
    "latin-1": ("latin-1", "strict"),
}
_NAMES: Final[dict[Encoding, str]] = {
    "utf-8": "UTF-8",
    "utf-8-bom": "UTF-8 with byte order mark",
    "utf-8-damaged": "UTF-8 with bytes that are none",
    "utf-16-le": "UTF-16 (little endian)",
    "utf-16-be": "UTF-16 (big endian)",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
# Control characters that text has: tab, line ends, form feed, vertical tab, backspace, bell, escape, end of file.
_UNLIKE_TEXT: Final = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# By their first bytes; only asked for what was already found to be no text.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"BM", "BMP image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program or library"),
    (b"\xcf\xfa\xed\xfe", "macOS program or library"),
    (b"\xca\xfe\xba\xbe", "Java class or macOS program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"GGUF", "GGUF model"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"wOF2", "WOFF2 font"),
    (codecs.BOM_UTF32_LE, "UTF-32 text"),
    (codecs.BOM_UTF32_BE, "UTF-32 text"),
)
_RIFF: Final[dict[bytes, str]] = {b"WEBP": "WebP image", b"WAVE": "WAV audio", b"AVI ": "AVI video"}


@dataclass(frozen=True, slots=True)
class BinaryFile:
    """Bytes that are no text: how many, and what they seem to be."""

    size: int
    kind: str

    @property
    def in_words(self) -> str:
        """A line that says why it is not shown or edited as text."""
        return f"not a text file: {self.kind}, {self.size:,} bytes"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file: `text` is what is read and edited, with LF as its only line end and without a byte order mark.

    In a file that is UTF-8 but for some bytes, these are lone surrogates in `text`, as Python writes them;
    `rune.text.storable` makes them fit for a message.
    """

    encoding: Encoding
    text: str
    line_ends: LineEnds
    _raw: str

    @property
    def final_newline(self) -> bool:
        """Whether the last line ends; an empty file has no line that could."""
        return self.text.endswith("\n")

    @property
    def in_words(self) -> str:
        """What is unusual about the file, or "UTF-8": "Windows-1252, CRLF, no newline at the end"."""
        parts = [_NAMES[self.encoding]]
        if self.line_ends not in {"lf", "none"}:
            parts.append("mixed line ends" if self.line_ends == "mixed" else self.line_ends.upper())
        if self.text and not self.final_newline:
            parts.append("no newline at the end")
        return ", ".join(parts)

    def with_changes(self, changes: Sequence[Change]) -> bytes:
        """Return the file's bytes with these changes of `text`; every byte outside them is as it was.

        Raises InvalidArgumentsError when something that is put in cannot be written in the file's encoding, and
        ValueError when changes overlap.
        """
        for change in changes:
            self._check(change.text)
        codec, errors = _CODECS[self.encoding]
        mark = next((mark for mark, encoding in _MARKS if encoding == self.encoding), b"")
        return mark + changed_keeping_ends(self._raw, changes).encode(codec, errors)

    def with_text(self, text: str) -> bytes:
        """Return the file's bytes with another text. Lines that stand in both keep their bytes, the others get the
        file's line ends. Raises as `with_changes`.
        """
        return self.with_changes(_changes(self.text, with_lf(text)))

    def _check(self, text: str) -> None:
        if "\0" in text:
            raise InvalidArgumentsError("the new text holds a zero byte, which would make the file a binary one")
        try:
            text.encode(_CODECS[self.encoding][0])
        except UnicodeEncodeError as error:
            character = text[error.start]
            if _SURROGATE.match(character):
                raise InvalidArgumentsError(
                    f"the new text holds U+{ord(character):04X}, half of a character, which no file can hold"
                ) from error
            raise InvalidArgumentsError(
                f"{character!r} (U+{ord(character):04X}) cannot be written: the file is {_NAMES[self.encoding]}",
                hint="Leave the character out, or change the file's encoding first.",
            ) from error


def decode(data: bytes) -> TextFile | BinaryFile:
    """Return bytes as text, or what they are instead. Any bytes: `decode(data).with_changes([]) == data`."""
    found = _decoded(data)
    if found is None:
        return BinaryFile(len(data), _kind(data))
    encoding, raw = found
    return TextFile(encoding, with_lf(raw), line_ends(raw), raw)


def _decoded(data: bytes) -> tuple[Encoding, str] | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark) and not data.startswith(codecs.BOM_UTF32_LE):
            marked = _strictly(encoding, data[len(mark) :])
            if marked is not None:
                return marked
    if b"\0" in data:
        return None
    found = _strictly("utf-8", data)
    if found is not None or _UNLIKE_TEXT.search(data):
        return found
    # Some bytes that are not UTF-8 in a text that otherwise is: as another encoding every word of it would be garbled.
    text = data.decode("utf-8", "surrogateescape")
    bad = len(_SURROGATE.findall(text))
    foreign = sum(character > "\x7f" for character in text)
    if foreign > 2 * bad:
        return "utf-8-damaged", text
    return _strictly("cp1252", data) or _strictly("latin-1", data)


def _strictly(encoding: Encoding, data: bytes) -> tuple[Encoding, str] | None:
    try:
        text = data.decode(_CODECS[encoding][0])
    except UnicodeDecodeError:
        return None  # not this encoding: the next is tried, and what is none is binary
    return None if "\0" in text else (encoding, text)


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] in _RIFF:
        return _RIFF[data[8:12]]
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), "unknown binary data")


def _changes(old: str, new: str) -> list[Change]:
    """Return what makes `new` of `old`, line by line."""
    old_lines, new_lines = _kept_ends(old), _kept_ends(new)
    starts = [0]
    for line in old_lines:
        starts.append(starts[-1] + len(line))
    changes: list[Change] = []
    at_old = at_new = 0
    for run in [*((run.old, run.new, run.size) for run in same_lines(old_lines, new_lines)), None]:
        i, j, size = run or (len(old_lines), len(new_lines), 0)
        if i > at_old or j > at_new:
            changes.append(Change(starts[at_old], starts[i], "".join(new_lines[at_new:j])))
        at_old, at_new = i + size, j + size
    return changes


def _kept_ends(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
