"""Which `body.erased` event names which event: an erased body is believed only then (spine.md, Payload)."""

from collections.abc import Iterator
from pathlib import Path

from rune.errors import DamagedLineError, InvalidRecordError, StorageError
from rune.records.events import BodyErased
from rune.store.codec import BlobReader, decode_body, parse
from rune.store.failures import unavailable
from rune.store.gaps import open_past_gaps
from rune.store.segments import list_segments, segment_name

_MARK = b'"event_type":"body.erased"'


# What a `body.erased` names whose own body is lost: nobody knows any more.
_ANY = ""


class ErasureIndex:
    """Looks through the journal when the first erased body is met, and again for one it does not know yet.

    A `body.erased` whose line is whole and whose body in evidence is not (gone, changed, unreadable) is believed for
    every event that names it: what is lost then is that one body, and not all that was erased with it.
    """

    def __init__(self, folder: Path, evidence: BlobReader) -> None:
        self._folder = folder
        self._evidence = evidence
        self._known: set[tuple[str, str]] = set()

    def names(self, erasing_id: str, erased_id: str) -> bool:
        """Say whether the event `erasing_id` is a `body.erased` that names `erased_id`, or may have named it.

        Raises StorageUnavailableError when the journal may not be read.
        """
        if not self._names(erasing_id, erased_id):
            self._known = self._scan()
        return self._names(erasing_id, erased_id)

    def all_named(self) -> frozenset[str]:
        """Return the ids of all events that some `body.erased` names, as the journal stands now. Raises as `names`."""
        return frozenset(erased for _, erased in self._scan() if erased != _ANY)

    def _names(self, erasing_id: str, erased_id: str) -> bool:
        return not self._known.isdisjoint({(erasing_id, erased_id), (erasing_id, _ANY)})

    def _scan(self) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for line in lines_of_all(self._folder):
            if _MARK in line:
                found.update(self._pairs(line.rstrip(b"\n")))
        return found

    def _pairs(self, line: bytes) -> set[tuple[str, str]]:
        try:
            envelope = parse(line).envelope
        except DamagedLineError:
            # Damage is reported by whoever reads that line in its turn; here it proves nothing.
            return set()
        if envelope.event_type != "body.erased":
            return set()
        try:
            body = decode_body(envelope, self._evidence)
        except InvalidRecordError:
            return set()
        except StorageError:
            return {(envelope.event_id, _ANY)}
        return {(envelope.event_id, erased) for erased in body.event_ids} if isinstance(body, BodyErased) else set()


def lines_of_all(folder: Path) -> Iterator[bytes]:
    """Iterate over the lines of all segments, unverified, as far as they can be read.

    Raises StorageUnavailableError.
    """
    for writer, numbers in list_segments(folder).items():
        for number in numbers:
            path = folder / segment_name(writer, number)
            try:
                with open_past_gaps(path) as file:
                    yield from file
            except FileNotFoundError:
                continue  # set aside meanwhile: whoever reads that slot notices
            except OSError as error:
                raise unavailable(error, f"cannot read the segment {path.name}") from error
