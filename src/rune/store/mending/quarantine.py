"""Mending damage that is no torn tail: set aside, and what is intact behind it written again (spine.md, Opening).

For each damaged slot, under its lock, three steps, of which each may be repeated:

1. everything from the damage on is copied to `<segment>.quarantined-<time>`, and synced; a file of which a part
   cannot be read is kept under that name itself, whole;
2. every intact event of it is written again, as the same event, into the slot of the process that mends, with a
   `journal.repaired` that says what was done; an id that is intact elsewhere is not written a second time;
3. the slot is cut to its intact beginning; of later segments only the copies remain.

Killed at any moment, the damage is still there until the last step ends, and the next run finishes the work.
"""

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from rune.errors import StorageError, StorageUnavailableError
from rune.host.clock import Clock
from rune.host.files import sync_folder
from rune.host.ids import IdSource
from rune.records.envelope import EventEnvelope
from rune.records.events import Event, JournalRepaired, event_of
from rune.records.times import rfc3339
from rune.store.codec import ParsedLine, content_of, decode_body, prepare
from rune.store.durable_store import DurableEventStore
from rune.store.erasures import ErasureIndex
from rune.store.evidence_store import Evidence
from rune.store.failures import unavailable, why_unreadable
from rune.store.journal import Sync
from rune.store.mending.damage import Damage, find_damage, first_damage, intact_lines
from rune.store.mending.setting_aside import Part, Step, cut, holds, keep
from rune.store.segments import SegmentReader, list_segments, segment_name
from rune.store.slots import claim_this_slot, journal_folder

__all__ = ["Damage", "Quarantined", "find_damage", "quarantine"]

_GROUP = 500


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """One file of damage: the last `bytes` of `segment` lie in `kept_as`, beside it, and nowhere else.

    `written` of its events are in the journal again, `lost` of its lines could not be written; `erased` more held
    nothing, as their bodies were erased before. With `unreadable` a part could not be read: it is counted nowhere, and
    the whole file lies in `kept_as`. `reason` is what the `journal.repaired` event says of it.
    """

    segment: str
    kept_as: str
    bytes: int
    written: int
    lost: int
    reason: str
    erased: int = 0
    unreadable: bool = False


class _Known(msgspec.Struct):
    """What is intact: for each id that also lies behind damage, its content and slot; and which files were noted."""

    identities: dict[str, tuple[str, str]] = {}
    noted: set[tuple[str, str]] = set()


def quarantine(
    folder: Path,
    *,
    evidence: Evidence,
    clock: Clock,
    ids: IdSource,
    device_id: str,
    sync: Sync = os.fdatasync,
    step: Step = lambda _: None,
) -> tuple[Quarantined, ...]:
    """Mend every damaged slot; returns what was set aside, () when nothing is damaged: then no byte is changed.

    The process must not have the journal open for writing. Blocks, and runs an event loop of its own: call it on a
    thread. `step` is told the name of each step that is done. Afterwards views are found to be out of date by
    themselves and made anew.

    Raises SlotHeldError when a living process writes a damaged slot, UnmigratedDialectError and NewerFormatError when
    a segment is another program's or of a later format (nothing was changed then), StorageUnavailableError.
    """
    journal_folder(folder, create=False)
    found = find_damage(folder, evidence)
    for damage in found:
        if damage.refusal is not None:
            raise damage.refusal
    if not found:
        return ()
    with contextlib.ExitStack() as held:
        for damage in found:
            held.callback(claim_this_slot(folder, damage.writer, clock).release)
        # Only now nobody else changes these slots: what was found before may have been mended meanwhile.
        erased = ErasureIndex(folder, evidence)
        again = [first_damage(folder, damage.writer, erased.names) for damage in found]
        damages = {damage.writer: damage for damage in again if damage is not None}
        if not damages:
            return ()
        try:
            known = _known(folder, damages, evidence, erased)
            beside = {writer: _newest(folder, damage) for writer, damage in damages.items()}
            store = DurableEventStore.open(
                folder, clock=clock, ids=ids, device_id=device_id, evidence=evidence, beside=beside, sync=sync
            )
            mending = _Mending(folder, evidence, clock, ids, store, step, known)
            return asyncio.run(mending.all_of(damages.values()))
        except OSError as error:
            raise unavailable(error, f"cannot mend the journal {str(folder)!r}") from error


class _Mending:
    """Mends slots that this process holds."""

    def __init__(
        self,
        folder: Path,
        evidence: Evidence,
        clock: Clock,
        ids: IdSource,
        store: DurableEventStore,
        step: Step,
        known: _Known,
    ) -> None:
        self._folder = folder
        self._evidence = evidence
        self._clock = clock
        self._ids = ids
        self._store = store
        self._step = step
        self._known = known

    async def all_of(self, damages: Iterable[Damage]) -> tuple[Quarantined, ...]:
        """Mend one slot after the other and close the store."""
        try:
            return tuple([each for damage in damages for each in await self._mend(damage)])
        finally:
            await self._store.close()

    async def _mend(self, damage: Damage) -> list[Quarantined]:
        for leftover in self._folder.glob(f".{damage.writer}-*.tmp"):
            leftover.unlink()
        parts = list(_parts(self._folder, damage))
        copies = [self._keep(part) for part in parts]
        done = [await self._write_again(damage.writer, part, kept) for part, kept in zip(parts, copies, strict=True)]
        # From the last to the first: until all is done, the damage is where it was.
        for part, kept in reversed(list(zip(parts, copies, strict=True))):
            self._cut(part, kept)
        return done

    def _keep(self, part: Part) -> str:
        """Copy a part beside its segment; returns the name. A run that was killed may have done so already."""
        name = part.path.name
        for path in sorted(self._folder.glob(f"{name}.quarantined-*")):
            if holds(path, part):
                sync_folder(self._folder)
                return path.name
        moment = rfc3339(self._clock.now_ms()).replace("-", "").replace(":", "")
        kept = keep(part, f"{name}.quarantined-{moment}", self._step)
        self._step(f"kept {name}")
        return kept

    async def _write_again(self, writer: str, part: Part, kept: str) -> Quarantined:
        group: list[Event] = []
        counted: set[str] = set()
        lost, erased = 0, 0
        gaps: list[None] = []
        for line in intact_lines(part.path, part.start, lambda: gaps.append(None)):
            if line is not None and line.erased_by is not None:
                erased += 1
                continue
            event = None if line is None else self._event_of(line)
            if line is None or event is None:
                lost += 1
                continue
            content = content_of(line.envelope)
            known = self._known.identities.get(event.event_id)
            if known is None:
                group.append(event)
                self._known.identities[event.event_id] = (content, self._store.writer or "")
                counted.add(event.event_id)
            elif known[0] != content:
                lost += 1  # the same id says something else in an intact place
            elif known[1] != writer:
                counted.add(event.event_id)  # a run that was killed wrote it
            if len(group) == _GROUP:
                await self._store.append_many(group)
                group.clear()
                self._step(f"wrote a group of {part.path.name}")
        found = part.path.lstat()
        size = found.st_size - part.start if stat.S_ISREG(found.st_mode) else 0
        reason = (
            f"{part.reason}: {_counted(len(counted), 'event')} written again, {_counted(lost, 'line')} could not be"
            + (f", {erased:,} erased before" if erased else "")
            + ("; what cannot be read is not counted, the file was kept whole" if gaps else "")
        )
        if (part.path.name, kept) not in self._known.noted:
            body = JournalRepaired(segment=part.path.name, kept_as=kept, bytes=size, reason=reason)
            group.append(self._note(body))
        await self._store.append_many(group)
        self._step(f"wrote {part.path.name}")
        return Quarantined(
            segment=part.path.name,
            kept_as=kept,
            bytes=size,
            written=len(counted),
            lost=lost,
            reason=reason,
            erased=erased,
            unreadable=bool(gaps),
        )

    def _event_of(self, line: ParsedLine) -> Event | None:
        """Return the event of a line; None when it cannot be written again: a body that is not in evidence or cannot
        be read there for good, a type that this version does not know.
        """
        try:
            event = event_of(line.envelope, decode_body(line.envelope, self._evidence))
            prepare(event)
        except StorageUnavailableError as error:
            if why_unreadable(error.__cause__) is None:
                raise  # the evidence is there and cannot be read now
            return None
        except (StorageError, ValueError):
            return None
        return event

    def _note(self, body: JournalRepaired) -> Event:
        return Event(
            event_id=self._ids.new_id("evt"),
            event_type="journal.repaired",
            partition_key="system",
            actor_id="rune",
            timestamp=rfc3339(self._clock.now_ms()),
            body=body,
        )

    def _cut(self, part: Part, kept: str) -> None:
        cut(part, self._folder / kept, self._step)


def _parts(folder: Path, damage: Damage) -> Iterator[Part]:
    for number in list_segments(folder)[damage.writer]:
        path = folder / segment_name(damage.writer, number)
        if number == damage.number:
            yield Part(path, damage.keep, f"line {damage.line}, byte {damage.byte}: {damage.reason}")
        elif number > damage.number:
            yield Part(path, 0, f"it stands behind the damage in {damage.segment}")


def _known(folder: Path, damages: Mapping[str, Damage], evidence: Evidence, erased: ErasureIndex) -> _Known:
    """Go through all that is intact, once."""
    behind = {
        line.envelope.event_id
        for damage in damages.values()
        for part in _parts(folder, damage)
        for line in intact_lines(part.path, part.start)
        if line is not None
    }
    known = _Known()
    for writer in list_segments(folder):
        for envelope in _intact(folder, writer, damages.get(writer), erased):
            if envelope.event_id in behind:
                known.identities.setdefault(envelope.event_id, (content_of(envelope), writer))
            if envelope.event_type == "journal.repaired":
                with contextlib.suppress(StorageError):  # erased, or its body is lost: then it is noted once more
                    body = decode_body(envelope, evidence)
                    if isinstance(body, JournalRepaired):
                        known.noted.add((body.segment, body.kept_as))
    return known


def _intact(folder: Path, writer: str, damage: Damage | None, erased: ErasureIndex) -> Iterator[EventEnvelope]:
    for number in list_segments(folder)[writer]:
        if damage is not None and (number > damage.number or (number == damage.number and not damage.keep)):
            return
        with SegmentReader(folder, writer, number, erased.names) as reader:
            end = damage.keep if damage is not None and number == damage.number else None
            yield from (envelope for _, envelope in reader.events(end))


def _newest(folder: Path, damage: Damage) -> int:
    """Return the latest hlc that a damaged slot gave, as far as that can be known."""
    latest = 0
    for number in list_segments(folder)[damage.writer]:
        lines = intact_lines(folder / segment_name(damage.writer, number), 0)
        latest = max(latest, max((line.envelope.hlc for line in lines if line is not None), default=0))
    return latest


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
