"""Secrets leave text here, before it becomes a message or an event (tools.md, Secrets; threats T18).

Known values are found in every form in which a program is likely to repeat them; unknown ones by
their shape. What is found becomes `[secret:NAME]`, so that model, screen and store see the same.

It works on whole texts: what is typed, piped in or returned by a tool. For a stream that may split a
secret over two pieces there is `masked_stream`.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from rune.text.secret_shapes import SHAPES, Shape

MIN_LENGTH = 8
"""Shorter values, and shorter remains of an encoded one, would be found inside ordinary words."""

_LINE_LENGTH = 20
_MARKER_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class Masker:
    """Replaces secrets by their names. Time is linear in the text; masking twice changes nothing more.

    `secrets` are pairs of name and value; of two names for one value the first is shown.
    """

    def __init__(self, secrets: Iterable[tuple[str, str]] = ()) -> None:
        self._name_of: dict[str, str] = {}
        for name, value in secrets:
            for form in forms_of(value):
                self._name_of.setdefault(form, name)
        markers = {_marker(name) for name in (*self._name_of.values(), *(shape.name for shape in SHAPES))}
        # Markers are tried as well, and first: text that was masked before is left as it is.
        self._known = re.compile(_either([*markers, *self._name_of])) if self._name_of else None

    def mask(self, text: str) -> str:
        """Return `text` without secrets."""
        if self._known is not None:
            text = self._known.sub(self._named, text)
        folded = text.lower()
        for shape in SHAPES:
            if any(needle in folded for needle in shape.needles):
                text = _mask_shape(shape, text)
        return text

    @property
    def known_forms(self) -> tuple[str, ...]:
        """Every way in which a known value may appear."""
        return tuple(self._name_of)

    def _named(self, match: re.Match[str]) -> str:
        name = self._name_of.get(match.group())
        return match.group() if name is None else _marker(name)


def forms_of(value: str) -> tuple[str, ...]:
    """Return how a secret value may appear: raw, line by line, reversed, hex, base64 at each of the three
    offsets in which it may lie in a longer text, URL-encoded, JSON-escaped. Empty for a short value.
    """
    if len(value) < MIN_LENGTH:
        return ()
    data = value.encode("utf-8", "surrogatepass")
    every_byte = "".join(f"%{byte:02X}" for byte in data)
    escaped = json.dumps(value)[1:-1]
    forms = [
        value,
        *(line for line in value.splitlines() if len(line) >= _LINE_LENGTH and not line.startswith("-----")),
        value[::-1],
        data.hex(),
        data.hex().upper(),
        *_base64_forms(data),
        *_quoted(value),
        every_byte,
        every_byte.lower(),
        escaped,
        json.dumps(value, ensure_ascii=False)[1:-1],
        escaped.replace("/", "\\/"),
        json.dumps(escaped)[1:-1],
    ]
    return tuple(dict.fromkeys(form for form in forms if len(form) >= MIN_LENGTH))


def _base64_forms(data: bytes) -> Iterator[str]:
    for encode in (b64encode, urlsafe_b64encode):
        for offset in range(3):
            text = encode(bytes(offset) + data).decode("ascii").rstrip("=")
            # The first character shares bits with what stands before the value, the last with what follows.
            start = (0, 2, 3)[offset]
            whole = (offset + len(data)) * 8 // 6
            yield text[start:whole]


def _quoted(value: str) -> Iterator[str]:
    for quoted in (
        quote(value, safe="", errors="surrogatepass"),
        quote(value, errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
    ):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), quoted)


def _either(words: Iterable[str]) -> str:
    """Return a pattern for any of these words, the longest that fits. Words that begin alike share that part, so a
    place where nothing fits is left after a character or two, however many words there are.
    """
    return _branches(sorted(set(words)))


def _branches(words: list[str]) -> str:
    optional = words[0] == ""
    groups: dict[str, list[str]] = {}
    for word in words:
        if word:
            groups.setdefault(word[0], []).append(word)
    parts: list[str] = []
    for group in groups.values():
        shared = _shared_start(group[0], group[-1])
        rest = [word[len(shared) :] for word in group]
        parts.append(re.escape(shared) + (_branches(rest) if rest != [""] else ""))
    pattern = parts[0] if len(parts) == 1 and not optional else f"(?:{'|'.join(parts)})"
    return pattern + "?" if optional else pattern


def _shared_start(first: str, last: str) -> str:
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]


def _mask_shape(shape: Shape, text: str) -> str:
    def named(match: re.Match[str]) -> str:
        if shape.accepts is not None and not shape.accepts(match.group("secret")):
            return match.group()
        start, end = match.span("secret")
        base = match.start()
        return match.group()[: start - base] + _marker(shape.name) + match.group()[end - base :]

    return shape.pattern.sub(named, text)


def _marker(name: str) -> str:
    return f"[secret:{_MARKER_NAME.sub('_', name)}]"
