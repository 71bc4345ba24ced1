import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rune.errors import (
    CorruptJournalError,
    JournalMovedError,
    StorageUnavailableError,
    UnmigratedDialectError,
)
from rune.records.events import BodyErased, Event, JournalRepaired
from rune.records.record import from_json
from rune.records.session import LeaseHolder
from rune.store import codec
from rune.store.event_store import Offset
from rune.store.evidence_store import EvidenceStore
from rune.store.segments import SegmentReader
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, fill, lines_of, memory_folder, open_now, opened, resealed, stored_ids
from tests.store.samples import CONVERSATION, DEVICE, MOMENT, ended, said


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    folder = memory_folder()
    yield folder
    shutil.rmtree(folder)


def segment(home: Path, name: str = FIRST) -> Path:
    return home / "journal" / name


async def repairs(home: Path, ids: CountedIds) -> list[JournalRepaired]:
    evidence = EvidenceStore(home / "evidence", CountedClock())
    async with opened(home, ids=ids) as store:
        bodies = [codec.decode_body(envelope, evidence) for _, envelope in store.replay(types=["journal.repaired"])]
    return [body for body in bodies if isinstance(body, JournalRepaired)]


def forge(path: Path, more: Sequence[int]) -> None:
    """Write a segment with a right chain whose lines say that so many of their batch follow."""
    path.parent.mkdir(0o700)
    ids = CountedIds()
    line, chain = codec.seal_header(boot_id="", opened=MOMENT, prev=codec.CHAIN_START, segment=1, writer="w000")
    lines = [line]
    for seq, following in enumerate(more, start=1):
        where = codec.Place(writer="w000", seq=seq, hlc=seq, more=following, prev=chain, device_id=DEVICE)
        line, chain = codec.seal(codec.prepare(ended(ids)), where)
        lines.append(line)
    path.write_bytes(b"".join(lines))


# Torn tails.


@pytest.mark.parametrize("batch", [1, 2])
async def test_a_journal_cut_at_any_byte_of_its_last_batch_keeps_exactly_what_is_before(
    tmp_path: Path, ids: CountedIds, batch: int
) -> None:
    events = await fill(tmp_path, ids, [1, 2, batch])
    whole = segment(tmp_path).read_bytes()
    start = len(b"".join(lines_of(segment(tmp_path))[:-batch]))
    for cut in range(start, len(whole)):
        home = tmp_path / str(cut)
        (home / "journal").mkdir(0o700, parents=True)
        segment(home).write_bytes(whole[:cut])
        store = open_now(home, ids=ids)
        assert stored_ids(store) == event_ids(events[:-batch])
        kept = [path.read_bytes() for path in (home / "journal").glob("*.torn-*")]
        assert kept == ([whole[start:cut]] if cut > start else [])
        assert len(lines_of(segment(home))) == len(lines_of(segment(tmp_path))) - batch + (cut > start)
        await store.close()


async def test_a_repair_is_noted_once_and_names_the_file_that_holds_the_tail(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1])
    with segment(tmp_path).open("ab") as file:
        file.write(b'{"actor_id":"ow')
    (repair,) = await repairs(tmp_path, ids)
    assert repair.segment == FIRST
    assert segment(tmp_path, repair.kept_as).read_bytes() == b'{"actor_id":"ow'
    assert (repair.bytes, repair.reason) == (15, "its last line is unfinished")
    assert stat.S_IMODE(segment(tmp_path, repair.kept_as).stat().st_mode) == 0o600
    assert await repairs(tmp_path, ids) == [repair]
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)


async def test_two_torn_tails_of_one_moment_are_both_kept(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    for text in (b"first", b"second"):
        with segment(tmp_path).open("ab") as file:
            file.write(text)
        await repairs(tmp_path, ids)
    assert {path.read_bytes() for path in (tmp_path / "journal").glob("*.torn-*")} == {b"first", b"second"}


@pytest.mark.parametrize("tail", [b"\0" * 512, b"\0" * 3_000_000, b"{}\n", b"\n\n\n", b"\0\n\0\n", os.urandom(700)])
async def test_a_tail_of_zeros_or_garbage_is_cut(tmp_path: Path, ids: CountedIds, tail: bytes) -> None:
    events = await fill(tmp_path, ids, [1, 2])
    with segment(tmp_path).open("ab") as file:
        file.write(tail)
    if tail == b"{}\n":
        with pytest.raises(UnmigratedDialectError):
            open_now(tmp_path)
        return
    async with opened(tmp_path, ids=ids) as store:
        assert stored_ids(store) == event_ids(events)
    assert b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*.torn-*")) == tail


async def test_a_last_line_whose_end_became_zeros_is_cut(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1])
    data = segment(tmp_path).read_bytes()
    for tail in (b"\0" * 100, b"\0" * 99 + b"\n"):
        segment(tmp_path).write_bytes(data[:-100] + tail)
        async with opened(tmp_path, ids=ids) as store:
            assert stored_ids(store) == event_ids(events[:-1])
        segment(tmp_path).write_bytes(data)


async def test_after_a_repair_the_journal_goes_on(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 3])
    segment(tmp_path).write_bytes(b"".join(lines_of(segment(tmp_path))[:-1]))
    more = await fill(tmp_path, ids, [2])
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events[:1] + more)
        assert [offset.seq for offset, _ in store.replay()] == [1, 2, 3, 4]


# Damage that is not a torn tail.


async def test_every_flipped_bit_is_noticed(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 2])
    path = segment(tmp_path)
    whole = path.read_bytes()
    descriptor = os.open(path, os.O_WRONLY)
    for at, byte in enumerate(whole):
        for bit in range(8):
            os.pwrite(descriptor, bytes([byte ^ 1 << bit]), at)
            try:
                with SegmentReader(path.parent, "w000", 1, lambda _by, _of: False) as reader:
                    seen = sum(1 for _ in reader.events())
                    tail = reader.tail
                    assert tail is not None, f"bit {bit} of byte {at} went unnoticed"
                    torn = tail.damaged is None or not reader.holds_event_behind(tail.damaged)
                    assert not torn or seen == 1, f"bit {bit} of byte {at}: more than the last batch would be cut"
            except (CorruptJournalError, StorageUnavailableError):
                continue
        os.pwrite(descriptor, bytes([byte]), at)
    os.close(descriptor)


@pytest.mark.parametrize("line", [0, 1, 2, 3])
async def test_damage_before_the_last_record_names_file_line_and_byte_and_changes_nothing(
    tmp_path: Path, ids: CountedIds, line: int
) -> None:
    events = await fill(tmp_path, ids, [1, 1, 1, 1])
    lines = lines_of(segment(tmp_path))
    before = len(b"".join(lines[:line]))
    lines[line] = lines[line].replace(b'"w000"', b'"w0O0"')
    segment(tmp_path).write_bytes(b"".join(lines))
    with pytest.raises(CorruptJournalError) as caught:
        open_now(tmp_path)
    assert (caught.value.file, caught.value.line, caught.value.byte) == (str(segment(tmp_path)), line + 1, before)
    assert segment(tmp_path).read_bytes() == b"".join(lines)
    async with opened(tmp_path, read_only=True) as store:
        seen: list[str] = []
        with pytest.raises(CorruptJournalError):
            seen.extend(envelope.event_id for _, envelope in store.replay())
        assert seen == event_ids(events[: max(line - 1, 0)])
        with pytest.raises(StorageUnavailableError):
            await store.append(ended(ids))


async def test_a_lost_newline_between_two_records_is_not_a_torn_tail(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1])
    data = segment(tmp_path).read_bytes()
    at = len(b"".join(lines_of(segment(tmp_path))[:2])) - 1
    segment(tmp_path).write_bytes(data[:at] + b"\x0b" + data[at + 1 :])
    with pytest.raises(CorruptJournalError):
        open_now(tmp_path)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (2, {"actor_id": "owner"}),
        (2, {"timestamp": "2026-11-30T14:00:00.999Z"}),
        (3, {"seq": 4}),
        (3, {"prev": "0" * 16}),
        (3, {"writer": "w001"}),
    ],
)
async def test_a_forged_line_with_a_right_checksum_breaks_the_chain(
    tmp_path: Path, ids: CountedIds, line: int, changes: dict[str, object]
) -> None:
    await fill(tmp_path, ids, [1, 1, 1])
    lines = lines_of(segment(tmp_path))
    lines[line] = resealed(lines[line], **changes)
    segment(tmp_path).write_bytes(b"".join(lines))
    with pytest.raises(CorruptJournalError):
        open_now(tmp_path)


@pytest.mark.parametrize("gone", [1, 2, 3, 4])
async def test_a_line_that_is_missing_doubled_or_moved_is_noticed(tmp_path: Path, ids: CountedIds, gone: int) -> None:
    await fill(tmp_path, ids, [1, 3, 1])
    lines = lines_of(segment(tmp_path))
    for changed in (
        lines[:gone] + lines[gone + 1 :],
        lines[: gone + 1] + lines[gone:],
        [*lines[:gone], lines[gone + 1], lines[gone], *lines[gone + 2 :]],
    ):
        segment(tmp_path).write_bytes(b"".join(changed))
        with pytest.raises(CorruptJournalError):
            open_now(tmp_path)


@pytest.mark.parametrize("more", [(2, 0, 0), (1, 1, 0), (2, 1, 1, 0), (3, 2, 1, 3, 2, 1, 0)])
async def test_a_batch_whose_lines_disagree_on_how_many_follow_is_damage(tmp_path: Path, more: tuple[int, ...]) -> None:
    forge(segment(tmp_path), more)
    with pytest.raises(CorruptJournalError, match="line of its batch"):
        open_now(tmp_path)


async def test_a_reader_that_goes_on_within_a_batch_still_counts_its_lines(tmp_path: Path) -> None:
    forge(segment(tmp_path), (2, 0))
    place = Offset("w000", 1, 1, len(b"".join(lines_of(segment(tmp_path))[:2])))
    async with opened(tmp_path, read_only=True) as store:
        with pytest.raises(CorruptJournalError, match="line of its batch"):
            list(store.read({"w000": place}))


async def test_another_programs_journal_is_refused_and_the_importer_named(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1])
    data = segment(tmp_path).read_bytes()
    foreign = b'{"id":"1","type":"message","v":1,"data":{"text":"hello"}}\n'
    for content in (foreign, data + foreign, b"".join(lines_of(segment(tmp_path))[:2]) + foreign):
        segment(tmp_path).write_bytes(content)
        with pytest.raises(UnmigratedDialectError) as caught:
            open_now(tmp_path)
        assert "rune import events" in caught.value.hint
        assert segment(tmp_path).read_bytes() == content


async def test_a_newer_format_opens_for_reading_only_and_names_the_versions(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1], segment_bytes=1)
    last = segment(tmp_path, "w000-000003.jsonl")
    last.write_bytes(last.read_bytes().replace(b'"format":1', b'"format":7'))
    with pytest.raises(StorageUnavailableError, match="format 7; this Rune knows up to 1"):
        open_now(tmp_path)
    async with opened(tmp_path, read_only=True) as store:
        iterator = store.replay()
        assert next(iterator)[1].event_id == events[0].event_id
        with pytest.raises(StorageUnavailableError, match="format 7"):
            next(iterator)


# Segments.


async def test_a_slot_goes_on_through_segments_with_one_chain_and_one_count(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 2, 1], segment_bytes=1)
    events += await fill(tmp_path, ids, [1], segment_bytes=1)
    events += await fill(tmp_path, ids, [1])
    names = sorted(path.name for path in (tmp_path / "journal").glob("*.jsonl"))
    assert names == [f"w000-{number:06}.jsonl" for number in range(1, 6)]
    headers = [codec.parse_header(lines_of(segment(tmp_path, name))[0][:-1])[0] for name in names]
    assert [header.segment for header in headers] == [1, 2, 3, 4, 5]
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)
        assert [envelope.seq for _, envelope in store.replay()] == [1, 2, 3, 4, 5, 6]


async def test_a_missing_segment_or_a_broken_link_between_two_is_noticed(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=1)
    second = segment(tmp_path, "w000-000003.jsonl")
    data = second.read_bytes()
    second.unlink()
    async with opened(tmp_path, read_only=True) as store:
        with pytest.raises(CorruptJournalError, match="missing"):
            list(store.replay())
    header = codec.parse_header(data.split(b"\n")[0])[0]
    forged = codec.seal_header(boot_id=header.boot_id, opened=MOMENT, prev="f" * 16, segment=3, writer="w000")
    second.write_bytes(forged.line + resealed(data.split(b"\n")[1], prev=forged.chain))
    async with opened(tmp_path, read_only=True) as store:
        with pytest.raises(CorruptJournalError, match="chain broken"):
            list(store.replay())


async def test_damage_at_the_end_of_a_segment_that_is_not_the_last_is_no_torn_tail(
    tmp_path: Path, ids: CountedIds
) -> None:
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=1)
    second = segment(tmp_path, "w000-000002.jsonl")
    second.write_bytes(second.read_bytes()[:-5])
    async with opened(tmp_path) as store:
        with pytest.raises(CorruptJournalError, match="unfinished"):
            list(store.replay())


async def test_a_process_killed_between_two_segments_leaves_nothing_behind(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1], segment_bytes=1)
    last = segment(tmp_path, "w000-000003.jsonl")
    header = last.read_bytes().split(b"\n")[0] + b"\n"
    last.write_bytes(header)  # the new segment was made and no event had come
    (tmp_path / "journal" / ".w000-000004.jsonl.0123456789abcdef.tmp").write_bytes(header[:20])
    events[-1:] = await fill(tmp_path, ids, [1])
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)
    assert not list((tmp_path / "journal").glob(".*"))


async def test_opening_a_long_segment_verifies_its_end_and_goes_on(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path) as store:
        await store.append_many([said(ids, "r" * 7000, pseq=n) for n in range(1, 301)])
        *_, last = [await store.append(said(ids, "r" * 7000, pseq=1)) for _ in range(50)]
    with segment(tmp_path).open("ab") as file:
        file.write(b"torn")
    async with opened(tmp_path, ids=ids) as store:
        assert store.head()["w000"].seq == last.seq + 1
        assert sum(1 for _ in store.replay()) == last.seq + 1


# Slots and folders.


async def test_a_second_opener_gets_the_next_slot_and_a_third_the_first_that_is_free(
    tmp_path: Path, ids: CountedIds
) -> None:
    first = open_now(tmp_path)
    second = open_now(tmp_path)
    assert (first.writer, second.writer) == ("w000", "w001")
    await first.append(ended(ids))
    await second.append(ended(ids))
    await first.close()
    third = open_now(tmp_path)
    assert third.writer == "w000"
    assert (await third.append(ended(ids))).seq == 2
    assert set(third.head()) == {"w000", "w001"}
    assert len(list(second.replay())) == 3
    await second.close()
    await third.close()


async def test_the_lock_file_says_who_holds_the_slot(tmp_path: Path) -> None:
    async with opened(tmp_path):
        holder = from_json((tmp_path / "journal" / "w000.lock").read_bytes(), LeaseHolder)
        assert holder.pid == os.getpid()
    assert (tmp_path / "journal" / "w000.lock").read_bytes() == b""


async def test_files_and_folders_are_private(tmp_path: Path, ids: CountedIds) -> None:
    old = os.umask(0)
    try:
        async with opened(tmp_path / "home") as store:
            await store.append(said(ids, "r" * 10_000))
    finally:
        os.umask(old)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*")}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal").chmod(mode)
    with pytest.raises(StorageUnavailableError, match=f"mode {mode:03o}") as caught:
        open_now(tmp_path)
    assert "chmod go-w" in caught.value.hint


def test_a_link_in_place_of_the_folder_or_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailableError, match="symbolic link"):
        open_now(tmp_path)
    assert not list((tmp_path / "elsewhere").iterdir())
    home = tmp_path / "home"
    (home / "journal").mkdir(0o700, parents=True)
    (home / "journal" / "w000.lock").symlink_to(tmp_path / "elsewhere" / "lock")
    with pytest.raises(StorageUnavailableError):
        open_now(home)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("not a folder")
    with pytest.raises(StorageUnavailableError):
        open_now(tmp_path)


async def test_a_slot_opened_later_on_a_clock_that_is_behind_still_comes_later(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, clock=CountedClock()) as first:
        await first.append(ended(ids))
        behind = CountedClock(1000)
        async with opened(tmp_path, clock=behind) as second:
            await second.append(ended(ids))
            await first.append_many([ended(ids), ended(ids)])
            list(second.read({}))
            await second.append(ended(ids))
        order = [(envelope.writer, envelope.seq) for _, envelope in first.replay()]
    assert order == [("w000", 1), ("w000", 2), ("w001", 1), ("w000", 3), ("w001", 2)]


async def test_a_slot_reopened_on_a_clock_that_is_behind_still_comes_later(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    await fill(tmp_path, ids, [1], clock=CountedClock(1000))
    async with opened(tmp_path) as store:
        first, second = (envelope.hlc for _, envelope in store.replay())
    assert second == first + 1


async def test_a_conversation_is_read_by_pseq_whatever_the_clocks_of_its_writers_say(
    tmp_path: Path, ids: CountedIds
) -> None:
    async with (
        opened(tmp_path, clock=CountedClock(9_000)) as ahead,
        opened(tmp_path, clock=CountedClock(500)) as behind,
    ):
        await ahead.append(said(ids, pseq=1))
        await behind.append(said(ids, pseq=2))
        await ahead.append_many([said(ids, pseq=3), said(ids, pseq=4)])
        assert [envelope.pseq for _, envelope in ahead.replay(CONVERSATION)] == [1, 2, 3, 4]
        assert [envelope.pseq for _, envelope in ahead.replay()] == [2, 1, 3, 4]


async def test_a_pseq_given_twice_is_kept_twice_and_in_one_order(tmp_path: Path, ids: CountedIds) -> None:
    async with (
        opened(tmp_path, clock=CountedClock(9_000)) as ahead,
        opened(tmp_path, clock=CountedClock(500)) as behind,
    ):
        for store in (ahead, behind):
            await store.append_many([said(ids, pseq=1), said(ids, pseq=2)])
        for store in (ahead, behind):
            order = [(envelope.pseq, envelope.writer) for _, envelope in store.replay(CONVERSATION)]
            assert order == [(1, "w001"), (1, "w000"), (2, "w001"), (2, "w000")]


# Reading what others write.


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
