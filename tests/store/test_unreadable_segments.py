"""Segments that cannot be read as files: bad sectors, folders, links and FIFOs. All else is read, and nothing waits."""

import asyncio
import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, RuneError
from rune.host.files import open_regular
from rune.host.small_files import read_bounded
from rune.records.events import Event
from rune.store.erasing.eraser import NOTE, unfinished
from rune.store.erasures import ErasureIndex
from rune.store.evidence_store import EvidenceStore
from rune.store.gaps import open_past_gaps
from rune.store.holders import read_note
from rune.store.mending.journal_inspection import inspect_journal
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, lines_of, open_now, opened, segment, stored_ids
from tests.store.mending.damaged import damage_of, evidence_of, files, mend
from tests.store.samples import ended, said

OTHER = "w001-000001.jsonl"
PAGE = 4096


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def two_slots(home: Path, ids: CountedIds, in_other: int = 3) -> tuple[list[Event], list[Event]]:
    """Fill two slots; returns the events of each."""
    first, other = [ended(ids) for _ in range(4)], [said(ids, "x" * 500, pseq=n + 1) for n in range(in_other)]
    async with opened(home) as one, opened(home) as two:
        assert (one.writer, two.writer) == ("w000", "w001")
        for event in first:
            await one.append(event)
        for event in other:
            await two.append(event)
    return first, other


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


STRANGE: dict[str, Callable[[Path], None]] = {"folder": a_folder, "link": a_link, "fifo": a_fifo}


@pytest.fixture
def bad_sector(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], None]:
    """Make a page of a file one that the disk cannot read, for this process."""
    real = os.pread

    def spoil(path: Path, page: int) -> None:
        found = path.stat()

        def pread(descriptor: int, length: int, place: int) -> bytes:
            here = os.fstat(descriptor)
            touches = place < (page + 1) * PAGE and place + length > page * PAGE
            if (here.st_dev, here.st_ino) == (found.st_dev, found.st_ino) and touches:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(descriptor, length, place)

        monkeypatch.setattr(os, "pread", pread)

    return spoil


def read_all(home: Path) -> tuple[list[str], CorruptJournalError]:
    """Return the ids that are given, and the damage that is told at the end."""
    given: list[str] = []
    with pytest.raises(CorruptJournalError) as caught:
        for _, envelope in open_now(home, read_only=True).read({}):
            given.append(envelope.event_id)
    return given, caught.value


@pytest.mark.parametrize("kind", STRANGE)
async def test_what_is_no_file_is_damage_of_its_slot_and_all_other_slots_are_read(
    kind: str, tmp_path: Path, ids: CountedIds
) -> None:
    first, _ = await two_slots(tmp_path, ids)
    STRANGE[kind](segment(tmp_path, OTHER))
    given, told = read_all(tmp_path)
    assert given == event_ids(first)
    assert (Path(told.file).name, told.line, told.byte) == (OTHER, 1, 0)
    assert "its place" in told.reason
    with pytest.raises(CorruptJournalError):
        open_now(tmp_path)
    (damage,) = damage_of(tmp_path)
    assert (damage.segment, damage.keep, damage.intact_behind, damage.refusal) == (OTHER, 0, 0, None)
    assert [each.file for each in inspect_journal(tmp_path / "journal", evidence_of(tmp_path)).damage] == [OTHER]


def names_in(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "journal").iterdir())


def locks_and_link(kind: str) -> list[str]:
    return ["w000.lock", "w001.lock", *(["elsewhere"] if kind == "link" else [])]


@pytest.mark.parametrize("kind", STRANGE)
async def test_what_is_no_file_is_moved_aside_as_it_is_and_the_slot_begins_anew(
    kind: str, tmp_path: Path, ids: CountedIds
) -> None:
    first, _ = await two_slots(tmp_path, ids)
    path = segment(tmp_path, OTHER)
    STRANGE[kind](path)
    was = stat.S_IFMT(path.lstat().st_mode)
    (done,) = await mend(tmp_path, ids)
    assert (done.segment, done.written, done.lost, done.bytes, done.unreadable) == (OTHER, 0, 0, 0, True)
    assert done.reason.endswith("what cannot be read is not counted, the file was kept whole")
    assert stat.S_IFMT(segment(tmp_path, done.kept_as).lstat().st_mode) == was
    assert set(names_in(tmp_path)) == {FIRST, done.kept_as, *locks_and_link(kind)}
    assert damage_of(tmp_path) == ()
    async with opened(tmp_path) as one, opened(tmp_path) as two:
        assert two.writer == "w001"
        await two.append(ended(ids))
        assert stored_ids(one)[:4] == event_ids(first)
    state = inspect_journal(tmp_path / "journal", evidence_of(tmp_path))
    assert [each.name for each in state.kept] == [done.kept_as]


async def test_before_and_behind_a_bad_sector_all_is_read_that_can_be(
    tmp_path: Path, ids: CountedIds, bad_sector: Callable[[Path, int], None]
) -> None:
    first, other = await two_slots(tmp_path, ids, 30)
    path = segment(tmp_path, OTHER)
    ends = [len(b"".join(lines_of(path)[:count])) for count in range(1, 32)]
    before = sum(end <= 2 * PAGE for end in ends[1:])
    behind = sum(start >= 3 * PAGE for start in ends[:-1])
    assert before
    assert behind
    content = path.read_bytes()
    bad_sector(path, 2)

    given, told = read_all(tmp_path)
    assert sorted(given) == sorted(event_ids(first + other[:before]))
    assert (told.byte, told.line) == (ends[before], before + 2)
    assert "Input/output error" in told.reason
    (damage,) = damage_of(tmp_path)
    assert (damage.byte, damage.keep, damage.intact_behind) == (ends[before], ends[before], behind)

    (done,) = await mend(tmp_path, ids)
    assert (done.written, done.bytes, done.unreadable) == (behind, len(content) - ends[before], True)
    assert damage_of(tmp_path) == ()
    assert path.read_bytes() == content[: ends[before]]
    # The file itself, whole: somebody may get more out of that sector than the system does.
    assert segment(tmp_path, done.kept_as).read_bytes() == content
    assert not [name for name in files(tmp_path) if name.startswith(".")]
    kept = sorted(event_ids(first + other[:before] + other[-behind:]))
    assert sorted(stored_ids(open_now(tmp_path, read_only=True))) == kept
    assert await mend(tmp_path, ids) == ()


async def test_a_segment_whose_header_cannot_be_read_is_set_aside_whole(
    tmp_path: Path, ids: CountedIds, bad_sector: Callable[[Path, int], None]
) -> None:
    await two_slots(tmp_path, ids, 30)
    path = segment(tmp_path, OTHER)
    content = path.read_bytes()
    bad_sector(path, 0)
    (done,) = await mend(tmp_path, ids)
    assert done.written > 20
    assert done.unreadable
    assert segment(tmp_path, done.kept_as).read_bytes() == content
    assert not path.exists()
    assert damage_of(tmp_path) == ()


async def test_mending_an_unreadable_segment_can_be_repeated_after_each_step(
    tmp_path: Path, ids: CountedIds, bad_sector: Callable[[Path, int], None]
) -> None:
    first, other = await two_slots(tmp_path, ids, 30)
    bad_sector(segment(tmp_path, OTHER), 2)
    for last in (f"copied {OTHER}", f"kept {OTHER}", f"wrote {OTHER}"):
        with pytest.raises(CutOffError):
            await mend(tmp_path, ids, step=interrupted_at(last))
    (done,) = await mend(tmp_path, ids)
    stored = open_now(tmp_path, read_only=True)
    assert sum(each.event_type == "journal.repaired" for _, each in stored.replay()) == 1
    before = len(lines_of(segment(tmp_path, OTHER))) - 1
    kept = sorted(event_ids(first + other[:before] + other[-done.written :]))
    assert sorted(stored_ids(stored)) == kept
    assert len(list((tmp_path / "journal").glob("*.quarantined-*"))) == 1


class CutOffError(Exception):
    """Ends mending in its midst."""


def interrupted_at(last: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == last:
            raise CutOffError(last)

    return step


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
async def test_the_kernels_own_input_output_error_is_damage_at_its_byte(tmp_path: Path, ids: CountedIds) -> None:
    first, _ = await two_slots(tmp_path, ids)
    path = segment(tmp_path, OTHER)
    traced = ["strace", "-qq", "-o", "/dev/null", "-P", str(path), "-e", "trace=pread64"]
    inject = ["-e", "inject=pread64:error=EIO:when=2+"]  # the first reads the header
    program = [sys.executable, "-m", "tests.store.reading_process", str(tmp_path)]
    done = await asyncio.to_thread(output_of, [*traced, *inject, *program])
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("no process may trace another here")
    *given, told = done.stdout.splitlines()
    assert given == event_ids(first)
    assert told.startswith(f"CorruptJournalError {path}, line ")
    assert f", byte {len(lines_of(path)[0])}: the disk cannot read it" in told


def output_of(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def test_a_fifo_is_never_waited_for(tmp_path: Path) -> None:
    clock = CountedClock()
    evidence = EvidenceStore(tmp_path / "evidence", clock)
    ref = evidence.put(b"blob", source="test")
    blob = next((tmp_path / "evidence").glob("??/*"))
    blob.unlink()
    journal = tmp_path / "journal"
    journal.mkdir(mode=0o700)
    for path in (blob, journal / NOTE, journal / "w000.lock", journal / FIRST):
        os.mkfifo(path)
    with pytest.raises(RuneError, match="not a"):
        evidence.get(ref.hash)
    assert unfinished(journal, evidence) == ("unknown",)
    assert not ErasureIndex(journal, evidence).names("evt_a", "evt_b")
    fifo = journal / "w000.lock"
    for read in (partial(open_regular, fifo), partial(read_note, fifo), partial(read_bounded, fifo, 9)):
        with pytest.raises(OSError, match="not a regular file"):
            read()


def test_only_a_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    descriptor = open_regular(tmp_path / "file")
    assert os.read(descriptor, 9) == b"text"
    os.close(descriptor)
    for name, number in ((".", errno.EISDIR), ("link", errno.ELOOP), ("none", errno.ENOENT)):
        with pytest.raises(OSError, match=name) as caught:
            open_regular(tmp_path / name)
        assert caught.value.errno == number


def test_a_gap_reads_as_one_line_feed_a_page(tmp_path: Path, bad_sector: Callable[[Path, int], None]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * PAGE + b"b" * PAGE + b"c" * 10)
    gaps: list[None] = []
    bad_sector(path, 1)
    with open_past_gaps(path, 4000, lambda: gaps.append(None)) as file:
        assert file.read() == b"a" * 96 + b"\n" + b"c" * 10
    assert len(gaps) == 1
    bad_sector(path, 2)
    with open_past_gaps(path, 3 * PAGE) as file:
        assert file.read() == b""
