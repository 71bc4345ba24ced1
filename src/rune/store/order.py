"""The order in which events are read (spine.md, Order)."""

from collections.abc import Callable, Iterator

from rune.errors import PartUnreadableError, StorageError
from rune.records.envelope import EventEnvelope
from rune.store.event_store import Offset

Located = tuple[Offset, EventEnvelope]
Key = tuple[int, int, str, int]


def reading_order(partition: str | None) -> Callable[[Located], Key]:
    """Return the sort key: of a conversation by `pseq`, of everything else by hlc, writer, seq.

    A `pseq` given twice (a split brain) is told apart by hlc, writer, seq, so that every reader sees
    the same one first.
    """
    by_pseq = partition is not None and partition.startswith("cnv_")

    def key(item: Located) -> Key:
        envelope = item[1]
        return (envelope.pseq if by_pseq else 0, envelope.hlc, envelope.writer, envelope.seq)

    return key


def up_to_damage(stream: Iterator[Located], damage: list[StorageError]) -> Iterator[Located]:
    """Iterate over a slot up to where it cannot be understood. What that is goes into `damage`, to be raised once
    the other slots were read: theirs can be.
    """
    try:
        yield from stream
    except PartUnreadableError as error:
        damage.append(error)
