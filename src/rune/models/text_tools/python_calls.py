"""Calls in Python's syntax, `name(path="a", limit=3)`: where one ends, and what it says. Literals only."""

import ast
import re
import warnings
from typing import Any, Final, cast

from rune.models.text_tools.cursor import Cursor, NotACallError, Reading
from rune.models.text_tools.loose_json import DEPTH, TOKENS

LENGTH: Final = 200_000
"""Characters of arguments that are still read: a tree of nodes takes far more room and time than JSON does."""

_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
_BETWEEN: Final = re.compile(r"[\w\s.,:=+-]*")
# What stands in a string, by the quotes that open it: its escapes, and in three quotes fewer than three.
_IN_STRING: Final = {
    quote * count: re.compile(rf"[^{quote}\\]*(?:(?:\\.{inner})[^{quote}\\]*)*", re.DOTALL)
    for quote in ('"', "'")
    for count, inner in ((1, ""), (3, f"|{quote}(?!{quote * 2})(?=..)"))
}
_QUOTED: Final = r"""(?:
      "{3} [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* "{3}
    | '{3} [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '{3}
    | "(?!"") [^"\\]* (?: \\. [^"\\]* )* "
    | '(?!'') [^'\\]* (?: \\. [^'\\]* )* ' )"""
_WHOLE_STRING: Final = re.compile(_QUOTED, re.VERBOSE | re.DOTALL)
_TOKEN: Final = re.compile(
    r"""(?P<blank> \s+ )
    | (?P<string> [rR]? """
    + _QUOTED
    + r""" )
    | (?P<number> [+-]? \.?\d [\w.]* (?: (?<= [eE] ) [+-] \d+ )? )
    | (?P<name> [^\W\d]\w* \s* = (?!=) )
    | (?P<word> (?: True | False | None ) \b )
    | (?P<opener> [(\[{] )
    | (?P<closer> [)\]}] )
    | (?P<mark> [,:] )""",
    re.VERBOSE | re.DOTALL,
)
_STARTS_A_VALUE: Final = frozenset({"string", "number", "word", "opener"})
_ENDS_A_VALUE: Final = frozenset({"string", "number", "word", "closer"})


def parenthesis(cursor: Cursor) -> Reading[None]:
    """Read from an opening parenthesis to the one that closes it."""
    expected = [")"]
    yield from cursor.expect("(")
    for _ in range(TOKENS):
        if not expected:
            return
        yield from cursor.run(_BETWEEN)
        character = yield from cursor.peek()
        if character in {"'", '"'}:
            whole = _WHOLE_STRING.match(cursor.text, cursor.position)
            if whole and whole.end() < len(cursor.text):  # at the end, two quotes may yet become three
                cursor.position = whole.end()
            else:
                yield from _string(cursor, character)
            continue
        if character in _CLOSERS:
            expected.append(_CLOSERS[character])
        elif character and character == expected[-1]:
            expected.pop()
        else:
            cursor.fail()
        if len(expected) > DEPTH:
            raise NotACallError
        cursor.position += 1
    raise NotACallError


def _string(cursor: Cursor, quote: str) -> Reading[None]:
    opener = yield from cursor.choose(quote * 3, quote * 2, quote)
    if opener == quote * 2:
        return
    while True:
        yield from cursor.run(_IN_STRING[opener])
        end = yield from cursor.choose(opener, quote, "\\")
        if end == opener:
            return
        if not end or (end == "\\" and (yield from cursor.at_end())):
            cursor.fail()
        cursor.position += end == "\\"


def arguments_of(text: str) -> dict[str, Any]:
    """Return the keyword arguments of `(name=literal, ...)`. Raises ValueError for anything else."""
    if len(text) > LENGTH:
        raise ValueError(f"more than {LENGTH:,} characters")
    _refuse_what_computes(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in a string that the model wrote
            call = cast("ast.Call", ast.parse(f"call{text}", mode="eval").body)
        if call.args or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError("an argument has no name")
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"not literals: {error}") from error


def _refuse_what_computes(text: str) -> None:
    """Raise ValueError where anything but names of arguments and literals stands.

    Python's parser sees the text only after this: long chains of operators, attributes or `not` exhaust its stack.
    """
    position, before = 0, ""
    while position < len(text):
        found = _TOKEN.match(text, position)
        kind = found.lastgroup if found else None
        if found is None or kind is None:
            raise ValueError(f"no literal at character {position}")
        position = found.end()
        if kind == "blank":
            continue
        if kind in _STARTS_A_VALUE and before in _ENDS_A_VALUE:
            raise ValueError(f"an argument is computed at character {found.start()}")
        before = kind
