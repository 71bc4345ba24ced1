"""What a view is: tables that take in one event after another."""

from typing import Protocol

import apsw

from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.store.event_store import Offset


class Projection(Protocol):
    """Tables that follow the journal."""

    @property
    def name(self) -> str:
        """The name by which a person knows it."""
        ...

    @property
    def ddl(self) -> str:
        """The statements that make its tables and indexes. Changing them makes a new views file."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables' names."""
        ...

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in, inside a running transaction. An erased body comes as `ErasedBody`, one of a
        later version as `UnknownBody`, one whose evidence cannot be read as `LostBody`.

        The same event twice changes nothing; events of a conversation may come in any order. A lost body
        that is found again comes as what it is, long after the events around it.
        """
        ...


class UnknownBody(Record, frozen=True, kw_only=True):
    """Stands for the body of an event that this version does not know."""


class LostBody(Record, frozen=True, kw_only=True):
    """Stands for a body whose evidence is gone, damaged or unreadable; `reason` names it, without content."""

    reason: str


def rank(envelope: EventEnvelope) -> str:
    """Return a text that sorts as events do: in a conversation by pseq, else by hlc, writer, seq."""
    return f"{envelope.pseq:010d}.{envelope.hlc:014d}.{envelope.writer}.{envelope.seq:010d}"
