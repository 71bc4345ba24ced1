"""Damage that is no torn tail is named, and nothing of it is changed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from rune.errors import (
    CorruptJournalError,
    NewerFormatError,
    PartUnreadableError,
    StorageUnavailableError,
    UnmigratedDialectError,
)
from rune.store import codec
from rune.store.event_store import Offset
from rune.store.segments import SegmentReader
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, lines_of, of_a_later_format, open_now, opened, resealed, segment
from tests.store.samples import DEVICE, MOMENT, ended


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


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
            except PartUnreadableError:
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
    segment(tmp_path).write_bytes(foreign)
    with pytest.raises(UnmigratedDialectError) as caught:
        open_now(tmp_path)
    assert "rune import events" in caught.value.hint
    assert segment(tmp_path).read_bytes() == foreign
    # Behind our own header it is damage, be it a piece of one of our lines.
    piece = b'{"id":"ses_1","schema_version":1}\n'
    for content in (data + foreign, b"".join(data.splitlines(keepends=True)[:2]) + foreign, data + piece):
        segment(tmp_path).write_bytes(content)
        for read in (open_now, read_whole):
            with pytest.raises(CorruptJournalError, match="not in this journal's form") as damage:
                read(tmp_path)
            assert "doctor --mend" in damage.value.hint
        assert segment(tmp_path).read_bytes() == content


def read_whole(home: Path) -> None:
    list(open_now(home, read_only=True).read({}))


async def test_a_newer_format_opens_for_reading_only_and_names_the_versions(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1], segment_bytes=1)
    last = segment(tmp_path, "w000-000003.jsonl")
    last.write_bytes(of_a_later_format(last.read_bytes()))
    with pytest.raises(NewerFormatError, match="format 7; this Rune knows up to 1"):
        open_now(tmp_path)
    async with opened(tmp_path, read_only=True) as store:
        iterator = store.replay()
        assert next(iterator)[1].event_id == events[0].event_id
        with pytest.raises(NewerFormatError, match="format 7"):
            next(iterator)
