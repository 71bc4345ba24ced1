"""What a person wants erased: ids, or clear parts of them, looked up in the journal itself, whatever the views say."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from rune.errors import NotFoundError, UsageError
from rune.records.envelope import EventEnvelope
from rune.records.events import BodyErased
from rune.records.ids import is_id
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.record import Record
from rune.store.ledger import once
from rune.store.order import Located
from rune.store.projection import LostBody

# Gives the body of an envelope; ErasedBody where it was erased, LostBody where its evidence cannot be read.
Decode = Callable[[EventEnvelope], Record]

MESSAGES = ("user.message", "response.generated", "tool.message")
TITLED = ("conversation.created", "conversation.forked", "conversation.renamed")
TASKS = ("task.created", "task.amended", "task.transition", "task.stale", "task.imported")
_KINDS = ("cnv", "msg", "evt")
# Fewer characters than this name something by chance, and nothing brings it back.
_LEAST = 4
_NAMED = 5
_HINT = "`rune sessions list`, `rune sessions show ID --json` and `rune events --json` show ids."
# What Rune does after a kill rests on these, or what it may do; their conversation can be erased as a whole.
_NEEDED = ("body.erased", "turn.started", "turn.finished", "tool.", "approval.", "permission.changed", "rule.revoked")


class Said(msgspec.Struct, frozen=True):
    """A message that is to go: its event, its conversation, its words; `content` is None when it was erased before."""

    event_id: str
    conversation_id: str
    content: str | None


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What was named, by whole ids. `erasing` says which `body.erased` names which event, over all of the journal, and
    `gone` which blobs they name; `forks` gives the conversation that each fork was branched off.
    """

    named: tuple[str, ...]
    conversations: frozenset[str]
    messages: dict[str, Said]
    events: frozenset[str]
    erasing: dict[str, str]
    forks: dict[str, str]
    gone: frozenset[str] = frozenset()

    def lineage(self, conversation_ids: Iterable[str]) -> frozenset[str]:
        """Return these conversations and all that were branched off them, at any distance."""
        found = set(conversation_ids)
        while more := {fork for fork, parent in self.forks.items() if parent in found} - found:
            found |= more
        return frozenset(found)


class _Wanted:
    """One text that a person gave, and the ids that it could be."""

    def __init__(self, text: str) -> None:
        self.text = text
        whole = text.strip().lower()
        self.kinds = next(((kind,) for kind in _KINDS if whole.startswith(f"{kind}_")), _KINDS)
        self.part = whole.removeprefix(f"{self.kinds[0]}_") if len(self.kinds) == 1 else whole
        if not (self.part.isalnum() and self.part.isascii()):
            raise NotFoundError(f"nothing has the id {text!r}", hint=_HINT)
        if len(self.part) < _LEAST:
            raise NotFoundError(f"{text!r} is too short to erase what it names", hint="Give more of the id.")
        self.found: dict[str, None] = {}

    def only(self) -> str:
        """Return the one id that it is. Raises NotFoundError."""
        names = list(self.found)
        if not names:
            raise NotFoundError(f"nothing has the id {self.text!r}", hint=_HINT)
        if len(names) > 1:
            more = " ..." if len(names) > _NAMED else ""
            raise NotFoundError(
                f"{self.text!r} could be {', '.join(names[:_NAMED])}{more}", hint="Give more of the id."
            )
        return names[0]


class _Index:
    """All texts that were given, looked up by the beginnings and ends of an id: thousands cost no more than a few."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.wanted = [_Wanted(text) for text in texts]
        self._parts: dict[str, dict[int, dict[str, list[_Wanted]]]] = {}
        for each in self.wanted:
            for kind in each.kinds:
                of_length = self._parts.setdefault(kind, {}).setdefault(len(each.part), {})
                of_length.setdefault(each.part, []).append(each)

    def look_at(self, identity: str) -> bool:
        """Note an id with each text that it begins or ends with; returns whether there is one."""
        kind, _, rest = identity.partition("_")
        fits = False
        for length, parts in self._parts.get(kind, {}).items():
            for part in (rest[:length], rest[-length:]):
                for each in parts.get(part, ()):
                    each.found[identity] = None
                    fits = True
        return fits


class _Book:
    """What one pass over the journal notes of what is wanted."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.index = _Index(texts)
        self.messages: dict[str, Said] = {}
        self.types: dict[str, str] = {}
        self.erasing: dict[str, str] = {}
        self.forks: dict[str, str] = {}
        self.gone: set[str] = set()
        self.lost: set[str] = set()

    def add(self, envelope: EventEnvelope, decode: Decode) -> None:
        if self.index.look_at(envelope.event_id):
            self.types[envelope.event_id] = envelope.event_type
            if is_needed(envelope.event_type) and isinstance(decode(envelope), LostBody):
                self.lost.add(envelope.event_id)  # nothing rests on it any more
        if envelope.partition_key.startswith("cnv_"):
            self.index.look_at(envelope.partition_key)
        if envelope.event_type == "body.erased" or envelope.event_type in (*MESSAGES, "conversation.forked"):
            self._add_body(envelope, decode(envelope))

    def _add_body(self, envelope: EventEnvelope, body: Record) -> None:
        match body:
            case ConversationMessageRecord() if self.index.look_at(body.id):
                self.messages[body.id] = Said(envelope.event_id, envelope.partition_key, body.content)
            case ConversationRecord() if body.forked_from is not None:
                self.forks[body.id] = body.forked_from
            case BodyErased():
                self.erasing.update(dict.fromkeys(body.event_ids, envelope.event_id))
                self.gone |= set(body.gone)
                # The reason names what was asked for: an erased message has no other place that tells its id.
                for word in body.reason.split():
                    if is_id(word, "msg") and self.index.look_at(word):
                        self.messages.setdefault(word, Said(once(word), "", None))
            case _:
                pass


def resolve(events: Iterable[Located], decode: Decode, texts: Sequence[str]) -> Aim:
    """Return what these texts name: each is a conversation's, message's or event's id, or begins or ends one; the
    letters of the kind may be left out.

    Raises NotFoundError where one names nothing or more than one thing, and UsageError for an event whose body Rune
    cannot do without. `texts` may be empty.
    """
    book = _Book(texts)
    for _, envelope in events:
        book.add(envelope, decode)
    named = tuple(dict.fromkeys(each.only() for each in book.index.wanted))
    single = frozenset(name for name in named if name.startswith("evt_"))
    for event_id in sorted(single):
        if is_needed(book.types[event_id]) and event_id not in book.lost:
            raise UsageError(
                f"{event_id} is a {book.types[event_id]}: Rune needs it to know what was done",
                hint="Erase the message or the conversation that it belongs to.",
            )
    return Aim(
        named=named,
        conversations=frozenset(name for name in named if name.startswith("cnv_")),
        messages={name: book.messages[name] for name in named if name.startswith("msg_")},
        events=single,
        erasing=book.erasing,
        forks=book.forks,
        gone=frozenset(book.gone),
    )


def is_needed(event_type: str) -> bool:
    """Say whether what Rune does after a kill rests on bodies of this type, which are not erased one by one."""
    return event_type.startswith(_NEEDED)
