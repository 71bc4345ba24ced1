import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, LeaseHeldError, StorageUnavailableError
from rune.store.leases import LeaseBook
from tests.fakes.clock import CountedClock
from tests.store.samples import CONVERSATION

ROOT = Path(__file__).parents[2]
OTHER = "cnv_01kb9y3c7m000000000000000z"

HOLDING = """
import sys
from pathlib import Path
from rune.host.clock import SystemClock
from rune.store.leases import LeaseBook
lease = LeaseBook(Path(sys.argv[1]), SystemClock()).take(sys.argv[2])
print("taken", flush=True)
sys.stdin.readline()
lease.release()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def book(tmp_path: Path, pauses: list[float]) -> LeaseBook:
    return LeaseBook(tmp_path / "leases", CountedClock(), pause=pauses.append)


@pytest.fixture
def holding(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "leases"), CONVERSATION]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        yield process
        process.kill()


def test_a_lease_is_taken_once_in_a_process_and_again_after_its_release(book: LeaseBook) -> None:
    with book.take(CONVERSATION) as lease:
        assert lease.conversation_id == CONVERSATION
        with pytest.raises(LeaseHeldError) as caught:
            book.take(CONVERSATION)
        assert caught.value.pid == os.getpid()
        assert caught.value.since == "2026-11-30T14:00:00.000Z"
        book.take(OTHER).release()
    lease.release()
    book.take(CONVERSATION).release()


def test_the_holder_is_named_while_there_is_one(book: LeaseBook) -> None:
    assert book.holder(CONVERSATION) is None
    lease = book.take(CONVERSATION)
    holder = book.holder(CONVERSATION)
    assert holder is not None
    assert (holder.pid, holder.since) == (os.getpid(), "2026-11-30T14:00:00.000Z")
    lease.release()
    assert book.holder(CONVERSATION) is None


def test_another_process_that_holds_it_is_named_at_once(
    book: LeaseBook, holding: "subprocess.Popen[bytes]", pauses: list[float]
) -> None:
    with pytest.raises(LeaseHeldError) as caught:
        book.take(CONVERSATION)
    assert caught.value.pid == holding.pid
    assert pauses == []
    holder = book.holder(CONVERSATION)
    assert holder is not None
    assert holder.pid == holding.pid


def test_a_killed_holder_holds_nothing(book: LeaseBook, holding: "subprocess.Popen[bytes]") -> None:
    holding.send_signal(signal.SIGKILL)
    holding.wait()
    assert book.holder(CONVERSATION) is None
    with book.take(CONVERSATION):
        holder = book.holder(CONVERSATION)
        assert holder is not None
        assert holder.pid == os.getpid()


def test_a_released_lease_is_free_while_its_process_lives(book: LeaseBook, holding: "subprocess.Popen[bytes]") -> None:
    assert holding.stdin is not None
    assert holding.stdout is not None
    holding.stdin.write(b"\n")
    assert holding.stdout.readline() == b"released\n"
    assert book.holder(CONVERSATION) is None
    book.take(CONVERSATION).release()


def test_a_child_process_does_not_inherit_the_lease(book: LeaseBook) -> None:
    lease = book.take(CONVERSATION)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        lease.release()
        book.take(CONVERSATION).release()
        child.communicate(b"\n")


def test_a_taker_who_meets_one_that_only_looks_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "leases" / f"{CONVERSATION}.lock"
    path.parent.mkdir(0o700)
    path.touch(0o600)
    import fcntl

    looking = path.open("rb")
    fcntl.flock(looking, fcntl.LOCK_SH)

    def pause(_: float) -> None:
        looking.close()

    LeaseBook(tmp_path / "leases", CountedClock(), pause=pause).take(CONVERSATION).release()


def test_a_holder_that_cannot_be_seen_from_here_is_reported_after_some_attempts(
    book: LeaseBook, tmp_path: Path, pauses: list[float]
) -> None:
    lease = book.take(CONVERSATION)
    path = tmp_path / "leases" / f"{CONVERSATION}.lock"
    path.write_bytes(path.read_bytes().replace(b'"started":', b'"started":9'))
    with pytest.raises(LeaseHeldError) as caught:
        book.take(CONVERSATION)
    assert caught.value.pid == os.getpid()
    assert 0 < sum(pauses) < 0.5
    path.write_bytes(b"garbage")
    holder = book.holder(CONVERSATION)
    assert holder is not None
    assert holder.pid == 0
    lease.release()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "cnv_x/../y", "tsk_01kb9y3c7m0000000000000001"])
def test_what_is_no_conversation_has_no_lease(book: LeaseBook, name: str) -> None:
    with pytest.raises(ValueError, match="conversation"):
        book.take(name)
    with pytest.raises(ValueError, match="conversation"):
        book.holder(name)


def test_files_are_private_and_links_are_refused(book: LeaseBook, tmp_path: Path) -> None:
    book.take(CONVERSATION).release()
    path = tmp_path / "leases" / f"{CONVERSATION}.lock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailableError):
        book.take(CONVERSATION)
    with pytest.raises(StorageUnavailableError):
        book.holder(CONVERSATION)
    assert not (tmp_path / "elsewhere").exists()


def test_where_nothing_may_be_written_no_lease_is_given_and_holders_are_still_seen(tmp_path: Path) -> None:
    why = CorruptJournalError("odd", file="w000", line=2, byte=3)
    book = LeaseBook(tmp_path / "leases", CountedClock(), refusal=lambda: why)
    with pytest.raises(StorageUnavailableError, match="nothing can be written, only read: w000, line 2"):
        book.take(CONVERSATION)
    assert not (tmp_path / "leases").exists()
    with LeaseBook(tmp_path / "leases", CountedClock()).take(CONVERSATION):
        holder = book.holder(CONVERSATION)
        assert holder is not None
        assert holder.pid == os.getpid()
