"""Damage in the middle is set aside, what is intact behind it is written again, and nothing is skipped in silence."""

import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rune.errors import CorruptJournalError, JournalMovedError, NewerFormatError, UnmigratedDialectError
from rune.records.envelope import EventEnvelope
from rune.records.events import BodyErased, Event, JournalRepaired
from rune.store import codec
from rune.store.erasing.rewriting import rewrite_segment
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION
from tests.store.journals import (
    FIRST,
    event_ids,
    fill,
    lines_of,
    of_a_later_format,
    open_now,
    opened,
    resealed,
    segment,
)
from tests.store.mending.damaged import (
    SECOND,
    THIRD,
    damage_of,
    edited,
    envelopes,
    evidence_of,
    files,
    mend,
    spoilt,
    three_segments,
)
from tests.store.samples import DEVICE, MOMENT, ended, one_of_each, said
from tests.store.spine import STORY, Reports, events, hashes, notes, open_views

FOREIGN = b'{"id":"1","type":"message","v":1,"data":{"text":"hello"}}\n'


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


# What is done, where the first damage is (segment, bytes of it in whole lines that stay), and which events are lost.
DAMAGE: dict[str, tuple[Callable[[Path], None], tuple[str, int], set[int]]] = {
    "changed line": (edited(FIRST, lambda at: [*at[:1], spoilt(at[1]), *at[2:]]), (FIRST, 1), {0}),
    "changed line in a batch": (edited(FIRST, lambda at: [*at[:3], spoilt(at[3]), at[4]]), (FIRST, 2), {2}),
    "missing line": (edited(SECOND, lambda at: [at[0], *at[2:]]), (SECOND, 1), {4}),
    "doubled line": (edited(SECOND, lambda at: [*at[:4], at[3]]), (SECOND, 4), set()),
    "doubled line of before": (edited(SECOND, lambda at: [*at[:3], at[1], at[3]]), (SECOND, 3), set()),
    "exchanged lines": (edited(THIRD, lambda at: [at[0], at[2], at[1], at[3]]), (THIRD, 1), set()),
    "forged line": (
        edited(THIRD, lambda at: [at[0], resealed(at[1], device_id=DEVICE[:-1] + "6"), *at[2:]]),
        (THIRD, 2),
        set(),
    ),
    "lost newlines": (
        edited(FIRST, lambda at: [at[0], b"".join(at[1:4]).replace(b"\n", b"\v"), b"\n", at[4]]),
        (FIRST, 1),
        set(),
    ),
    "megabytes of zeros": (
        edited(SECOND, lambda at: [at[0], at[1], b"\0" * 3_000_000, *at[2:]]),
        (SECOND, 1),
        set(),
    ),
    # The first line behind them begins in one piece that is read and ends in the next.
    "zeros up to the end of a piece": (
        edited(SECOND, lambda at: [at[0], at[1], b"\0" * ((2 << 20) - 100), *at[2:]]),
        (SECOND, 1),
        set(),
    ),
    "one line behind zeros": (
        edited(THIRD, lambda at: [*at[:3], b"\0" * ((17 << 16) - 100), at[3]]),
        (THIRD, 2),
        set(),
    ),
    "foreign line": (edited(FIRST, lambda at: [*at[:2], FOREIGN, *at[2:]]), (FIRST, 2), set()),
    "foreign line at the end": (edited(THIRD, lambda at: [*at, FOREIGN]), (THIRD, 4), set()),
    "damaged header": (
        edited(SECOND, lambda at: [at[0].replace(b'"segment":2', b'"segment":4'), *at[1:]]),
        (SECOND, 0),
        set(),
    ),
    "damaged first header": (edited(FIRST, lambda at: [b"\0" * len(at[0]), *at[1:]]), (FIRST, 0), set()),
    "empty segment": (edited(SECOND, lambda _: []), (SECOND, 0), {4, 5, 6}),
    "missing segment": (lambda home: segment(home, SECOND).unlink(), (THIRD, 0), {4, 5, 6}),
    "short segment": (edited(SECOND, lambda at: [*at[:3], at[3][:-20]]), (SECOND, 3), {6}),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE, ids=lambda kind: kind.replace(" ", "-"))
async def test_what_is_intact_is_there_once_afterwards_and_what_is_not_is_in_a_file_beside(
    kind: str, tmp_path: Path, ids: CountedIds
) -> None:
    change, (name, whole_lines), lost = DAMAGE[kind]
    stored = await three_segments(tmp_path, ids)
    before = envelopes(tmp_path)
    change(tmp_path)
    damaged = files(tmp_path)
    (found,) = damage_of(tmp_path)
    keep = sum(len(line) for line in lines_of(segment(tmp_path, name))[:whole_lines])
    assert (found.writer, found.segment, found.keep, found.held_by, found.refusal) == ("w000", name, keep, None, None)
    assert files(tmp_path) == damaged

    done = await mend(tmp_path, ids)

    after = envelopes(tmp_path)
    told = {key: after.pop(key) for key in list(after) if after[key].event_type == "journal.repaired"}
    assert sorted(after) == sorted(set(event_ids(stored)) - {stored[index].event_id for index in lost})
    for event_id, envelope in after.items():
        assert kept_fields(envelope) == kept_fields(before[event_id])
    assert sum(each.written for each in done) == sum(1 for envelope in after.values() if envelope.writer != "w000")
    bodies = [codec.decode_body(envelope, evidence_of(tmp_path)) for envelope in told.values()]
    assert bodies == [
        JournalRepaired(segment=each.segment, kept_as=each.kept_as, bytes=each.bytes, reason=each.reason)
        for each in done
    ]
    # Every byte from the damage on is in the file of its segment, and nothing else is in there.
    for each in done:
        start = keep if each.segment == name else 0
        assert segment(tmp_path, each.kept_as).read_bytes() == damaged[each.segment][start:]
        assert segment(tmp_path, each.kept_as).name.startswith(f"{each.segment}.quarantined-20261")
        assert stat.S_IMODE(segment(tmp_path, each.kept_as).stat().st_mode) == 0o600
    assert [each.segment for each in done] == [each for each in sorted(damaged) if each >= name]
    assert [path for path in files(tmp_path) if path.startswith(".")] == []

    mended = files(tmp_path)
    assert damage_of(tmp_path) == ()
    assert await mend(tmp_path, ids) == ()
    assert files(tmp_path) == mended
    async with opened(tmp_path) as store:
        assert store.writer == "w000"
        await store.append(ended(ids))
    assert damage_of(tmp_path) == ()


def kept_fields(envelope: EventEnvelope) -> list[Any]:
    names = (
        "event_id", "event_type", "partition_key", "pseq", "timestamp", "actor_id", "parent_id", "authorization",
        "payload_hash",
    )  # fmt: skip
    return [getattr(envelope, name) for name in names]


async def test_the_reason_says_what_was_wrong_how_much_was_written_again_and_how_much_could_not_be(
    tmp_path: Path, ids: CountedIds
) -> None:
    await three_segments(tmp_path, ids)
    edited(FIRST, lambda at: [*at[:2], spoilt(at[2]), *at[3:]])(tmp_path)
    first, second, third = await mend(tmp_path, ids)
    assert first.reason.endswith(": 2 events written again, 1 line could not be")
    assert first.reason.startswith("line 3, byte ")
    assert "does not have the hash" in first.reason or "checksum" in first.reason
    assert second.reason == f"it stands behind the damage in {FIRST}: 3 events written again, 0 lines could not be"
    assert [(each.written, each.lost) for each in (first, second, third)] == [(2, 1), (3, 0), (3, 0)]


async def test_an_intact_journal_stays_as_it_is_byte_for_byte(tmp_path: Path, ids: CountedIds) -> None:
    await three_segments(tmp_path, ids)
    with segment(tmp_path, THIRD).open("ab") as file:
        file.write(b'{"actor_id":"ow')  # a torn tail is its next holder's to cut off
    before = files(tmp_path)
    assert damage_of(tmp_path) == ()
    assert await mend(tmp_path, ids) == ()
    assert files(tmp_path) == before
    assert not (tmp_path / "journal" / "w001.lock").exists()


async def test_every_kind_of_event_is_written_again_as_it_was(tmp_path: Path, ids: CountedIds) -> None:
    kinds = [*one_of_each(ids), said(ids, "long " * 4000, pseq=90, parent_id="evt_any")]
    async with opened(tmp_path) as store:
        await store.append(ended(ids))
        await store.append_many(kinds)
    before = envelopes(tmp_path)
    edited(FIRST, lambda at: [at[0], spoilt(at[1]), *at[2:]])(tmp_path)
    (done,) = await mend(tmp_path, ids)
    assert (done.written, done.lost) == (len(kinds), 1)
    after = envelopes(tmp_path)
    for event in kinds:
        assert kept_fields(after[event.event_id]) == kept_fields(before[event.event_id])
        assert codec.decode_body(after[event.event_id], evidence_of(tmp_path)) == event.body


async def test_what_cannot_be_written_again_stays_in_the_file_and_is_counted(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path) as store:
        await store.append(ended(ids))
        erased, lost_body, kept = said(ids, "secret"), said(ids, "x" * 9000, pseq=2), said(ids, "kept", pseq=3)
        await store.append_many([erased, lost_body, kept])
        body = BodyErased(event_ids=(erased.event_id,), reason="asked for")
        erasing = Event(
            event_id=ids.new_id("evt"), event_type="body.erased", partition_key="system", actor_id="owner",
            timestamp=MOMENT, body=body,
        )  # fmt: skip
        await store.append(erasing)
    rewrite_segment(tmp_path / "journal", "w000", 1, {erased.event_id: erasing.event_id})
    for blob in (tmp_path / "evidence").glob("??/*"):
        blob.unlink()
    unknown = lines_of(segment(tmp_path))[-1].replace(b"body.erased", b"later.event")
    edited(FIRST, lambda at: [at[0], spoilt(at[1]), *at[2:], relabelled(unknown)])(tmp_path)
    (done,) = await mend(tmp_path, ids)
    assert (done.written, done.lost, done.erased) == (2, 3, 1)
    assert done.reason.endswith("2 events written again, 3 lines could not be, 1 erased before")
    assert {kept.event_id, erasing.event_id} == {
        envelope.event_id for envelope in envelopes(tmp_path).values() if envelope.event_type != "journal.repaired"
    }
    whole = segment(tmp_path, done.kept_as).read_bytes()
    assert all(name.encode() in whole for name in (erased.event_id, lost_body.event_id, "later.event"))


def relabelled(line: bytes) -> bytes:
    """Return a line whose head was changed with a right checksum."""
    head, _, rest = line.partition(b',"crc":"')
    return b'%b,"crc":"%08x%b' % (head, zlib.crc32(head), rest[8:])


async def test_two_damaged_slots_are_mended_in_one_run_into_a_third(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        assert (first.writer, second.writer) == ("w000", "w001")
        for store in (first, second, first, second):
            await store.append_many([ended(ids), ended(ids)])
    everything = set(envelopes(tmp_path))
    for name in (FIRST, "w001-000001.jsonl"):
        edited(name, lambda at: [at[0], at[2], at[1], *at[3:]])(tmp_path)
    done = await mend(tmp_path, ids)
    assert [(each.segment, each.written, each.lost) for each in done] == [(FIRST, 4, 0), ("w001-000001.jsonl", 4, 0)]
    after = envelopes(tmp_path)
    assert everything <= set(after)
    assert {envelope.writer for envelope in after.values()} == {"w002"}


async def test_another_programs_segment_is_not_quarantined_and_the_way_out_is_named(
    tmp_path: Path, ids: CountedIds
) -> None:
    stored = await three_segments(tmp_path, ids)
    edited(FIRST, lambda at: [*at[:2], spoilt(at[2]), *at[3:]])(tmp_path)
    for content in (FOREIGN, b'{"text":"%b"}\n' % (b"x" * 9000)):
        segment(tmp_path, "w004-000001.jsonl").write_bytes(content)
        before = files(tmp_path)
        damaged, foreign = damage_of(tmp_path)
        assert (damaged.writer, damaged.refusal) == ("w000", None)
        assert (foreign.writer, type(foreign.refusal)) == ("w004", UnmigratedDialectError)
        with pytest.raises(UnmigratedDialectError) as caught:
            await mend(tmp_path, ids)
        assert caught.value.hint.startswith("Move that file out of the journal folder, then: rune import events")
        assert files(tmp_path) == before
    segment(tmp_path, "w004-000001.jsonl").rename(tmp_path / "foreign.jsonl")
    assert len(await mend(tmp_path, ids)) == 3
    assert len(envelopes(tmp_path)) == len(stored) - 1 + 3


@pytest.mark.parametrize("name", [SECOND, "w003-000001.jsonl"], ids=["behind the damage", "of another slot"])
async def test_a_newer_format_is_never_touched(tmp_path: Path, ids: CountedIds, name: str) -> None:
    await three_segments(tmp_path, ids)
    newer = of_a_later_format(lines_of(segment(tmp_path))[0])
    segment(tmp_path, name).write_bytes(newer + b"what a later Rune writes\n")
    edited(FIRST, lambda at: [*at[:2], spoilt(at[2]), *at[3:]])(tmp_path)
    before = files(tmp_path)
    assert [type(each.refusal) for each in damage_of(tmp_path) if each.refusal] == [NewerFormatError]
    with pytest.raises(NewerFormatError):
        await mend(tmp_path, ids)
    assert files(tmp_path) == before


async def test_views_follow_without_a_manual_step(tmp_path: Path, ids: CountedIds) -> None:
    reports = Reports()
    for _ in range(99):
        ids.new_id("evt")  # those of the story
    async with opened(tmp_path) as store:
        first, last = notes(2)
        await store.append(first)
        await store.append_many(events(*STORY, partition=CONVERSATION))
        await store.append(last)
    engine = open_views(tmp_path / "views-1.db", open_now(tmp_path, read_only=True), evidence_of(tmp_path), reports)
    engine.catch_up()
    edited(FIRST, lambda at: [at[0], spoilt(at[1]), *at[2:]])(tmp_path)
    await mend(tmp_path, ids)
    engine.catch_up()
    assert engine.lookup(first.event_id) is None
    for event in (*events(*STORY, partition=CONVERSATION), last):
        found = engine.find(event.event_id)
        assert found is not None
        assert (found[0].writer, found[1].event_id) == ("w001", event.event_id)
    after = hashes(engine)
    engine.rebuild()
    assert hashes(engine) == after
    assert [type(error) for error in reports.views] == [JournalMovedError]
    engine.close()


async def test_an_erased_line_that_nothing_vouches_for_is_damage_and_its_readers_do_not_wait_for_more(
    tmp_path: Path, ids: CountedIds
) -> None:
    (event,) = await fill(tmp_path, ids, [1])
    rewrite_segment(tmp_path / "journal", "w000", 1, {event.event_id: ids.new_id("evt")})
    with pytest.raises(CorruptJournalError, match="erased"):
        envelopes(tmp_path)
    with pytest.raises(CorruptJournalError, match="erased"):
        open_now(tmp_path)
    (done,) = await mend(tmp_path, ids)
    assert (done.written, done.lost, done.erased) == (0, 0, 1)
