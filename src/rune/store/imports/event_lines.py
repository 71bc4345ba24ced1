"""An older journal, JSON lines: what maps becomes ours, all else is kept as `event.imported`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from rune.errors import UsageError
from rune.records.events import EventImported
from rune.records.ids import is_id
from rune.records.messages import ConversationMessageRecord
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.turns import StopReason, TurnRecord
from rune.store.codec import digest
from rune.store.imports.arrivals import Arrival, LeftOut, LeftOutError
from rune.store.imports.derived_ids import derived
from rune.store.imports.event_words import Said, understand
from rune.store.imports.foreign_files import ForeignLine, chunks, lines, opened
from rune.store.imports.foreign_json import Foreign, Mask, read_object
from rune.store.imports.threads import Thread, Threads, remember, task_brought_in, task_id, title_of, whole_turn
from rune.store.ledger import Draft, once
from rune.text.storable import storable
from rune.text.tokens import estimate

_OURS = frozenset({"crc", "prev", "payload_hash", "hlc"})
_OUR_HEADER = frozenset({"crc", "prev", "segment", "writer", "format"})
_HOW_TO_USE_IT = (
    "To read it, put it into a folder of its own as journal/w000-000001.jsonl (its evidence folder beside journal) "
    "and set RUNE_HOME to that folder."
)
_FOR_A_LIST = "A list of tasks comes in with `rune import operator FILE`."


def events_in(path: Path, mask: Mask) -> Iterator[Arrival | LeftOut]:
    """Iterate over what an older journal holds, in bounded memory.

    Raises UsageError for a file that cannot be read, for one that is a journal of this form already, and for one that
    is a list.
    """
    reader, begun = _Reader(mask), False
    with opened(path) as descriptor:
        for line in lines(chunks(descriptor, path)):
            if not line.too_long and not line.data.strip():
                continue
            if not begun and line.data.lstrip().startswith(b"["):
                raise UsageError(f"{str(path)!r} is a JSON list, and not an event on each line", hint=_FOR_A_LIST)
            begun = True
            where = f"line {line.number:,}"
            try:
                yield from reader.line(line, where, path)
            except LeftOutError as error:
                yield LeftOut(where, error.reason)
            yield from reader.forgotten()
        yield from reader.end()


class _Reader:
    """Turns lines into arrivals, in the order of the file."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._threads = Threads()
        self._first = True

    def line(self, line: ForeignLine, where: str, path: Path) -> Iterator[Arrival]:
        """Give what one line is. Raises LeftOutError, and UsageError when the file is a journal of ours."""
        foreign = read_object(line.data, line.length, self._mask)
        names = foreign.given.keys()
        if names >= _OURS or names >= _OUR_HEADER:
            if self._first:
                raise UsageError(f"{str(path)!r} is a journal of Rune in its present form already", hint=_HOW_TO_USE_IT)
            raise LeftOutError("it is a line of Rune's present journal, which is not imported")
        self._first = False
        said = understand(foreign)
        yield self._arrival(said, foreign, where)

    def forgotten(self) -> Iterator[Arrival]:
        """Give the ends of turns in conversations that are no longer kept in mind."""
        for thread in self._threads.forgotten:
            yield from _unanswered(thread)
        self._threads.forgotten.clear()

    def end(self) -> Iterator[Arrival]:
        """Give the ends of turns that nobody answered."""
        for thread in self._threads.rest():
            yield from _unanswered(thread)

    def _arrival(self, said: Said, foreign: Foreign, where: str) -> Arrival:
        if said.says in ("user", "assistant"):
            return self._message(said, foreign.kept, where, "user" if said.says == "user" else "assistant")
        if said.says == "task" and (found := self._task(said, foreign.kept, where)) is not None:
            return found
        if said.says == "begin":
            thread, setting = self._threads.of(said, begins=True)
            kept = _kept(said, foreign.kept, became=thread.record.id)
            return Arrival(where=where, became="conversation", raw=foreign.kept, drafts=(kept,), setting=tuple(setting))
        return Arrival(where=where, became="other", raw=foreign.kept, drafts=(_kept(said, foreign.kept),))

    def _message(self, said: Said, raw: bytes, where: str, role: Literal["user", "assistant"]) -> Arrival:
        thread, setting = self._threads.of(said)
        task, beginning = self._threads.task(thread, said)
        setting += beginning
        drafts: list[Draft] = []
        message_id = derived("msg", *said.key)
        turn = thread.turn
        if role == "user" or turn is None:
            if (left := thread.unanswered) is not None:
                setting += whole_turn(left, StopReason.INTERRUPTED)
            turn = TurnRecord(
                id=derived("trn", *said.key),
                conversation_id=thread.record.id,
                task_id=task.id,
                message_id=message_id,
                model=said.model,
            )
        if role == "user":
            thread.turn, thread.answered = turn, False
        elif thread.unanswered is not None:
            thread.answered = True
            drafts += whole_turn(msgspec.structs.replace(turn, model=said.model), StopReason.ANSWERED)
        content = message_text(said.text)
        message = ConversationMessageRecord(
            id=message_id,
            ts=said.at,
            role=role,
            content=content,
            conversation_id=thread.record.id,
            task_id=turn.task_id,
            turn_id=turn.id,
            token_estimate=estimate(content),
            attachments=(digest(raw),),
            provenance="imported",
            model=said.model if role == "assistant" else "",
        )
        return Arrival(
            where=where,
            became="message",
            raw=raw,
            drafts=(spoken(message), *drafts),
            setting=tuple(setting),
        )

    def _task(self, said: Said, raw: bytes, where: str) -> Arrival | None:
        """Return a task's change; None when the line does not say enough for one."""
        title = title_of(said.title)
        if not title and not said.conversation:
            return None
        thread, setting = self._threads.of(said)
        known = thread.tasks.get(said.task)
        if not title and known is None:
            return None
        task = TaskStateRecord(
            id=task_id(thread, said.task),
            title=title or (known.title if known else ""),
            status=said.status or TaskStatus.OPEN,
            conversation_id=thread.record.id,
            parent_task_id=None,
            assigned_model=said.model or (known.assigned_model if known else ""),
            created_at=known.created_at if known else said.at,
            updated_at=said.at,
            outcome_ref=digest(raw),
        )
        remember(thread, said.task, task)
        draft = task_brought_in(task, event_id=_event_id(said))
        return Arrival(where=where, became="task", raw=raw, drafts=(draft,), setting=tuple(setting))


def spoken(message: ConversationMessageRecord) -> Draft:
    """Return what was said; once for the message's id."""
    names: Mapping[str, tuple[str, str]] = {
        "user": ("user.message", "owner"),
        "assistant": ("response.generated", f"model:{message.model}"),
    }
    event_type, actor = names[message.role]
    return Draft(
        event_type=event_type,
        body=message,
        partition=message.conversation_id,
        actor_id=actor,
        event_id=once(message.id),
    )


def message_text(text: str) -> str:
    """Return text as a message may hold it: what JSON cannot hold, and NUL, is U+FFFD."""
    return storable(text).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _kept(said: Said, raw: bytes, *, became: str = "") -> Draft:
    body = EventImported(
        original_id=said.original_id,
        original_type=said.original_type,
        source=said.source,
        channel=said.channel_name,
        occurred_at=said.at,
        became=became,
        evidence=digest(raw),
    )
    return Draft(event_type="event.imported", body=body, partition="system", event_id=_event_id(said))


def _event_id(said: Said) -> str:
    """Return the id under which the line is stored: its own where it has the form of ours."""
    own = said.key[1]
    return own if said.key[0] == "event" and is_id(own, "evt") else derived("evt", *said.key)


def _unanswered(thread: Thread) -> Iterator[Arrival]:
    if (turn := thread.unanswered) is not None:
        thread.answered = True
        yield Arrival(where="", became=None, raw=None, drafts=whole_turn(turn, StopReason.INTERRUPTED))
