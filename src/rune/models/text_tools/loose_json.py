"""JSON as models write it: where a value ends, and what it says (docs/decisions/leaked-calls.md).

Only what can mean one thing is forgiven: a comma before a closing bracket, strings in single quotes, line breaks
within strings, Python's True, False and None. Nothing is added: a value that is cut off stays unreadable.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from rune.models.text_tools.cursor import Cursor, NotACallError, Reading

DEPTH: Final = 64
TOKENS: Final = 50_000
"""Pieces of one value that are looked at: more than arguments of the size that is taken can have."""

_CLOSERS: Final = {"{": "}", "[": "]"}
_BETWEEN: Final = re.compile(r"""[^"'{}\[\]]*""")
_IN_STRING: Final = {
    quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL)  # with its escapes, as far as they are whole
    for quote in ('"', "'")
}
_WHOLE_STRING: Final = re.compile(r"""\"[^"\\]*(?:\\.[^"\\]*)*\"|'[^'\\]*(?:\\.[^'\\]*)*'""", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""\s+
    | "[^"\\]*(?:\\.[^"\\]*)*"
    | '[^'\\]*(?:\\.[^'\\]*)*'
    | [{}\[\],:]
    | [\w.+-]+""",
    re.VERBOSE | re.DOTALL,
)
_INNER_QUOTE: Final = re.compile(r'\\.|"', re.DOTALL)
_PYTHON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}


def string(cursor: Cursor) -> Reading[str]:
    """Read a string in either kind of quotes and return it as it stands, with them ("" where nothing is kept)."""
    mark = cursor.position
    quote = yield from cursor.expect('"', "'")
    while True:
        yield from cursor.run(_IN_STRING[quote])
        end = yield from cursor.choose(quote, "\\")
        if end == quote:
            return cursor.since(mark)
        if not end or (yield from cursor.at_end()):
            cursor.fail()
        cursor.position += 1


def word(cursor: Cursor, allowed: Sequence[str]) -> Reading[str]:
    """Read a string that is one of these; raises NotACallError as soon as it can be none of them."""
    quote = yield from cursor.expect('"', "'")
    return (yield from cursor.expect(*(f"{each}{quote}" for each in allowed)))[:-1]


def value(cursor: Cursor) -> Reading[None]:
    """Read an object, a list or a string to its end; only brackets and quotes are looked at."""
    opener = yield from cursor.peek()
    if opener in {'"', "'"}:
        yield from string(cursor)
    elif opener in _CLOSERS:
        yield from _brackets(cursor)
    else:
        cursor.fail()


def _brackets(cursor: Cursor) -> Reading[None]:
    expected: list[str] = []
    for _ in range(TOKENS):
        character = cursor.text[cursor.position]
        if character in _CLOSERS:
            expected.append(_CLOSERS[character])
            cursor.position += 1
        elif character in {"]", "}"}:
            if expected.pop() != character:
                raise NotACallError
            cursor.position += 1
        elif whole := _WHOLE_STRING.match(cursor.text, cursor.position):
            cursor.position = whole.end()
        else:
            yield from string(cursor)
        if not expected:
            return
        if len(expected) > DEPTH:
            raise NotACallError
        if not _found_next(cursor):
            yield from cursor.run(_BETWEEN)
            if (yield from cursor.at_end()):
                cursor.fail()
    raise NotACallError


def _found_next(cursor: Cursor) -> bool:
    """Go to the next bracket or quote; say whether there is one in what has come."""
    found = _BETWEEN.match(cursor.text, cursor.position)
    cursor.position = found.end() if found else cursor.position
    return cursor.position < len(cursor.text)


def decoded(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return what the text says, forgiving what the head of this module lists. Raises ValueError.

    A key that stands twice in one object is refused: which one was meant is a guess.
    """
    try:
        try:
            return _strict(text)
        except ValueError:
            return _strict(_plain(text))  # it may be one of the forgivable forms
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _strict(text: str) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(text, strict=False, object_pairs_hook=_object, parse_constant=_refuse)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _plain(text: str) -> str:
    """Return the same value in JSON's own form. Raises ValueError where a piece is none."""
    parts: list[str] = []
    comma = False
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"unreadable at character {position}")
        if len(parts) > TOKENS:
            raise ValueError(f"more than {TOKENS:,} pieces")
        position, piece = found.end(), found.group()
        if piece.isspace():
            continue
        if comma and piece not in {"}", "]"}:
            parts.append(",")
        elif comma and parts[-1:] in (["{"], ["["], []):
            raise ValueError("a comma with nothing before it")
        comma = piece == ","
        if not comma:
            parts.append(_double_quoted(piece) if piece.startswith("'") else _PYTHON_WORDS.get(piece, piece))
    if comma:
        raise ValueError("ends with a comma")
    return " ".join(parts)


def _double_quoted(token: str) -> str:
    r"""Return a string in single quotes as JSON writes it: `\'` loses its backslash, `"` gets one."""
    inner = _INNER_QUOTE.sub(lambda found: {"\\'": "'", '"': '\\"'}.get(found.group(), found.group()), token[1:-1])
    return f'"{inner}"'
