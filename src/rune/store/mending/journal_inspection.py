"""One pass over every file of the journal that stops at nothing: what is intact, what is not, what it names."""

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import (
    CorruptJournalError,
    NewerFormatError,
    RuneError,
    StorageUnavailableError,
    UnmigratedDialectError,
)
from rune.host.files import is_locked
from rune.records.envelope import EventEnvelope
from rune.records.events import BodyErased
from rune.records.record import Record
from rune.records.session import LeaseHolder
from rune.store.codec import BlobReader, decode_body
from rune.store.erasing.aim import is_needed
from rune.store.erasing.eraser import NOTE, unfinished
from rune.store.erasures import ErasureIndex
from rune.store.evidence_names import blobs_behind, blobs_of, names_evidence, outgrown
from rune.store.failures import unavailable
from rune.store.holders import read_note
from rune.store.mending.damage import intact_lines
from rune.store.segments import SegmentReader, Tail, list_segments, segment_name

_log: Final = logging.getLogger(__name__)
_TORN: Final = re.compile(r"w[0-9]{3}-[0-9]{6}\.jsonl\.torn-.*")
_HASH: Final = b'"sha256:'
_TOLD_EVERY: Final = 500


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A place that does not verify and is no torn tail. `line` from 1, `byte` where it starts; `behind` counts the
    intact events from the batch on in which it stands (which is set aside with it) to the end of its file, and for the
    first damage of a slot to the end of the slot.
    """

    file: str
    line: int
    byte: int
    reason: str
    behind: int


class SlotState(msgspec.Struct, frozen=True, kw_only=True):
    """One slot: `events` that are intact, the number `last` of the newest of them, its files and bytes, who writes it
    now (None: nobody), and how many bytes of a torn tail its next holder will cut off.
    """

    writer: str
    events: int
    last: int
    segments: int
    bytes: int
    holder: LeaseHolder | None
    torn: int


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """What was cut off or set aside earlier and is kept beside the segments."""

    name: str
    bytes: int


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """An event that names a blob. `partition` is its conversation, or `system`; `alone` says whether it can be erased
    by itself when the blob is lost.
    """

    event_id: str
    event_type: str
    partition: str
    alone: bool


class JournalState(msgspec.Struct, kw_only=True):
    """What a pass found. `named` are the blobs that events name, each with an event that does, `gone` those that an
    erasure took although something names them; `newest` is the newest hlc in milliseconds; `open_turns` began and
    did not end, by turn id with their conversation; `unreadable` are bodies that this Rune cannot take apart.
    `newer` are segments that only a later Rune knows, `foreign` those of another program, each with what to do.
    `erased` gives the `body.erased` event by the events that it names, `unblanked` are those of them whose erasing
    is not finished.
    """

    slots: list[SlotState] = []
    damage: list[Damage] = []
    newer: list[str] = []
    foreign: dict[str, str] = {}
    kept: list[KeptFile] = []
    named: dict[str, Naming] = {}
    gone: set[str] = set()
    erased: dict[str, str] = {}
    blanked: set[str] = set()
    open_turns: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    newest: int = 0
    unblanked: frozenset[str] = frozenset()

    @property
    def events(self) -> int:
        """How many events are intact."""
        return sum(slot.events for slot in self.slots)


class _TurnName(msgspec.Struct, frozen=True):
    """What is looked at of a turn's record."""

    id: str
    conversation_id: str


def inspect_journal(folder: Path, evidence: BlobReader, told: Callable[[int], None] = lambda _: None) -> JournalState:
    """Read all that there is. `told` gets the number of events now and then, and what it raises ends the pass. Nothing
    is written; damage raises nothing. Raises StorageUnavailableError when the folder cannot be read at all.
    """
    state = JournalState()
    if not folder.is_dir():
        return state
    erasures = ErasureIndex(folder, evidence)
    inspector = _Inspector(folder, state, evidence, erasures, told)
    for writer, numbers in list_segments(folder).items():
        state.slots.append(inspector.slot(writer, numbers))
    state.kept += _kept_files(folder)
    if state.erased.keys() - state.blanked or (folder / NOTE).exists():
        state.unblanked = frozenset(unfinished(folder, evidence))
    return state


def _kept_files(folder: Path) -> Iterator[KeptFile]:
    try:
        for path in sorted(folder.iterdir()):
            if _TORN.fullmatch(path.name) or ".quarantined-" in path.name:
                yield KeptFile(name=path.name, bytes=path.lstat().st_size)
    except OSError as error:
        raise unavailable(error, f"cannot read the journal {str(folder)!r}") from error


class _Inspector:
    """Goes through segments and collects."""

    def __init__(
        self,
        folder: Path,
        state: JournalState,
        evidence: BlobReader,
        erasures: ErasureIndex,
        told: Callable[[int], None],
    ) -> None:
        self._folder = folder
        self._state = state
        self._evidence = evidence
        self._erasures = erasures
        self._told = told
        self._seen = 0
        self._last = 0
        # How many events of a slot stood before its first damage; None: it has none so far.
        self._before_damage: int | None = None
        self._ended: set[str] = set()

    def slot(self, writer: str, numbers: list[int]) -> SlotState:
        before, bytes_, torn, chain = self._seen, 0, 0, ""
        self._last = 0
        noted, self._before_damage = len(self._state.damage), None
        for number in range(1, numbers[-1] + 1):
            path = self._folder / segment_name(writer, number)
            if number not in numbers:
                self._damaged(path, CorruptJournalError("this segment is missing", file=str(path), line=1, byte=0))
                chain = ""
                continue
            bytes_ += path.lstat().st_size
            chain, torn = self._segment(path, writer, number, chain, last=number == numbers[-1])
        if self._before_damage is not None:
            behind = self._seen - self._before_damage
            self._state.damage[noted] = msgspec.structs.replace(self._state.damage[noted], behind=behind)
        return SlotState(
            writer=writer,
            events=self._seen - before,
            last=self._last,
            segments=len(numbers),
            bytes=bytes_,
            holder=_holder(self._folder / f"{writer}.lock"),
            torn=torn,
        )

    def _segment(self, path: Path, writer: str, number: int, chain: str, *, last: bool) -> tuple[str, int]:
        """Read one segment; returns the chain behind it ("": unknown, it is damaged) and the bytes of a torn tail."""
        try:
            with SegmentReader(self._folder, writer, number, self._erasures.names) as reader:
                if chain and reader.header.prev != chain:
                    broken = reader.corrupt(0, "it does not follow the segment before it (chain broken)")
                    self._note(path, broken, before=self._seen)
                elif chain:
                    reader.seq = self._last
                try:
                    tail = self._read_whole(reader, last=last)
                except CorruptJournalError as error:
                    self._damaged(path, error, reader.position)
                    return "", 0
                if tail is None or (tail.damaged is None and last):
                    return reader.chain, 0 if tail is None else reader.size() - tail.start
                place = tail.start if tail.damaged is None else tail.damaged
                if last and not reader.verifies_now(place) and not reader.holds_event_behind(place):
                    return reader.chain, reader.size() - tail.start
                self._damaged(path, reader.corrupt(place, tail.reason), tail.start)
        except NewerFormatError:
            self._state.newer.append(path.name)
        except UnmigratedDialectError as error:
            self._state.foreign[path.name] = error.hint
        except CorruptJournalError as error:
            self._damaged(path, error)
        except (RuneError, OSError) as error:  # a file that cannot be read
            reason = error.message if isinstance(error, RuneError) else error.strerror or str(error)
            self._damaged(path, CorruptJournalError(reason, file=str(path), line=1, byte=0))
        return "", 0

    def _read_whole(self, reader: SegmentReader, *, last: bool) -> Tail | None:
        """Take in a segment's whole batches; returns what stands behind them. In a slot's last segment its holder may
        be writing on: only what is still there when it is read again counts.
        """
        while True:
            before = reader.position
            for _, envelope in reader.events():
                self._take(envelope)
            if not last or reader.tail is None or reader.position == before:
                return reader.tail

    def _damaged(self, path: Path, error: CorruptJournalError, start: int | None = None) -> None:
        """Note damage, and take in what is intact from the byte `start` on (None: from the damage itself)."""
        before = self._seen
        try:
            for line in intact_lines(path, error.byte if start is None else start):
                if line is not None:
                    self._take(line.envelope)
        except StorageUnavailableError as unreadable:
            _log.warning("%s", unreadable.message)  # it is gone or cannot be read: that is the damage itself
        self._note(path, error, before=before)

    def _note(self, path: Path, error: CorruptJournalError, *, before: int) -> None:
        if self._before_damage is None:
            self._before_damage = before
        behind = self._seen - before
        self._state.damage.append(
            Damage(file=path.name, line=error.line, byte=error.byte, reason=error.reason, behind=behind)
        )

    def _take(self, envelope: EventEnvelope) -> None:
        state = self._state
        self._seen += 1
        self._last = max(self._last, envelope.seq)
        state.newest = max(state.newest, envelope.hlc)
        if self._seen % _TOLD_EVERY == 0:
            self._told(self._seen)
        raw = bytes(envelope.body)
        if raw.startswith(b'{"erased":"evt_'):
            state.blanked.add(envelope.event_id)
        elif envelope.event_type in {"turn.started", "turn.finished"}:
            self._take_turn(envelope.event_type, raw)
        elif outgrown(envelope):
            self._name(envelope.payload_hash, envelope, alone=True)
            self._take_body(envelope)
        elif envelope.event_type == "body.erased" or (_HASH in raw and names_evidence(envelope.event_type)):
            self._take_body(envelope)

    def _take_turn(self, event_type: str, raw: bytes) -> None:
        try:
            turn = msgspec.json.decode(raw, type=_TurnName)
        except msgspec.DecodeError:
            return  # its line verified: a later form of it, of which nothing is known here
        if event_type == "turn.finished":
            self._ended.add(turn.id)
            self._state.open_turns.pop(turn.id, None)
        elif turn.id not in self._ended:
            self._state.open_turns[turn.id] = turn.conversation_id

    def _take_body(self, envelope: EventEnvelope) -> None:
        body = self._body(envelope)
        if isinstance(body, BodyErased):
            self._state.gone |= set(body.gone)
            for event_id in body.event_ids:
                self._state.erased.setdefault(event_id, envelope.event_id)
        elif body is not None:
            for blob in blobs_of(body) | blobs_behind(body, self._evidence):
                self._name(blob, envelope, alone=not is_needed(envelope.event_type))

    def _name(self, blob: str, envelope: EventEnvelope, *, alone: bool) -> None:
        known = self._state.named.get(blob)
        if known is None or (alone and not known.alone):
            self._state.named[blob] = Naming(
                event_id=envelope.event_id,
                event_type=envelope.event_type,
                partition=envelope.partition_key,
                alone=alone,
            )

    def _body(self, envelope: EventEnvelope) -> Record | None:
        if not names_evidence(envelope.event_type) and envelope.event_type != "body.erased":
            return None
        try:
            return decode_body(envelope, self._evidence)
        except RuneError as error:
            if not outgrown(envelope):
                self._state.unreadable[envelope.event_id] = error.message
            return None  # the blob itself is looked at with all others, and named there


def _holder(lock: Path) -> LeaseHolder | None:
    try:
        return read_note(lock) if is_locked(lock) else None
    except OSError as error:
        raise unavailable(error, f"cannot look at {lock.name}") from error
