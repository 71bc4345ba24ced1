"""Erasing bodies in a segment: those lines and nothing else, whole or not at all."""

import resource
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, JournalMovedError, StorageUnavailableError, UnstorableValueError
from rune.records.events import BodyErased, Event
from rune.store import codec
from rune.store.durable_store import DurableEventStore
from rune.store.erasing.rewriting import rewrite_segment
from rune.store.evidence_store import EvidenceStore
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, fill, lines_of, opened, segment, stored_ids
from tests.store.samples import MOMENT, said

SECOND = "w000-000002.jsonl"


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


def erasing(ids: CountedIds, events: Sequence[str]) -> Event:
    """Return the `body.erased` that names these events."""
    return Event(
        event_id=ids.new_id("evt"),
        event_type="body.erased",
        partition_key="system",
        actor_id="owner",
        timestamp=MOMENT,
        body=BodyErased(event_ids=tuple(events), reason="asked for"),
    )


async def erase(store: DurableEventStore, ids: CountedIds, events: Sequence[str]) -> dict[str, str]:
    """Store the fact that these are erased; returns what `rewrite_segment` takes."""
    event = erasing(ids, events)
    await store.append(event)
    return dict.fromkeys(events, event.event_id)


async def test_the_named_bodies_are_gone_and_every_other_byte_is_the_same(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 3, 1])
    named = [events[0].event_id, events[2].event_id]
    async with opened(tmp_path) as store:
        replace = await erase(store, ids, named)
    before = lines_of(segment(tmp_path))
    assert rewrite_segment(tmp_path / "journal", "w000", 1, replace | {"evt_elsewhere": "evt_x"}) == 2
    after = lines_of(segment(tmp_path))
    assert [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [1, 3]
    assert (
        after[1] == before[1][: before[1].index(b',"body":') + 8] + b'{"erased":"%b"}}\n' % replace[named[0]].encode()
    )
    assert stat.S_IMODE(segment(tmp_path).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "journal").iterdir() if path.name.startswith(".")] == []
    evidence = EvidenceStore(tmp_path / "evidence", CountedClock())
    async with opened(tmp_path) as store:
        assert stored_ids(store)[:5] == event_ids(events)
        bodies = {envelope.event_id: codec.decode_body(envelope, evidence) for _, envelope in store.replay()}
    assert [bodies[name] for name in named] == [codec.ErasedBody(erased=replace[named[0]])] * 2


async def test_doing_it_again_changes_nothing(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [2])
    async with opened(tmp_path) as store:
        replace = await erase(store, ids, event_ids(events))
    assert rewrite_segment(tmp_path / "journal", "w000", 1, replace) == 2
    before = segment(tmp_path).stat()
    assert rewrite_segment(tmp_path / "journal", "w000", 1, replace) == 0
    assert (segment(tmp_path).stat().st_ino, segment(tmp_path).stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


async def test_a_second_erasure_keeps_the_first(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [2])
    for event in events:
        async with opened(tmp_path) as store:
            replace = await erase(store, ids, [event.event_id])
        assert rewrite_segment(tmp_path / "journal", "w000", 1, replace) == 1
    async with opened(tmp_path) as store:
        assert stored_ids(store)[:2] == event_ids(events)


async def test_a_writer_and_its_readers_go_on_when_an_older_segment_of_their_slot_was_rewritten(
    tmp_path: Path, ids: CountedIds
) -> None:
    async with opened(tmp_path, segment_bytes=4000) as store, opened(tmp_path, read_only=True) as other:
        events = [said(ids, f"{number} {'r' * 900}", pseq=number) for number in range(1, 13)]
        places = [await store.append(event) for event in events]
        assert places[-1].segment >= 3
        following = [store.read({"w000": places[0]}), other.read({"w000": places[0]}), other.read({})]
        halfway = [[next(reader)[1].event_id] for reader in following]
        replace = await erase(store, ids, [event.event_id for event in events[:6]])
        changed = [rewrite_segment(tmp_path / "journal", "w000", number, replace) for number in (1, 2)]
        assert sum(changed) == 6
        late = said(ids, "and on", pseq=13)
        await store.append(late)
        known = [*event_ids(events), next(iter(replace.values())), late.event_id]
        # Those in the middle of the file that was replaced, those that come with a place in it, and those that begin.
        rest = [
            [*seen, *(item[1].event_id for item in reader)] for seen, reader in zip(halfway, following, strict=True)
        ]
        # A process reads its own slot as far as it was when it began.
        assert [rest[0], rest[1], rest[2]] == [known[1:12], known[1:], known]
        for reader in (store, other):
            assert [item[1].event_id for item in reader.read({"w000": places[3]})] == known[4:]
            assert [item[1].event_id for item in reader.replay()] == known
        assert store.head() == other.head()


async def test_the_segment_being_written_cannot_be_taken_from_its_writer(tmp_path: Path, ids: CountedIds) -> None:
    """Not asked for, and yet it may happen: what is then acknowledged must be in the file that readers find."""
    async with opened(tmp_path) as store:
        events = [said(ids, "one"), said(ids, "two", pseq=2)]
        await store.append_many(events)
        replace = await erase(store, ids, event_ids(events))
        assert rewrite_segment(tmp_path / "journal", "w000", 1, replace) == 2
        with pytest.raises(StorageUnavailableError, match="moved away or replaced"):
            await store.append(said(ids, "three", pseq=3))


async def test_a_torn_tail_is_carried_over_as_it_is(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [2])
    async with opened(tmp_path) as store:
        replace = await erase(store, ids, event_ids(events))
    with segment(tmp_path).open("ab") as file:
        file.write(b"torn\0 \xff")
    rewrite_segment(tmp_path / "journal", "w000", 1, replace)
    assert segment(tmp_path).read_bytes().endswith(b"}\ntorn\0 \xff")


async def test_a_damaged_segment_is_refused_and_left_alone(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1, 1, 1, 1], segment_bytes=1300)
    assert segment(tmp_path, SECOND).is_file()
    lines = lines_of(segment(tmp_path))
    for damaged in (
        b"".join([lines[0], lines[1].replace(b'"rune"', b'"ruin"'), *lines[2:]]),
        b"".join(lines)[:-5],  # of a segment that others follow
    ):
        segment(tmp_path).write_bytes(damaged)
        with pytest.raises(CorruptJournalError):
            rewrite_segment(tmp_path / "journal", "w000", 1, dict.fromkeys(event_ids(events), "evt_x"))
        assert segment(tmp_path).read_bytes() == damaged
    with pytest.raises(JournalMovedError):
        rewrite_segment(tmp_path / "journal", "w000", 9, {})


async def test_what_says_that_something_was_erased_is_not_erased(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    async with opened(tmp_path) as store:
        replace = await erase(store, ids, ["evt_any"])
    (name,) = set(replace.values())
    with pytest.raises(UnstorableValueError, match="says what was erased"):
        rewrite_segment(tmp_path / "journal", "w000", 1, {name: name})


async def test_a_failure_on_the_way_leaves_the_old_segment_and_nothing_beside_it(
    tmp_path: Path, ids: CountedIds
) -> None:
    events = await fill(tmp_path, ids, [40])
    before = segment(tmp_path).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, limits[1]))  # as a disk that fills up on the way
    try:
        with pytest.raises(StorageUnavailableError, match="cannot rewrite"):
            rewrite_segment(tmp_path / "journal", "w000", 1, {events[0].event_id: ids.new_id("evt")})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert segment(tmp_path).read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "journal").iterdir()) == [FIRST, "w000.lock"]
