"""Cuts at every byte, flips of bits, zeros and garbage: kept exactly, or named; never taken for what was written."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, NewerFormatError, StorageError, UnmigratedDialectError
from tests.store.campaigns.batches import Key, batch_of
from tests.store.campaigns.flips import flip
from tests.store.campaigns.reckoning import Reckoning, open_home
from tests.store.journals import lines_of, stored_ids

LAST = 3


async def written(home: Path, seed: int, runs: int = 12) -> list[Key]:
    """Write batches into short segments and close; returns their keys in order."""
    keys = [Key(1, number) for number in range(runs)]
    store, _ = open_home(home, segment_bytes=6000)
    for key in keys:
        await store.append_many(batch_of(seed, key))
    await store.close()
    return keys


def segments(home: Path) -> list[Path]:
    return sorted((home / "journal").glob("w000-*.jsonl"))


def whole_batches(lines: list[bytes]) -> int:
    """Return how many of these lines belong to batches that are whole."""
    return max((place for place, line in enumerate(lines, 1) if b'"more":0,' in line), default=0)


async def long_enough(home: Path, seed: int) -> bytes:
    """Write until the last segment has the last records that are wanted; returns its bytes."""
    store, _ = open_home(home, segment_bytes=1 << 20)
    for number in range(6):
        await store.append_many(batch_of(seed, Key(1, number)))
    await store.close()
    return segments(home)[-1].read_bytes()


async def test_a_journal_cut_at_any_byte_of_its_last_records_keeps_the_batches_before(
    memory_home: Path, seed: int
) -> None:
    whole = await long_enough(memory_home, seed)
    path = segments(memory_home)[-1]
    lines = whole.splitlines(keepends=True)
    store, _ = open_home(memory_home, read_only=True)
    ids = stored_ids(store)
    assert len(ids) == len(lines) - 1
    start = len(b"".join(lines[:-LAST]))
    for cut in range(start, len(whole)):
        home = memory_home / "cut"
        (home / "journal").mkdir(0o700, parents=True)
        (home / "journal" / path.name).write_bytes(whole[:cut])
        kept = whole_batches(whole[:cut].splitlines(keepends=True)[1 : whole[:cut].count(b"\n")])
        store, _ = open_home(home)
        assert stored_ids(store) == ids[:kept], f"cut at {cut}"
        await store.close()
        end = len(b"".join(lines[: kept + 1]))
        torn = [file.read_bytes() for file in (home / "journal").glob("*.torn-*")]
        assert torn == ([whole[end:cut]] if cut > end else []), f"cut at {cut}"
        shutil.rmtree(home)


def faults_of(home: Path, seed: int) -> tuple[list[Key], StorageError | None]:
    """Read a home without changing it; returns the batches that were given, and what ended the reading."""
    store, evidence = open_home(home, read_only=True)
    reckoning = Reckoning(seed)
    error = None
    try:
        reckoning.take(store.read({}), evidence)
    except StorageError as found:
        error = found
    assert reckoning.faults == []
    return sorted(reckoning.whole), error


def noticed(home: Path, seed: int, path: Path, keys: list[Key]) -> bool:
    """Say whether a flip was noticed: by the reader, or, in the last batch, by whoever opens for writing."""
    before = path.read_bytes()
    given, error = faults_of(home, seed)
    assert path.read_bytes() == before
    # A reader takes damage at the very end for a line that is still being written: it is not given.
    return error is not None or given == keys[:-1]


@pytest.mark.parametrize(
    "flips", [2000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])], ids=["short", "long"]
)
async def test_a_flipped_bit_anywhere_in_a_journal_is_noticed_and_no_reader_changes_it(
    flips: int, memory_home: Path, seed: int
) -> None:
    keys = await written(memory_home, seed)
    chance = random.Random(seed)  # noqa: S311 a repeatable choice
    files = segments(memory_home)
    assert len(files) > 2
    unnoticed: list[str] = []
    for _ in range(flips):
        path = chance.choice(files)
        at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        flip(path, at, bit)
        if not noticed(memory_home, seed, path, keys):
            unnoticed.append(f"{path.name}, byte {at}, bit {bit}")
        flip(path, at, bit)
    assert unnoticed == []
    assert faults_of(memory_home, seed) == (keys, None)


async def test_every_flipped_bit_of_the_last_record_is_noticed_and_costs_nothing_before_it(
    memory_home: Path, seed: int
) -> None:
    keys = await written(memory_home, seed, runs=3)
    path = segments(memory_home)[-1]
    size = path.stat().st_size
    first = size - len(lines_of(path)[-1])
    for place in range(first * 8, size * 8):
        at, bit = divmod(place, 8)
        flip(path, at, bit)
        assert noticed(memory_home, seed, path, keys), f"bit {bit} of byte {at}"
        flip(path, at, bit)
    assert faults_of(memory_home, seed) == (keys, None)


@pytest.mark.parametrize("flips", [100, pytest.param(5000, marks=pytest.mark.slow)], ids=["short", "long"])
async def test_a_flipped_bit_in_evidence_is_noticed_when_it_is_read(flips: int, memory_home: Path, seed: int) -> None:
    await written(memory_home, seed, runs=30)
    blobs = [path for path in (memory_home / "evidence").rglob("*") if path.is_file()]
    chance = random.Random(seed)  # noqa: S311 a repeatable choice
    assert blobs
    for _ in range(flips):
        path = chance.choice(blobs)
        at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        flip(path, at, bit)
        assert type(faults_of(memory_home, seed)[1]).__name__ == "EvidenceTamperedError"
        flip(path, at, bit)


@pytest.mark.parametrize("tries", [60, pytest.param(3000, marks=pytest.mark.slow)], ids=["short", "long"])
@pytest.mark.parametrize("what", ["zeros", "garbage", "a piece of itself"])
async def test_bytes_that_are_overwritten_or_added_are_cut_off_or_named(
    what: str, tries: int, memory_home: Path, seed: int
) -> None:
    keys = await written(memory_home, seed)
    chance = random.Random(seed)  # noqa: S311 a repeatable choice
    files = segments(memory_home)
    for _ in range(tries):
        path = chance.choice(files)
        before = path.read_bytes()
        at, length = chance.randrange(len(before) + 1), chance.randint(8, 3000)
        piece = {
            "zeros": b"\0" * length,
            "garbage": chance.randbytes(length),
            "a piece of itself": before[chance.randrange(len(before)) :][:length],
        }[what]
        path.write_bytes(before[:at] + piece + before[at + len(piece) :])
        changed = path.read_bytes() != before
        await asyncio.to_thread(_open_and_check, memory_home, seed, keys, path, changed=changed)
        for torn in (memory_home / "journal").glob("*.torn-*"):
            torn.unlink()
        path.write_bytes(before)


def _open_and_check(home: Path, seed: int, keys: list[Key], path: Path, *, changed: bool) -> None:
    """Check that a reader gives what is true, and that opening cuts off no more than a tail, and keeps it."""
    damaged = path.read_bytes()
    given, error = faults_of(home, seed)
    assert given == keys[: len(given)]
    assert not changed or error is not None or len(given) < len(keys)
    assert path.read_bytes() == damaged
    last = segments(home)[-1]
    end = last.read_bytes()
    try:
        store, evidence = open_home(home, segment_bytes=1 << 20)
    except (CorruptJournalError, NewerFormatError, UnmigratedDialectError):
        assert path.read_bytes() == damaged
        return
    assert path == last or path.read_bytes() == damaged
    reckoning = Reckoning(seed)
    try:
        reckoning.take(store.read({}), evidence)
        assert sorted(reckoning.whole) == given
    except (CorruptJournalError, UnmigratedDialectError):
        # An older segment is read when it is asked for, not when the journal is opened.
        assert error is not None
    finally:
        asyncio.run(store.close())
    assert reckoning.faults == []
    kept = b"".join(file.read_bytes() for file in (home / "journal").glob("*.torn-*"))
    assert kept == b"" or end.endswith(kept)
    assert path == last or kept == b"", f"{path.name} was damaged and {last.name} was cut"
