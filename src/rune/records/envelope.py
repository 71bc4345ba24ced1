"""The stored form of an event: who, when, in which order, and what for a reader to check."""

from typing import Annotated

import msgspec

from rune.records.record import Record

# What every reader can hold and go on counting from; no Rune comes near it.
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class EventEnvelope(Record, frozen=True, kw_only=True):
    """One line of the journal (spine.md, Form). `seq` counts a slot's events from 1, `pseq` those of a
    conversation (0 elsewhere), `more` the lines of the batch that follow. `hlc` is in milliseconds.
    `body` is the exact JSON on disk: inline, `{"evidence":...}` or `{"erased":...}`. The fields stand in the order
    of the line, so that encoding an envelope gives its line.
    """

    actor_id: str
    authorization: str | None
    device_id: str
    event_id: str
    event_type: str
    hlc: Count
    more: Count
    parent_id: str | None
    partition_key: str
    payload_hash: str
    prev: str
    pseq: Count
    schema_version: int = 1
    seq: Count
    timestamp: str
    writer: str
    crc: str
    body: msgspec.Raw


class SegmentHeader(Record, frozen=True, kw_only=True):
    """The first line of a segment. `format` is the journal's format version; `segment` counts from 1."""

    boot_id: str
    format: int
    opened: str
    prev: str
    segment: int
    writer: str
    crc: str
