import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from tests.fakes.ids import CountedIds
from tests.store.journals import open_now, opened, stored_ids

ROOT = Path(__file__).parents[2]


def appending(home: Path, count: int, *more: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.store.appending_process", str(home), str(count), "200", *more]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def killed(home: Path, times: int) -> list[bytes]:
    """Let a process append and kill it at a random moment, that many times; returns what was acknowledged."""
    chance = random.Random(20261130)  # noqa: S311 a repeatable choice of moments
    command = [sys.executable, "-m", "tests.store.appending_process", str(home), "10000", "200", "children"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as breeder:
        assert breeder.stdin is not None
        assert breeder.stdout is not None
        acknowledged: list[bytes] = []
        for _ in range(times):
            breeder.stdin.write(b"\n")
            child = int(breeder.stdout.readline().removeprefix(b"pid "))
            assert breeder.stdout.readline() == b"ready\n"
            said = [breeder.stdout.readline() for _ in range(chance.randrange(60))]
            os.kill(child, signal.SIGKILL)
            said += iter(breeder.stdout.readline, b"dead\n")
            acknowledged += said
        breeder.stdin.close()
    return acknowledged


async def test_no_acknowledged_event_is_lost_or_doubled_when_its_process_is_killed(tmp_path: Path) -> None:
    acknowledged = await asyncio.to_thread(killed, tmp_path, 20)
    ids = CountedIds()
    async with opened(tmp_path, ids=ids) as store:
        stored = stored_ids(store)
        assert store.writer == "w000"
    assert len(stored) == len(set(stored))
    assert {line.decode().strip() for line in acknowledged} <= set(stored)
    assert list((tmp_path / "journal").glob("w001*")) == []


async def test_two_processes_on_one_home_do_not_wait_for_each_other_and_lose_nothing(tmp_path: Path) -> None:
    processes = [appending(tmp_path, 400, "wait") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
    acked: list[str] = []
    for process in processes:
        out, _ = process.communicate()
        assert process.returncode == 0
        acked += out.decode().split()
    async with opened(tmp_path, read_only=True) as store:
        assert sorted(stored_ids(store)) == sorted(acked)
        assert set(store.head()) == {"w000", "w001"}


async def test_a_reader_beside_a_writing_process_sees_a_growing_whole(tmp_path: Path) -> None:
    process = appending(tmp_path, 600)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    seen: list[str] = []
    async with opened(tmp_path, read_only=True) as store:
        cursor = dict(store.head())
        first = stored_ids(store)[: sum(offset.seq for offset in cursor.values())]
        while process.poll() is None or cursor != store.head():
            for offset, envelope in store.read(cursor):
                cursor[offset.writer] = offset
                seen.append(envelope.event_id)
            os.set_blocking(process.stdout.fileno(), False)
            process.stdout.read()  # its acknowledgements must not fill the pipe
        assert first + seen == stored_ids(store)
    process.communicate()


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from rune.errors import StorageUnavailableError
from tests.fakes.ids import CountedIds
from tests.store.journals import opened, stored_ids
from tests.store.samples import said

async def main(home):
    ids = CountedIds()
    async with opened(home, ids=ids) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        kept, refused = [], 0
        for _ in range(10):
            event = said(ids, "r" * 5000)
            try:
                await store.append(event)
                kept.append(event.event_id)
            except StorageUnavailableError as error:
                assert error.hint, error
                refused += 1
        assert (len(kept), refused) == (3, 7), (kept, refused)
        small = said(ids, "small")
        await store.append(small)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        more = said(ids, "r" * 5000)
        await store.append(more)
        assert stored_ids(store) == [*kept, small.event_id, more.event_id]

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_an_append_that_does_not_fit_is_taken_back_and_later_ones_work(tmp_path: Path) -> None:
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", LIMITED, str(tmp_path)], cwd=ROOT, check=True)
    async with opened(tmp_path) as store:
        assert len(stored_ids(store)) == 5
    assert not list((tmp_path / "journal").glob("*.torn-*"))


MOUNTED = """
import asyncio, subprocess, sys
from pathlib import Path
from rune.errors import StorageUnavailableError
from tests.fakes.ids import CountedIds
from tests.store.journals import open_now, opened, stored_ids
from tests.store.samples import said

async def main(disk):
    ids = CountedIds()
    async with opened(disk / "home", ids=ids) as store:
        kept = []
        try:
            while True:
                batch = [said(ids, "r" * 3000) for _ in range(3)]
                await store.append_many(batch)
                kept += [event.event_id for event in batch]
        except StorageUnavailableError as error:
            assert "full" in error.hint, error.hint
        assert kept and stored_ids(store) == kept
        try:
            await store.append(said(ids, "r" * 20_000))
            raise AssertionError("evidence fitted")
        except StorageUnavailableError:
            pass
        (disk / "ballast").unlink()
        again = said(ids, "there is room again")
        await store.append(again)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        open_now(disk / "home")
        raise AssertionError("opened for writing on a read-only disk")
    except StorageUnavailableError as error:
        assert "read-only" in error.hint, error.hint
    async with opened(disk / "home", read_only=True) as store:
        assert stored_ids(store) == [*kept, again.event_id]
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    async with opened(disk / "home") as store:
        assert stored_ids(store) == [*kept, again.event_id]

asyncio.run(main(Path(sys.argv[1])))
"""


def can_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs root to mount a small file system")
def test_a_full_and_then_a_read_only_disk_refuse_and_lose_nothing(tmp_path: Path) -> None:
    # In a mount namespace of its own: nothing is left mounted, whatever happens.
    script = 'mount -t tmpfs -o size=128k none "$1" && head -c 32768 /dev/zero > "$1/ballast" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable, MOUNTED]
    subprocess.run(command, cwd=ROOT, check=True)


def test_a_folder_that_may_not_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir(0o500)
    if os.access(tmp_path / "journal", os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(StorageUnavailableError) as caught:
        open_now(tmp_path)
    assert "RUNE_HOME" in caught.value.hint
