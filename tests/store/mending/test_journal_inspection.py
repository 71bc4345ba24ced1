"""One pass finds what is intact, also behind damage, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rune.host.files import lock_file
from rune.records.events import BodyErased
from rune.store.codec import erased_form
from rune.store.erasing.rewriting import rewrite_segment
from rune.store.evidence_store import EvidenceStore
from rune.store.holders import note, this_process
from rune.store.mending.damage import find_damage
from rune.store.mending.journal_inspection import JournalState, inspect_journal
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_message, a_turn, an_id
from tests.store.journals import FIRST, fill, lines_of, of_a_later_format, opened, segment
from tests.store.mending.damaged import BATCHES, evidence_of, three_segments
from tests.store.spine import events


def look(home: Path) -> JournalState:
    return inspect_journal(home / "journal", EvidenceStore(home / "evidence", CountedClock()))


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def overwrite(home: Path, number: int, change: Callable[[bytes], bytes], name: str = FIRST) -> None:
    """Change one line of a segment, counted from 1."""
    lines = lines_of(segment(home, name))
    lines[number - 1] = change(lines[number - 1])
    segment(home, name).write_bytes(b"".join(lines))


def scribbled(line: bytes) -> bytes:
    return line.replace(b"session", b"SESSION", 1)


async def test_a_whole_journal_has_slots_events_and_no_damage(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 2], segment_bytes=600)
    before = content(tmp_path)
    state = look(tmp_path)
    assert [(slot.writer, slot.events, slot.last, slot.segments, slot.holder) for slot in state.slots] == [
        ("w000", 3, 3, 2, None)
    ]
    assert (state.damage, state.newer, state.kept, state.events) == ([], [], [], 3)
    assert content(tmp_path) == before


def test_where_there_is_no_journal_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert look(tmp_path) == JournalState()
    assert list(tmp_path.iterdir()) == []


async def test_damage_is_named_with_its_place_and_what_is_intact_behind_it(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1] * 6)
    overwrite(tmp_path, 3, scribbled)
    state = look(tmp_path)
    (damage,) = state.damage
    assert (damage.file, damage.line, damage.behind) == (FIRST, 3, 4)
    assert damage.byte == sum(len(line) for line in lines_of(segment(tmp_path))[:2])
    assert (state.events, state.slots[0].last) == (5, 6)


@pytest.mark.parametrize("line", [1, 2, 3, 4], ids=str)
@pytest.mark.parametrize("name", [FIRST, "w000-000002.jsonl"], ids=["first", "second"])
async def test_it_counts_what_is_intact_behind_damage_as_mending_does(
    tmp_path: Path, ids: CountedIds, name: str, line: int
) -> None:
    await three_segments(tmp_path, ids)
    overwrite(tmp_path, line, lambda whole: whole.replace(b"opened", b"oPened").replace(b'"rune"', b'"ruin"'), name)
    state, (damage,) = look(tmp_path), find_damage(tmp_path / "journal", evidence_of(tmp_path))
    assert (state.damage[0].file, state.damage[0].behind) == (name, damage.intact_behind)
    assert state.events == sum(BATCHES) - (line > 1)


async def test_each_damaged_segment_of_each_slot_is_named(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, ids=ids), opened(tmp_path, ids=ids) as other:
        await other.append_many(events(("user.message", a_message(1)), partition=CONVERSATION, prefix="b"))
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=600)
    overwrite(tmp_path, 2, scribbled)
    segment(tmp_path, "w001-000001.jsonl").write_bytes(b"\x00" * 100 + b"\n")
    assert [damage.file for damage in look(tmp_path).damage] == [FIRST, "w001-000001.jsonl"]


async def test_a_missing_segment_is_damage_and_the_others_are_read(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=600)
    segment(tmp_path, "w000-000002.jsonl").unlink()
    state = look(tmp_path)
    assert [(damage.file, damage.reason) for damage in state.damage] == [
        ("w000-000002.jsonl", "this segment is missing")
    ]
    assert state.events == 2


async def test_a_torn_tail_is_no_damage(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1])
    whole = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(whole[:-30])
    state = look(tmp_path)
    assert (state.damage, state.events) == ([], 1)
    assert state.slots[0].torn == len(lines_of(segment(tmp_path))[-1])


async def test_a_segment_of_a_later_format_is_named(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    overwrite(tmp_path, 1, lambda line: of_a_later_format(line, 99))
    state = look(tmp_path)
    assert (state.newer, state.damage) == ([FIRST], [])


async def test_who_writes_a_slot_is_told(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    lock = lock_file(tmp_path / "journal" / "w000.lock")
    assert lock is not None
    with lock:
        lock.write(note(this_process(CountedClock())))
        holder = look(tmp_path).slots[0].holder
    assert holder is not None
    assert holder.pid == this_process(CountedClock()).pid


async def test_torn_and_quarantined_files_are_listed_with_their_sizes(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    (tmp_path / "journal" / f"{FIRST}.torn-20261130T140000.000Z").write_bytes(b"x" * 30)
    (kept,) = look(tmp_path).kept
    assert (kept.name, kept.bytes) == (f"{FIRST}.torn-20261130T140000.000Z", 30)


async def test_turns_without_an_end_are_told(tmp_path: Path, ids: CountedIds) -> None:
    steps = (("turn.started", a_turn(1)), ("turn.started", a_turn(2)), ("turn.finished", a_turn(1)))
    async with opened(tmp_path, ids=ids) as store:
        await store.append_many(events(*steps, partition=CONVERSATION))
    assert look(tmp_path).open_turns == {an_id("trn", 2): CONVERSATION}


async def test_blobs_are_those_that_fields_name_and_never_those_of_a_text(tmp_path: Path, ids: CountedIds) -> None:
    looks_like_one = f"sha256:{'a' * 64}"
    bodies = [a_message(1, content=looks_like_one), a_message(2, content="long " * 4000)]
    async with opened(tmp_path, ids=ids) as store:
        await store.append_many(events(*(("user.message", body) for body in bodies), partition=CONVERSATION))
    state = look(tmp_path)
    assert [(name.event_id, name.event_type, name.partition, name.alone) for name in state.named.values()] == [
        (an_id("evt", 2), "user.message", CONVERSATION, True)
    ]


@pytest.mark.parametrize("blanked", [True, False])
async def test_an_erasure_that_was_not_finished_is_told(tmp_path: Path, ids: CountedIds, *, blanked: bool) -> None:
    erasing = BodyErased(event_ids=(an_id("evt", 1),), reason="owner")
    async with opened(tmp_path, ids=ids) as store:
        await store.append_many(events(("user.message", a_message(1)), partition=CONVERSATION))
        await store.append_many(events(("body.erased", erasing), partition="system", prefix="s"))
    erasing_id = an_id("evt", "s1")
    if blanked:
        rewrite_segment(tmp_path / "journal", "w000", 1, {an_id("evt", 1): erasing_id})
        assert erased_form(erasing_id) in segment(tmp_path).read_bytes()
    state = look(tmp_path)
    assert state.erased == {an_id("evt", 1): erasing_id}
    assert state.unblanked == (frozenset() if blanked else {an_id("evt", 1)})
