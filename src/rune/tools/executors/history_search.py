"""Looking for what was said in past conversations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

from msgspec import Meta

from rune.errors import FileUnavailableError, StorageError
from rune.store.hits import MessageHit
from rune.text.storable import storable
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.naming import shown_name
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

_NAME: Final = "history_search"
_MOST: Final = 50
_OF_EACH: Final = 3
_ID_CHARACTERS: Final = 6  # of the end: the beginning is the time


class History(Protocol):
    """Where messages are found; `store.conversations.ConversationStateRepository` is one."""

    async def search(
        self, text: str, *, limit: int = 20, with_hidden: bool = True, of_each: int | None = None
    ) -> Sequence[MessageHit]:
        """Return the messages in which all words occur, the best first. Raises StorageError."""
        ...


class _Arguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, description="Words that all occur.", examples=["parser bug"])]
    limit: Annotated[int, Meta(ge=1, le=_MOST, description="Most results.")] = 10


class HistorySearch:
    """The tool history_search. Conversations that the person hid are not looked into."""

    schema = schema_of(
        _NAME,
        "Finds messages of past conversations. Use it when the user speaks of something said earlier.",
        _Arguments,
    )
    kind: ToolKind = "read"

    def __init__(self, history: History) -> None:
        self._history = history

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        return Plan(effect=shown_name(given.query), state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look (Tool.execute)."""
        given: _Arguments = plan.state
        try:
            hits = await self._history.search(given.query, limit=given.limit, with_hidden=False, of_each=_OF_EACH)
        except StorageError as error:
            raise FileUnavailableError(f"past conversations cannot be searched: {error.message}") from error
        if not hits:
            return Done(text="No message holds all of these words. Try fewer or other words.", summary="0 messages")
        lines = [_line(hit, place.conversation_id) for hit in hits]
        if len(hits) == given.limit:
            lines.append(f"[the first {given.limit}; there may be more]")
        return Done(text="\n".join(lines), summary=f"{len(hits)} {'message' if len(hits) == 1 else 'messages'}")


def _line(hit: MessageHit, current: str) -> str:
    where = "this conversation" if hit.conversation_id == current else hit.conversation_id[-_ID_CHARACTERS:]
    more = f" [+{hit.more:,} more there]" if hit.more else ""
    return storable(f"{hit.ts[:10] or 'no date'} {where} {hit.role}: {' '.join(hit.snippet.split())}{more}")
