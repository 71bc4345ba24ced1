"""Blanking bodies in a segment that is on disk: the one change a written line can see (spine.md, Erasing)."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from rune.errors import CorruptJournalError, JournalMovedError, StorageUnavailableError, UnstorableValueError
from rune.host.files import create_private, sync_folder
from rune.records.envelope import EventEnvelope
from rune.store.codec import blanked, erased_form
from rune.store.event_store import Offset
from rune.store.failures import unavailable
from rune.store.segments import SegmentReader, list_segments, segment_name

_COPY_BYTES = 1 << 20


def rewrite_segment(folder: Path, writer: str, number: int, replace: Mapping[str, str]) -> int:
    """Erase the bodies of the events that are keys of `replace`; each value is the id of the `body.erased` event that
    names it, which is on disk already. Returns how many lines were changed; ids of other segments are passed over.

    The caller holds the slot's lock, and nobody has the segment open for appending. Every other byte stays the same.
    The new file is made beside it, synced, read back and compared before it takes the name: a kill at any moment
    leaves the old segment or the new one. What stands behind the last whole batch (a torn tail) is copied as it is.

    Raises CorruptJournalError where the segment is damaged before its end, UnstorableValueError when a `body.erased`
    event itself is named (others rest on it), UnmigratedDialectError, NewerFormatError, JournalMovedError,
    StorageUnavailableError; the segment is then as it was.
    """
    known: set[tuple[str, str]] = set()
    changes = _find(folder, writer, number, replace, known)
    if not changes:
        return 0
    path = folder / segment_name(writer, number)
    # The slot's next holder removes it when a kill leaves it behind.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            _copy(path, temporary, changes)
            _compare(folder, writer, number, temporary, replace, known)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(folder)
    except OSError as error:
        raise unavailable(error, f"cannot rewrite the segment {path.name}") from error
    return len(changes)


def _find(
    folder: Path, writer: str, number: int, replace: Mapping[str, str], known: set[tuple[str, str]]
) -> dict[int, str]:
    """Return the erasing event's id by the byte behind each line to change; `known` gets what was erased before."""

    def note(erasing_id: str, erased_id: str) -> bool:
        known.add((erasing_id, erased_id))
        return True

    changes: dict[int, str] = {}
    with SegmentReader(folder, writer, number, note) as reader:
        for offset, envelope in reader.events():
            erasing_id = replace.get(envelope.event_id)
            if erasing_id is None or bytes(envelope.body) == erased_form(erasing_id):
                continue
            if envelope.event_type == "body.erased":
                raise UnstorableValueError(f"{envelope.event_id} says what was erased: it cannot be erased itself")
            changes[offset.position] = erasing_id
        tail = reader.tail
        if tail is None:
            return changes
        inner = number < list_segments(folder)[writer][-1]
        place = tail.start if tail.damaged is None else tail.damaged
        if inner or (tail.damaged is not None and reader.holds_event_behind(place)):
            raise reader.corrupt(place, tail.reason)
    return changes


def _copy(source: Path, target: Path, changes: Mapping[int, str]) -> None:
    last, place = max(changes), 0
    with os.fdopen(create_private(target), "wb") as copy, source.open("rb") as file:
        while place < last:
            line = file.readline()
            if not line:
                raise JournalMovedError(f"the segment {source.name} became shorter while it was rewritten")
            place += len(line)
            erasing_id = changes.get(place)
            copy.write(line if erasing_id is None else blanked(line[:-1], erasing_id) + b"\n")
        shutil.copyfileobj(file, copy, _COPY_BYTES)
        copy.flush()
        os.fsync(copy.fileno())


def _compare(
    folder: Path, writer: str, number: int, path: Path, replace: Mapping[str, str], known: set[tuple[str, str]]
) -> None:
    """Raise StorageUnavailableError unless the new file reads as the old one with those bodies erased."""

    def erased(erasing_id: str, erased_id: str) -> bool:
        return replace.get(erased_id) == erasing_id or (erasing_id, erased_id) in known

    with contextlib.ExitStack() as both:
        old = both.enter_context(SegmentReader(folder, writer, number, erased))
        new = both.enter_context(SegmentReader(folder, writer, number, erased, path=path))
        try:
            same = old.header == new.header and all(
                _is_rewritten(before, after, replace) for before, after in zip(old.events(), new.events(), strict=True)
            )
        except (CorruptJournalError, ValueError):  # ValueError: one of them has fewer events
            same = False
        same = same and old.size() - old.position == new.size() - new.position
    if not same:
        raise StorageUnavailableError(
            f"the rewritten segment {segment_name(writer, number)} did not read back as it was written",
            hint="Nothing was changed. Check the disk, then try again.",
        )


def _is_rewritten(
    before: tuple[Offset, EventEnvelope], after: tuple[Offset, EventEnvelope], replace: Mapping[str, str]
) -> bool:
    """Say whether the second is the first, erased if it is named: equal fields are equal bytes, a line has one form."""
    old, new = before[1], after[1]
    erasing_id = replace.get(old.event_id)
    body = bytes(old.body) if erasing_id is None else erased_form(erasing_id)
    names = (name for name in EventEnvelope.__struct_fields__ if name != "body")
    return bytes(new.body) == body and all(getattr(new, name) == getattr(old, name) for name in names)
