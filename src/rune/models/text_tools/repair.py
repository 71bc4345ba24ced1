"""Calls that a model wrote as text (models.md, Repair): found, or told apart from an answer. Pure.

A text counts as calls only when all of it is calls of offered tools whose arguments fit. Whoever takes them must ask
the person, always: such a text may have been copied from a file.
"""

from collections.abc import Collection, Generator, Sequence
from typing import Any, Final, cast

import msgspec

from rune.errors import InvalidArgumentsError
from rune.models.text_tools.arguments import fitted
from rune.models.text_tools.cursor import Cursor, CutOffError, NotACallError
from rune.models.text_tools.draft import Draft, Written
from rune.models.text_tools.families import whole
from rune.models.text_tools.loose_json import decoded
from rune.models.text_tools.offered import offered_name
from rune.models.text_tools.python_calls import arguments_of
from rune.records.tools import ToolCall, ToolSchema

LENGTH: Final = 2_000_000
"""Characters of an answer that are looked at; a longer one is an answer."""


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the offered tool `name` that cannot be made; `reason` is one line, for people and for the next try."""

    name: str
    reason: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a text is: calls, a call that cannot be used, or (neither is given) an answer."""

    calls: tuple[ToolCall, ...] = ()
    unusable: Unusable | None = None


NOTHING: Final = Found()


class CallHold:
    """Says of a text that arrives in pieces whether it may still become nothing but calls. Costs linear time.

    With the names that were offered it knows earlier. Once it says no it stays with that.
    """

    def __init__(self, offered: Collection[str] | None = None) -> None:
        self._cursor = Cursor(keep=False)
        known = None if offered is None else frozenset(offered)
        self._draft = Draft(offered=lambda name: known is None or offered_name(name, known) is not None)
        self._reading: Generator[None, None, None] | None = whole(self._cursor, self._draft)
        self._length = 0
        self._go_on()

    @property
    def holds(self) -> bool:
        """Whether what has come may still be the beginning of calls, and so must not be shown."""
        return self._reading is not None

    def feed(self, text: str) -> bool:
        """Take the next piece; return `holds`."""
        self._length += len(text)
        if self._length > LENGTH:
            self._reading = None
        if self._reading is not None and text:
            self._cursor.feed(text)
            self._go_on()
        return self.holds

    def _go_on(self) -> None:
        try:
            if self._reading is not None:
                next(self._reading)
        except NotACallError:
            self._reading = None


def may_become_call(text_so_far: str) -> bool:
    """Say whether a text that begins so could be nothing but calls, whichever tools are offered."""
    return CallHold().feed(text_so_far)


def calls_in(text: str, tools: Sequence[ToolSchema]) -> Found:
    """Return the calls that the text is, with ids of their own, or why it is none that can be used."""
    if not tools or len(text) > LENGTH:
        return NOTHING
    offered = {tool.name: tool for tool in tools}
    draft = Draft(offered=lambda name: offered_name(name, offered) is not None)
    try:
        _read(text, draft)
    except CutOffError:
        name = offered_name(draft.begun, offered) if draft.begun else None
        reason = "the text ends in the middle of the call"
        return Found(unusable=Unusable(name=name, reason=reason)) if name else NOTHING
    except NotACallError:
        return NOTHING
    calls: list[ToolCall] = []
    for written in draft.calls:
        tool = offered[str(offered_name(written.name, offered))]
        try:
            arguments = _arguments(written, tool)
            if _is_a_definition(arguments, tool):
                if written.listed:
                    continue  # the model repeats what it was offered, and calls after that
                return NOTHING
            taken = fitted(tool, arguments)
        except InvalidArgumentsError as error:
            return Found(unusable=Unusable(name=tool.name, reason=error.message.partition("\n")[0]))
        calls.append(ToolCall(id=f"repaired_{len(calls) + 1}", name=tool.name, arguments=taken, source="repaired"))
    return Found(calls=tuple(calls))


def _read(text: str, draft: Draft) -> None:
    """Run the grammar over a whole text. Raises NotACallError."""
    cursor = Cursor(text, keep=True)
    cursor.closed = True
    for _ in whole(cursor, draft):
        pass  # nothing is waited for: all of the text is there


def _arguments(written: Written, tool: ToolSchema) -> object:
    """Return what was written as a value. Raises InvalidArgumentsError where it cannot be read."""
    try:
        if written.form == "xml":
            return _parameters(written.parameters, tool)
        return arguments_of(written.arguments) if written.form == "python" else decoded(written.arguments)
    except ValueError as error:
        raise InvalidArgumentsError(f"the arguments of {tool.name} cannot be read: {error}") from error


def _parameters(written: Sequence[tuple[str, str]], tool: ToolSchema) -> dict[str, Any]:
    """Return an XML call's parameters: text, but where the schema wants an object or a list. Raises ValueError."""
    if len(dict(written)) != len(written):
        raise ValueError("a parameter stands twice")
    properties = cast("dict[str, Any]", tool.parameters.get("properties") or {})
    return {key: decoded(text) if _is_structured(properties.get(key)) else text for key, text in written}


def _is_structured(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = cast("dict[str, Any]", schema).get("type")
    kinds: list[Any] = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    return "string" not in kinds and ("object" in kinds or "array" in kinds)


def _is_a_definition(arguments: object, tool: ToolSchema) -> bool:
    """Say whether these are no arguments but the tool's schema, which models repeat."""
    if not isinstance(arguments, dict):
        return False
    given = cast("dict[str, Any]", arguments)
    own: object = tool.parameters.get("properties")
    takes_properties = isinstance(own, dict) and "properties" in own
    return not takes_properties and given.get("type") == "object" and isinstance(given.get("properties"), dict)
