"""Reads one move of the constrained protocol while it streams.

An answer comes out as text, as it comes and never as its JSON; a call comes out whole. What a model writes that did
not keep to the schema (a server may ignore it) is text like any other: none of it is lost. Where the pieces of the
stream are cut changes nothing.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from rune.errors import InvalidArgumentsError, ProtocolError, StreamBrokenError, UnusableCallError
from rune.models.text_tools.arguments import fitted
from rune.models.text_tools.constrained import ANSWER, ARGUMENTS, TOOL
from rune.models.text_tools.json_text import JsonText
from rune.models.transport import ChatChunk, TextDelta, ToolCallReady
from rune.records.tools import ToolCall, ToolSchema

# Characters of a call that is not whole yet: a server that never ends must not fill the memory.
MOST_HELD: Final = 16 * 1024 * 1024

_MEMBERS: Final = (TOOL, ARGUMENTS, ANSWER)

_Place = Literal["start", "key", "colon", "value", "inside", "answer", "next", "after", "prose", "failed"]

# Round an object: blanks, and a fence that some models put round everything. What is read again with each piece
# that comes has a bound: a model that is held to a schema may write blanks until its window is full.
_SPACE: Final = re.compile(r"\s*")
_OPENING: Final = re.compile(r"```\w{0,40}(?=[\s{])")
_PERHAPS_OPENING: Final = re.compile(r"`{0,2}|```\w{0,40}")
_CLOSING: Final = re.compile(r"```")
_PERHAPS_CLOSING: Final = re.compile(r"`{0,2}")

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_KEY: Final = re.compile(r'"((?:[^"\\]|\\.){0,1000})"', re.DOTALL)
_PERHAPS_KEY: Final = re.compile(r'"(?:[^"\\]|\\.){0,1000}\\?', re.DOTALL)
_SCALAR: Final = re.compile(r"[^\s,{}\[\]\"]+")
_NAMED: Final = re.compile(rf'"{TOOL}"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


class ConstrainedReader:
    """Takes the text of one model answer in pieces. `tools` are those on offer, with the schemas that the answer
    was held to. `called` says that a call has come out.
    """

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._place: _Place = "start"
        self._unread = ""
        self._object: list[str] = []
        self._hidden: list[str] = []
        self._size = 0
        self._fenced = False
        self._keys: list[str] = []
        self._text = JsonText()
        self._inside = _Inside()
        self.called = False
        self._answered = False
        self._failure: UnusableCallError | None = None
        self._shown: list[str] = []
        self._out: list[ChatChunk] = []
        self._steps: dict[_Place, Callable[[], None]] = {
            "start": self._start,
            "key": self._key,
            "colon": self._mark,
            "value": self._value,
            "inside": self._pass,
            "answer": self._answer,
            "next": self._mark,
            "after": self._after,
            "prose": self._prose,
            "failed": self._ignore,
        }

    def feed(self, text: str) -> list[ChatChunk]:
        """Return what `text` completes. Raises ProtocolError when that never ends."""
        self._unread += text
        going = True
        while going and self._unread:
            place, unread = self._place, len(self._unread)
            self._steps[place]()
            going = place != self._place or unread != len(self._unread)
        self._say()
        out, self._out = self._out, []
        if self._size + len(self._unread) > MOST_HELD:
            raise ProtocolError(f"the model wrote more than {MOST_HELD:,} characters of a call without an end")
        return out

    def end(self, *, cut: bool = False) -> list[ChatChunk]:
        """Return what is left at the end. `cut`: the length limit ended it, so that an open answer is what came of it.

        Raises UnusableCallError for a call that is not whole or cannot be used, StreamBrokenError for an answer that
        the model left open.
        """
        if self._failure is not None:
            raise self._failure
        if self._place == "prose":
            return self.release()
        if self._place == "answer":
            if not cut:
                raise StreamBrokenError("the model's answer ended in the middle of its JSON")
            return _delta(self._text.end(self._unread))
        if self._place == "start" and _PERHAPS_OPENING.fullmatch(self._unread):
            # Blanks, or a fence with nothing in it.
            return []
        if self._place == "after" and not self._unread:
            return []
        if self._place == "next" and self._answered:
            # Only the object's own mark is missing.
            return []
        if not self._answered and TOOL in self._keys:
            why = "it was cut off by the length limit" if cut else "it ended in the middle of its JSON"
            raise UnusableCallError(self._tool_so_far(), why)
        return self.release()

    def release(self) -> list[ChatChunk]:
        """Return, as text, what came and has not been given out; for a stream that broke."""
        left = self._text.end(self._unread) if self._place == "answer" else "".join([*self._hidden, self._unread])
        self._hidden, self._unread, self._place = [], "", "prose"
        return _delta(left)

    def _start(self) -> None:
        if not self._size and self._unread.startswith("\ufeff"):
            self._hide(1)
        self._space()
        if self._unread.startswith("{"):
            self._take(1)
            self._place = "key"
        elif not self._fence(_OPENING, _PERHAPS_OPENING):
            self._place = "prose"

    def _space(self) -> None:
        space = _SPACE.match(self._unread)
        if space and space.end():
            self._hide(space.end())

    def _fence(self, fence: "re.Pattern[str]", beginning: "re.Pattern[str]") -> bool:
        """Take a fence, the first one; return False where something else stands."""
        if not self._unread:
            return True
        found = None if self._fenced else fence.match(self._unread)
        if found:
            self._hide(found.end())
            self._fenced = True
        return found is not None or (not self._fenced and beginning.fullmatch(self._unread) is not None)

    def _key(self) -> None:
        self._blanks()
        if key := _KEY.match(self._unread):
            self._keys.append(_decoded(key[0]))
            self._take(key.end())
            self._place = "colon" if self._could_be_a_move() else "prose"
        elif self._unread and not self._may_become_a_key():
            self._place = "prose"
            if TOOL in self._keys and self._unread.startswith('"'):
                self._failure = UnusableCallError(self._tool_so_far(), "the name of one of its members has no end")
                self._place = "failed"

    def _could_be_a_move(self) -> bool:
        return self._keys[0] in _MEMBERS

    def _may_become_a_key(self) -> bool:
        if self._keys:
            return _PERHAPS_KEY.fullmatch(self._unread) is not None
        return any(f'"{member}"'.startswith(self._unread) for member in _MEMBERS)

    def _mark(self) -> None:
        """Take what stands between keys and values, and at the end of the object."""
        self._blanks()
        found = self._unread[:1]
        if not found:
            return
        follows: dict[tuple[str, str], _Place] = {("colon", ":"): "value", ("next", ","): "key", ("next", "}"): "after"}
        self._place = follows.get((self._place, found), "prose")
        if self._place != "prose":
            self._take(1)
        if self._place == "after":
            self._close()

    def _value(self) -> None:
        self._blanks()
        found = self._unread[:1]
        if found == '"' and self._keys[-1] == ANSWER and not self._answered:
            self._take(1)
            self._place, self._answered, self._hidden = "answer", True, []
        elif found:
            self._inside = _Inside()
            self._place = "prose" if found in ",:}]" else "inside"

    def _pass(self) -> None:
        self._take(self._inside.length(self._unread))
        if self._inside.ended:
            self._place = "next"

    def _answer(self) -> None:
        text, length = self._text.read(self._unread)
        self._shown.append(text)
        self._object.append(self._unread[:length])
        self._unread = self._unread[length:]
        if self._text.ended:
            # Should the object not go on as one, the mark belonged to the words.
            self._hidden, self._place = ['"'], "next"

    def _after(self) -> None:
        self._space()
        if not self._fence(_CLOSING, _PERHAPS_CLOSING):
            self._place = "prose"

    def _prose(self) -> None:
        self._shown += [*self._hidden, self._unread]
        self._hidden, self._unread, self._size = [], "", 0

    def _ignore(self) -> None:
        # What follows a call that cannot be used rests on it.
        self._unread = ""

    def _close(self) -> None:
        try:
            move = msgspec.json.decode("".join(self._object), type=dict[str, Any])
            if TOOL in move:
                call = self._call(move)
                self._say()
                self._out.append(ToolCallReady(call))
                self.called = True
        except UnusableCallError as error:
            self._failure, self._place = error, "failed"
        except (msgspec.MsgspecError, RecursionError) as error:
            if TOOL in self._keys:
                self._failure = UnusableCallError(self._tool_so_far(), f"it is not JSON: {error}")
                self._place = "failed"
            elif not self._answered:
                self._place = "prose"
                return
        else:
            if not self._answered and TOOL not in move:
                if ANSWER not in move:
                    self._place = "prose"
                    return
                self._shown.append(msgspec.json.encode(move[ANSWER]).decode())
        self._object, self._hidden, self._size, self._fenced = [], [], 0, False

    def _call(self, move: dict[str, Any]) -> ToolCall:
        if len(set(self._keys)) < len(self._keys):
            raise UnusableCallError(self._tool_so_far(), "one of its members stands twice")
        name, arguments = move[TOOL], move.get(ARGUMENTS, {})
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise UnusableCallError(str(name), "no tool of that name was offered")
        try:
            given = fitted(tool, arguments)
        except InvalidArgumentsError as error:
            raise UnusableCallError(tool.name, error.message) from error
        return ToolCall(id="call_1", name=tool.name, arguments=given, source="constrained")

    def _tool_so_far(self) -> str:
        named = _NAMED.search("".join([*self._object, self._unread]))
        return named[1] if named else ""

    def _say(self) -> None:
        self._out += _delta("".join(self._shown))
        self._shown = []

    def _blanks(self) -> None:
        blanks = _BLANKS.match(self._unread)
        self._take(blanks.end() if blanks else 0)

    def _take(self, length: int) -> None:
        self._object.append(self._unread[:length])
        self._hide(length)

    def _hide(self, length: int) -> None:
        """Keep so much back: it may be structure, and nobody reads that."""
        self._hidden.append(self._unread[:length])
        self._size += length
        self._unread = self._unread[length:]


class _Inside:
    """Finds the end of a value that is not looked into until it is whole."""

    _PIECE: Final = re.compile(r'[^"{}\[\]]+|["{}\[\]]')
    _STRING: Final = re.compile(r'(?:[^"\\]|\\.)+|"', re.DOTALL)

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._scalar = False
        self.ended = False

    def length(self, text: str) -> int:
        """Return how many characters of `text` belong to the value; `ended` says that the last one was its end."""
        at = 0
        while not self.ended and at < len(text):
            found = self._next(text, at)
            if found is None:
                break
            at = found
        return at

    def _next(self, text: str, at: int) -> int | None:
        if self._quoted:
            piece = self._STRING.match(text, at)
            if piece is None:
                return None  # half of an escape
            self._quoted = piece[0] != '"'
            self.ended = not self._quoted and self._depth == 0
            return piece.end()
        if self._scalar or (self._depth == 0 and text[at] not in '"{['):
            self._scalar = True
            scalar = _SCALAR.match(text, at)
            # The end of a number is what follows it.
            self.ended = scalar is None or scalar.end() < len(text)
            return scalar.end() if scalar else at
        piece = self._PIECE.match(text, at)
        mark = piece[0] if piece else ""
        self._quoted = mark == '"'
        self._depth += (mark in {"{", "["}) - (mark in {"}", "]"})
        self.ended = not self._quoted and self._depth == 0
        return piece.end() if piece else None


def _decoded(key: str) -> str:
    try:
        return msgspec.json.decode(key, type=str)
    except msgspec.MsgspecError:
        return key


def _delta(text: str) -> list[ChatChunk]:
    return [TextDelta(text)] if text else []
