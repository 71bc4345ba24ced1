"""References to immutable evidence."""

from typing import Literal

from rune.records.record import Record

Confidentiality = Literal["normal", "secret"]


class EvidenceSlice(Record, frozen=True, kw_only=True):
    """Bytes `start` (inclusive) to `end` (exclusive) of a blob."""

    start: int
    end: int


class EvidenceRef(Record, frozen=True, kw_only=True):
    """Names a blob by `hash` (`sha256:` and 64 hex digits); `slice` None means all of it."""

    schema_version: int = 1
    hash: str
    source: str
    observed_at: str
    confidentiality: Confidentiality = "normal"
    slice: EvidenceSlice | None = None
