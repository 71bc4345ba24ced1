"""Reading a journal that others write, cut short or have erased from."""

import os
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, JournalMovedError
from rune.records.events import BodyErased, Event
from rune.store import codec
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, lines_of, open_now, opened, segment, stored_ids
from tests.store.samples import MOMENT, said


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def test_an_unfinished_line_or_batch_of_another_slot_is_read_once_it_is_whole(
    tmp_path: Path, ids: CountedIds
) -> None:
    events = await fill(tmp_path, ids, [1, 2])
    whole = segment(tmp_path).read_bytes()
    header, first, *batch = lines_of(segment(tmp_path))
    async with opened(tmp_path, read_only=True) as store:
        for content, whole_events in (
            (header, 0),
            (header + first[:100], 0),
            (header + first, 1),
            (header + first + batch[0], 1),
            (header + first + batch[0] + batch[1][:-1], 1),
            (header + first + batch[0] + b"\0" * 50, 1),
        ):
            segment(tmp_path).write_bytes(content)
            seen = list(store.read({}))
            assert [envelope.event_id for _, envelope in seen] == event_ids(events[:whole_events])
            cursor = {offset.writer: offset for offset, _ in seen}
            segment(tmp_path).write_bytes(whole)
            rest = [envelope.event_id for _, envelope in store.read(cursor)]
            assert rest == event_ids(events[len(seen) :])


async def test_a_line_that_its_writer_took_back_while_it_was_read_is_read_as_it_is_now(
    tmp_path: Path, ids: CountedIds
) -> None:
    events = await fill(tmp_path, ids, [1, 1, 1])
    header, first, *rest = lines_of(segment(tmp_path))
    segment(tmp_path).write_bytes(header + first + b'{"actor_id":"half of a line that did not fit')
    async with opened(tmp_path, read_only=True) as store:
        iterator = store.read({})
        seen = [next(iterator)[1].event_id]
        os.truncate(segment(tmp_path), len(header + first))
        with segment(tmp_path).open("ab") as file:
            file.write(b"".join(rest))
        seen += [envelope.event_id for _, envelope in iterator]
    assert seen == event_ids(events)


async def test_a_reader_that_stops_within_a_batch_goes_on_within_it(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [3])
    async with opened(tmp_path, read_only=True) as store:
        iterator = store.read({})
        offset, _ = next(iterator)
        assert [envelope.event_id for _, envelope in store.read({"w000": offset})] == event_ids(events[1:])


async def test_a_place_that_is_no_longer_there_is_a_typed_error(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1, 1])
    async with opened(tmp_path, read_only=True) as store:
        cursor = store.head()
        lines = lines_of(segment(tmp_path))
        segment(tmp_path).write_bytes(b"".join(lines[:-1]))
        with pytest.raises(JournalMovedError):
            list(store.read(cursor))
        segment(tmp_path).unlink()
        with pytest.raises(JournalMovedError):
            list(store.read(cursor))


async def test_an_erased_body_is_believed_when_the_erasing_event_names_it(tmp_path: Path, ids: CountedIds) -> None:
    first, second = said(ids, "a secret"), said(ids, "no secret", pseq=2)
    eraser = Event(
        event_id=ids.new_id("evt"),
        event_type="body.erased",
        partition_key="system",
        actor_id="owner",
        timestamp=MOMENT,
        body=BodyErased(event_ids=(first.event_id,), reason="asked for"),
    )
    async with opened(tmp_path) as store:
        await store.append(first)
        before = store.head()
        await store.append(second)
        await store.append(eraser)
    lines = lines_of(segment(tmp_path))

    def blanked(number: int, by: str) -> bytes:
        body = bytes(codec.parse(lines[number][:-1]).envelope.body)
        line = lines[number].replace(body, b'{"erased":"%b"}' % by.encode())
        return b"".join([*lines[:number], line, *lines[number + 1 :]])

    segment(tmp_path).write_bytes(blanked(1, eraser.event_id))
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids([first, second, eraser])
        # A cursor from before the erasing still finds its place: same events, other bytes.
        assert [envelope.event_id for _, envelope in store.read(before)] == event_ids([second, eraser])
    for number, by in ((2, eraser.event_id), (1, second.event_id), (1, "evt_0000000000000000000000000z")):
        segment(tmp_path).write_bytes(blanked(number, by))
        with pytest.raises(CorruptJournalError):
            open_now(tmp_path)
