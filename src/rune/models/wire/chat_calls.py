"""Tool calls of an OpenAI-style stream, put together from their fragments.

By the book a fragment has an `index`, and the first of each call its `id` and `name`. Servers leave the index out, give
0 to every call, repeat id and name in each fragment, invent a new id for each, split the name, or send `arguments` as
an object: what a fragment belongs to is decided here, once.
"""

import re
from typing import Any, Final

import msgspec

from rune.errors import ProtocolError, UnusableCallError
from rune.models.wire.ndjson import decode_object
from rune.records.tools import ToolCall

MOST_CALLS: Final = 1_000
MOST_TEXT: Final = 16 * 1024 * 1024
"""Calls, and characters of names and arguments, that one answer may hold: a server that never ends must not fill the
memory."""

_PIECE: Final = re.compile(r'[^"{}]+|["{}]')
_IN_STRING: Final = re.compile(r'(?:[^"\\]|\\.)+|"', re.DOTALL)


class Function(msgspec.Struct, frozen=True):
    """What a fragment says of the function."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class Fragment(msgspec.Struct, frozen=True):
    """A piece of a tool call as it comes."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class CallAssembly:
    """The calls of one answer while their fragments come."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, fragment: Fragment) -> None:
        """Take a fragment in. Raises ProtocolError for more calls, or longer ones, than an answer can have."""
        function = fragment.function or Function()
        self._size += len(function.name or "")
        if isinstance(function.arguments, str):
            self._size += len(function.arguments)
        if self._size > MOST_TEXT:
            raise ProtocolError(f"the calls of one answer have more than {MOST_TEXT:,} characters")
        call = self._belongs_to(fragment, function.name or "")
        if call is None:
            if len(self._calls) == MOST_CALLS:
                raise ProtocolError(f"one answer asks for tools more than {MOST_CALLS:,} times")
            call = _Call()
            self._calls.append(call)
        if fragment.index is not None:
            self._by_index[fragment.index] = call
        call.add(fragment.id or "", function)
        self._by_id.setdefault(call.id, call)

    def whole(self) -> list[ToolCall]:
        """Return the calls in the order they began, each with an id that is its own in this answer.

        Raises UnusableCallError for one without a name, or whose arguments are no JSON object.
        """
        taken: set[str] = set()
        return [call.whole(taken) for call in self._calls]

    def _belongs_to(self, fragment: Fragment, name: str) -> "_Call | None":
        """Return the call that a fragment goes on with; None: it begins one."""
        if fragment.index is not None:
            current = self._by_index.get(fragment.index)
            begins = current is not None and current.is_followed_by(fragment.id or "", name)
            return None if begins else current
        last = self._calls[-1] if self._calls else None
        known = self._by_id.get(fragment.id) if fragment.id else None
        if last is None or known is not None or not name:
            return known or last
        if fragment.id:
            return last if last.holds_arguments() and not last.is_whole() else None
        return None if last.is_whole() else last


class _Call:
    """One tool call while its fragments come."""

    def __init__(self) -> None:
        self.id = ""
        self._name = ""
        self._texts: list[str] = []
        self._extent = _Extent()
        self._object: dict[str, Any] | None = None

    def add(self, identity: str, function: Function) -> None:
        self.id = self.id or identity
        if function.name and function.name != self._name:
            self._name += function.name
        if isinstance(function.arguments, str):
            self._texts.append(function.arguments)
            self._extent.feed(function.arguments)
        elif function.arguments is not None:
            self._object = function.arguments

    def is_followed_by(self, identity: str, name: str) -> bool:
        """Whether a fragment with the same index begins another call: one that has an id of its own and a name.

        Some servers invent an id for each fragment, so a call whose arguments have begun must be whole first.
        """
        if not name or not identity or not self.id or identity == self.id:
            return False
        return self.is_whole() or not self.holds_arguments()

    def holds_arguments(self) -> bool:
        return self._object is not None or any(text.strip() for text in self._texts)

    def is_whole(self) -> bool:
        if self._object is not None:
            return True
        if not self._extent.is_closed:
            return False
        text = "".join(self._texts)
        try:
            decode_object(text.encode("utf-8", "replace"))
        except ProtocolError:
            return False
        return True

    def whole(self, taken: set[str]) -> ToolCall:
        if not self._name:
            raise UnusableCallError("", "it names no tool")
        identity = self.id
        if not identity or identity in taken:
            identity = next(name for n in range(1, len(taken) + 2) if (name := f"call_{n}") not in taken)
        taken.add(identity)
        return ToolCall(id=identity, name=self._name, arguments=self._arguments())

    def _arguments(self) -> dict[str, Any]:
        if self._object is not None:
            return self._object
        text = "".join(self._texts).strip()
        if text in {"", "null"}:
            return {}
        try:
            return decode_object(_unwrapped(text).encode("utf-8", "replace"))
        except ProtocolError as error:
            raise UnusableCallError(self._name, f"its arguments are not a JSON object: {error.reason}") from error


class _Extent:
    """Where an object that arrives in pieces ends: only there is it worth decoding."""

    def __init__(self) -> None:
        self._left: str = ""
        self._depth = 0
        self._quoted = False
        self._followed = False
        self.is_closed = False

    def feed(self, text: str) -> None:
        """Read on; an end that something follows is none."""
        text, self._left, at = self._left + text, "", 0
        while at < len(text) and not self._followed:
            piece = (_IN_STRING if self._quoted else _PIECE).match(text, at)
            if piece is None:  # half of an escape
                self._left = text[at:]
                return
            at = piece.end()
            if self.is_closed:
                self._followed = not piece[0].isspace()
                self.is_closed = not self._followed
            elif piece[0] == '"':
                self._quoted = not self._quoted
            elif not self._quoted:
                self._depth += (piece[0] == "{") - (piece[0] == "}")
                self.is_closed = piece[0] == "}" and self._depth == 0


def _unwrapped(text: str) -> str:
    """Return arguments that were written as JSON twice over as they were before the second time."""
    if not text.startswith('"'):
        return text
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.MsgspecError:
        return text  # no JSON text after all: decoding it says what is wrong
