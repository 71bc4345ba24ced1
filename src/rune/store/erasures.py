"""Which `body.erased` event names which event: an erased body is believed only then (spine.md, Payload)."""

from pathlib import Path

from rune.errors import DamagedLineError, StorageError
from rune.records.events import BodyErased
from rune.store.codec import BlobReader, decode_body, parse
from rune.store.segments import list_segments, segment_name

_MARK = b'"event_type":"body.erased"'


class ErasureIndex:
    """Looks through the journal when the first erased body is met, and again for one it does not know yet."""

    def __init__(self, folder: Path, evidence: BlobReader) -> None:
        self._folder = folder
        self._evidence = evidence
        self._known: set[tuple[str, str]] = set()

    def names(self, erasing_id: str, erased_id: str) -> bool:
        """Say whether the event `erasing_id` is a `body.erased` that names `erased_id`."""
        if (erasing_id, erased_id) not in self._known:
            self._known = self._scan()
        return (erasing_id, erased_id) in self._known

    def all_named(self) -> frozenset[str]:
        """Return the ids of all events that some `body.erased` names, as the journal stands now."""
        return frozenset(erased for _, erased in self._scan())

    def _scan(self) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for writer, numbers in list_segments(self._folder).items():
            for number in numbers:
                with (self._folder / segment_name(writer, number)).open("rb") as file:
                    for line in file:
                        if _MARK in line:
                            found.update(self._pairs(line.rstrip(b"\n")))
        return found

    def _pairs(self, line: bytes) -> set[tuple[str, str]]:
        try:
            envelope = parse(line).envelope
            body = decode_body(envelope, self._evidence)
        except (DamagedLineError, StorageError):
            # Damage is reported by whoever reads that line in its turn; here it proves nothing.
            return set()
        if envelope.event_type != "body.erased" or not isinstance(body, BodyErased):
            return set()
        return {(envelope.event_id, erased) for erased in body.event_ids}
