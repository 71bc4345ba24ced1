"""Reading what was folded away: output of a call, kept whole as evidence."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import EvidenceTamperedError, FileUnavailableError, InvalidArgumentsError, NotFoundError
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.paging import MOST_LINES, lines_of, page
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.text_file import BinaryFile, decode
from rune.tools.workplace import Workplace

_NAME: Final = "read_artifact"
_ID: Final = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})")
_SHOWN: Final = 12

Resolve = Callable[[str, str], Awaitable[str]]
"""From a conversation and the first hex digits of an id (12 to 64) to the whole id, for what the conversation was shown
and nothing else. Raises NotFoundError, also where they are those of more than one.
"""


class _Arguments(Arguments, frozen=True, kw_only=True):
    id: Annotated[str, Meta(description="Its id, as shown.", examples=["3f9a1c2b4d5e"])]
    offset: Annotated[int, Meta(ge=1, description="First line.")] = 1
    limit: Annotated[int, Meta(ge=1, description="Most lines.")] = MOST_LINES


class ReadArtifact:
    """The tool read_artifact."""

    schema = schema_of(
        _NAME,
        "Reads output that was too long to be shown whole. Use it when a result names an id for the rest.",
        _Arguments,
    )
    kind: ToolKind = "read"

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        found = _ID.fullmatch(given.id.strip().lower())
        if found is None:
            raise InvalidArgumentsError(
                f"{given.id[:80]!r} is no id of an output", hint="It is 12 hex digits, as a result shows them."
            )
        part = f" from line {given.offset}" if given.offset > 1 else ""
        return Plan(effect=f"output {found[1][:_SHOWN]}{part}", state=(found[1], given))

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Read (Tool.execute)."""
        digits, given = plan.state
        name = f"output {digits[:_SHOWN]}"
        try:
            data = await place.fetch(await self._resolve(place.conversation_id, digits))
        except NotFoundError as error:
            raise FileUnavailableError(
                f"this conversation was shown no output with the id {digits[:_SHOWN]}",
                hint="Use an id that stands in a result, or run the command again.",
            ) from error
        except EvidenceTamperedError as error:
            raise FileUnavailableError(f"{name} is damaged: {error.message}", retryable=False) from error
        found = decode(data)
        if isinstance(found, BinaryFile):
            raise FileUnavailableError(f"{name} is {found.in_words}", retryable=False)
        lines = lines_of(found.text)
        if not lines:
            return Done(text=f"{name} is empty.", summary=f"{name}: empty")
        if given.offset > len(lines):
            raise InvalidArgumentsError(f"{name} has {len(lines):,} lines: there is no line {given.offset:,}")
        part = page(lines, given.offset, given.limit, numbered=False)
        note = part.note(f"{_NAME} id={digits[:_SHOWN]}")
        return Done(
            text=f"{part.text}\n{note}" if note else part.text,
            summary=f"{name}: lines {part.first}-{part.last} of {part.total}",
        )
