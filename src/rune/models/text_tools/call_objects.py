"""Calls as JSON objects: a name and arguments, under the keys that models use, or wrapped as chat interfaces do."""

from collections.abc import Callable
from typing import Final

from rune.models.text_tools import loose_json
from rune.models.text_tools.cursor import Cursor, NotACallError, Reading
from rune.models.text_tools.draft import Draft, Written

_NESTED: Final = 4

_NAMES: Final = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input")
_WRAPPERS: Final = ("function", "tool", "function_call", "tool_call")
_LISTS: Final = ("tool_calls", "function_calls")
_KINDS: Final = ("function", "tool_call", "function_call", "tool_use")
_IDS: Final = ("id", "call_id", "tool_call_id")
_ABOUT: Final = ("description", "strict")
_KEYS: Final = tuple(dict.fromkeys((*_NAMES, *_ARGUMENTS, *_WRAPPERS, *_LISTS, *_IDS, "type")))


def call_object(cursor: Cursor, draft: Draft, depth: int = _NESTED) -> Reading[None]:
    """Read an object that is a call, or wraps calls; its last bracket may be missing at the end of the text."""
    if not depth:
        raise NotACallError
    repeated = draft.marker == "<tools>"
    yield from cursor.expect("{")
    seen: dict[str, str] = {}
    before = len(draft.calls)
    while True:
        yield from cursor.blanks()
        if seen and (yield from cursor.choose("}")):
            break
        key = yield from loose_json.word(cursor, (*_KEYS, *_ABOUT) if repeated else _KEYS)
        if key in seen:
            raise NotACallError
        yield from cursor.blanks()
        yield from cursor.expect(":")
        yield from cursor.blanks()
        seen[key] = yield from _member(cursor, draft, key, depth)
        yield from cursor.blanks()
        if not (yield from cursor.choose(",")):
            yield from _closing(cursor)
            break
    names, arguments = [key for key in _NAMES if seen.get(key)], [key for key in _ARGUMENTS if key in seen]
    wraps = len(draft.calls) > before
    if wraps == bool(names or arguments) or len(names) > 1 or len(arguments) > 1 or (bool(names) != bool(arguments)):
        raise NotACallError
    if names:
        name, text = seen[names[0]], seen[arguments[0]]
        draft.add(Written(name=name, form="json", arguments=text, listed=repeated))


def _closing(cursor: Cursor) -> Reading[None]:
    if (yield from cursor.choose("}")) or (yield from cursor.at_end()):
        return
    if not (yield from cursor.stands("<", "]", "```")):
        raise NotACallError


def _member(cursor: Cursor, draft: Draft, key: str, depth: int) -> Reading[str]:
    """Read what stands under `key`; return the name or the text of the arguments that it gives, else ""."""
    opener = yield from cursor.peek()
    if key in _ARGUMENTS:
        mark = cursor.position
        yield from loose_json.value(cursor)
        return cursor.since(mark)
    if opener == "{" and key in _WRAPPERS:
        yield from call_object(cursor, draft, depth - 1)
    elif opener == "[" and key in _LISTS:
        cursor.position += 1
        yield from listed(cursor, lambda: call_object(cursor, draft, depth - 1))
    elif key in _NAMES:
        quote = yield from cursor.expect('"', "'")
        name = draft.begin((yield from cursor.name()))
        yield from cursor.expect(quote)
        return name
    elif key == "type":
        yield from loose_json.word(cursor, _KINDS)
    elif key in _IDS or key == "description":
        yield from loose_json.string(cursor)
    elif key == "strict":
        yield from cursor.expect("true", "false")
    else:
        raise NotACallError
    return ""


def listed(cursor: Cursor, item: Callable[[], Reading[None]]) -> Reading[None]:
    """Read items up to the bracket that closes their list; at the end of the text it may be missing."""
    while True:
        yield from cursor.blanks()
        yield from item()
        yield from cursor.blanks()
        separator = yield from cursor.choose(",", "]")
        yield from cursor.blanks()
        if separator == "]" or (separator and (yield from cursor.choose("]"))):
            return
        if not separator:
            if (yield from cursor.at_end()):
                return
            raise NotACallError
