"""Which bodies must go so that nothing of what was named is left, what is put in their place, and what stays."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import msgspec

from rune.records.approvals import PendingApprovalRecord
from rune.records.envelope import EventEnvelope
from rune.records.events import ConversationRenamed, ModelSelected, PrefixChanged
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.record import Record, to_builtins
from rune.records.tasks import TaskStateRecord
from rune.records.tools import CommandRun, PreparedCall
from rune.store.codec import ErasedBody
from rune.store.erasing.aim import MESSAGES, TASKS, TITLED, Aim, Decode
from rune.store.order import Located
from rune.store.projection import LostBody
from rune.text.sought import SHORTEST

ERASED_TITLE = "(erased)"
TitleOf = Callable[[str], str]


class Chosen(msgspec.Struct, frozen=True):
    """An event whose body goes, and where it lies. `erasing_id` is None until a `body.erased` names it."""

    event_id: str
    event_type: str
    partition: str
    writer: str
    segment: int
    payload_hash: str
    erasing_id: str | None


class PutBack(msgspec.Struct, frozen=True):
    """A fact that must be told again without the text, so that what it is about does not disappear."""

    event_type: str
    partition: str
    body: Record


class About(msgspec.Struct, frozen=True, kw_only=True):
    """By what a person knows a conversation: `title` is its newest, `at` when it began (RFC 3339)."""

    title: str
    folder: str
    at: str


class Choice(msgspec.Struct, kw_only=True):
    """The bodies that go. `texts` is what was said in them, `already` how many were erased before, `last_pseq` the
    last place given in each conversation that is touched, `about` tells of each conversation that is known.
    """

    chosen: dict[str, Chosen] = {}
    texts: list[str] = []
    already: int = 0
    put_back: list[PutBack] = []
    last_pseq: dict[str, int] = {}
    about: dict[str, About] = {}

    def add(self, item: Located, erasing_id: str | None, texts: Iterable[str]) -> None:
        """Take an event in."""
        offset, envelope = item
        self.chosen[envelope.event_id] = Chosen(
            envelope.event_id,
            envelope.event_type,
            envelope.partition_key,
            envelope.writer,
            offset.segment,
            envelope.payload_hash,
            erasing_id,
        )
        self.texts += [text for text in texts if text.strip() and text != ERASED_TITLE]

    def know(self, partition: str, body: Record) -> None:
        """Note what a person knows a conversation by."""
        known = self.about.get(partition)
        if isinstance(body, ConversationRecord):
            self.about[partition] = About(title=body.title, folder=body.folder, at=body.created_at)
        elif isinstance(body, ConversationRenamed) and known is not None:
            self.about[partition] = msgspec.structs.replace(known, title=body.title)


class _Conversation:
    """What is known of a conversation that is touched and stays; the later event of two holds."""

    def __init__(self) -> None:
        self.created: ConversationRecord | None = None
        self.kept = False
        self.facts: dict[str, tuple[int, str | None]] = {}
        self.tasks: dict[str, tuple[int, bool, TaskStateRecord]] = {}

    def see(self, envelope: EventEnvelope, body: Record, *, goes: bool) -> None:
        match body:
            case ConversationRecord():
                self.created = body
                self.kept = self.kept or not goes
                self._set("model", envelope.pseq, body.model)
                self._set("prefix", envelope.pseq, body.prefix)
            case ConversationRenamed() if not goes:
                self._set("title", envelope.pseq, body.title)
            case ModelSelected():
                self._set("model", envelope.pseq, body.model)
            case PrefixChanged():
                self._set("prefix", envelope.pseq, body.prefix)
            case TaskStateRecord():
                before = self.tasks.get(body.id)
                if before is None or before[0] < envelope.pseq:
                    self.tasks[body.id] = (envelope.pseq, goes, body)
            case _:
                pass

    def _set(self, fact: str, pseq: int, value: str | None) -> None:
        if fact not in self.facts or self.facts[fact][0] < pseq:
            self.facts[fact] = (pseq, value)

    def put_back(self, partition: str) -> Iterator[PutBack]:
        """Tell again what would be missing: the record, with today's facts, and tasks whose last state goes."""
        if self.created is not None and not self.kept:
            record = msgspec.structs.replace(
                self.created,
                title=self.facts.get("title", (0, None))[1] or ERASED_TITLE,
                model=self.facts["model"][1] or "",
                prefix=self.facts["prefix"][1],
            )
            kind = "conversation.created" if record.forked_from is None else "conversation.forked"
            yield PutBack(kind, partition, record)
        for _, goes, task in self.tasks.values():
            if goes:
                yield PutBack("task.amended", partition, msgspec.structs.replace(task, title=ERASED_TITLE))


def titles_in(events: Iterable[Located], decode: Decode, aim: Aim, title_of: TitleOf) -> frozenset[str]:
    """Return the titles that conversations which go had, and that were made from what was said in them."""
    found: set[str] = set()
    for _, envelope in events:
        if envelope.partition_key in aim.conversations and envelope.event_type in (*MESSAGES, *TITLED, *TASKS):
            body = decode(envelope)
            said = title_of(body.content) if isinstance(body, ConversationMessageRecord) else ""
            found |= {said, getattr(body, "title", "")}
    return frozenset(found)


def choose(
    events: Iterable[Located], decode: Decode, aim: Aim, title_of: TitleOf, titles: frozenset[str] = frozenset()
) -> Choice:
    """Return the bodies that go for `aim`, and those that an earlier erasure named and did not come to.

    Of a conversation every body goes. Of a message its own, and titles that were made from it, in its conversation
    and in those branched off it. `titles` are those that conversations which go gave to their branches.
    """
    said = {each.event_id for each in aim.messages.values()}
    homes = {each.conversation_id for each in aim.messages.values() if each.content is not None}
    lineage = aim.lineage(homes | aim.conversations)
    titles = (titles | {title_of(each.content) for each in aim.messages.values() if each.content}) - {"", ERASED_TITLE}
    choice = Choice()
    touched: dict[str, _Conversation] = {}
    for item in events:
        envelope = item[1]
        partition = envelope.partition_key
        if partition.startswith("cnv_"):
            choice.last_pseq[partition] = max(choice.last_pseq.get(partition, 0), envelope.pseq)
        named = partition in aim.conversations or envelope.event_id in aim.events or envelope.event_id in said
        pending = envelope.event_id in aim.erasing
        titled = partition in lineage and envelope.event_type in (*TITLED, *TASKS)
        stateful = envelope.event_type in (*TITLED, *TASKS, "model.selected", "context.prefix_changed")
        if not (named or pending or titled or stateful):
            continue
        body = decode(envelope)
        if isinstance(body, ErasedBody):
            choice.already += int(named)
            continue
        choice.know(partition, body)
        goes = named or pending or (titled and getattr(body, "title", "") in titles)
        if goes:
            whole = envelope.event_id in aim.events
            choice.add(item, aim.erasing.get(envelope.event_id), texts_of(body, title_of, whole=whole))
        if pending:
            continue  # what had to be put back for it was told together with the `body.erased` that names it
        if stateful and partition not in aim.conversations:
            touched.setdefault(partition, _Conversation()).see(envelope, body, goes=goes)
    for partition, conversation in touched.items():
        choice.put_back += conversation.put_back(partition)
    return choice


def texts_of(body: Record, title_of: TitleOf, *, whole: bool = False) -> Iterator[str]:
    """Give what was said in a body; of other bodies than those in which somebody speaks only with `whole`."""
    match body:
        case ConversationMessageRecord():
            yield from (body.content, body.thinking, body.tail)
            for call in body.tool_calls:
                yield from _sentences(call.arguments)
            title = title_of(body.content)
            if title and title not in body.content:
                yield title.removesuffix("…")  # what titles hold of a long line
        case ConversationRecord() | ConversationRenamed() | TaskStateRecord():
            yield body.title.removesuffix("…")
        case PreparedCall() | PendingApprovalRecord() | CommandRun():
            yield from _acts(body)
        case LostBody():
            return  # what it says are Rune's own words
        case _ if whole:
            yield from _sentences(to_builtins(body))
        case _:
            return


def _acts(body: PreparedCall | PendingApprovalRecord | CommandRun) -> Iterator[str]:
    if isinstance(body, CommandRun):
        yield from _sentences(body.command)
        return
    if isinstance(body, PendingApprovalRecord):
        yield body.reason
    for call in (body,) if isinstance(body, PreparedCall) else body.calls:
        yield from _sentences(call.detail)
        yield from _sentences(call.call.arguments)


def _sentences(value: object) -> Iterator[str]:
    """Give the texts that say something. A path, a flag or a pattern stands in what others did in the same project, and
    how Rune sums a call up ("3 files") stands everywhere.
    """
    yield from (text for text in _strings(value) if " " in text.strip() and len(text) >= SHORTEST)


def is_message(event_type: str) -> bool:
    """Say whether somebody speaks in events of this type."""
    return event_type in MESSAGES


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from _strings(inner)
