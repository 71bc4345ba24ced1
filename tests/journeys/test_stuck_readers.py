"""Nobody reads what Rune writes: the turn goes on, is stored, and ends when it is told to."""

import errno
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.journeys.shell import SECONDS, Shell

PAGE = 4096
# The pipes of these tests hold one page: it is full after the twentieth piece.
WIDE = " ".join(["w" * 200] * 400)
SLOW = {"text": WIDE, "delay_ms": 20}
GRACE = 4.0  # promised are about two seconds; the rest is for a machine that does other things


@contextmanager
def small_pipe() -> Generator[tuple[int, int]]:
    """Give a pipe that holds one page, closed in the end on both sides."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PAGE)
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            try:
                os.close(descriptor)
            except OSError as error:
                assert error.errno == errno.EBADF  # the test has closed it already


def start(shell: Shell, *arguments: str, stdout: int, stderr: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        shell.command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=shell.folder,
        env=shell.environ,
    )


def until_full(reading: int) -> None:
    """Wait until the pipe holds something and, for a while, no more: its writer waits."""
    deadline = time.monotonic() + SECONDS
    held, since = 0, time.monotonic()
    while not held or time.monotonic() < since + 0.5:
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.01)
        now = struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, bytes(4)))[0]
        if now != held:
            held, since = now, time.monotonic()


def until_finished(shell: Shell) -> None:
    deadline = time.monotonic() + SECONDS
    while not shell.events("turn.finished"):
        assert time.monotonic() < deadline, "the turn never finished"


def last_message(shell: Shell) -> Any:
    conversation = shell.events("conversation.created")[0]["body"]["id"]
    return shell.run("sessions", "show", conversation, "--json").json()[-1]


def code_within(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail(f"it still ran after {seconds} s")


def said(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    with process.stderr:
        return process.stderr.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_turn_whose_reader_does_not_read(shell: Shell, number: signal.Signals) -> None:
    shell.script(SLOW)
    with small_pipe() as (reading, writing):
        running = start(shell, "-p", "hello", stdout=writing)
        until_full(reading)
        running.send_signal(number)
        assert code_within(running, GRACE) == 130
        err = said(running)
    assert "Traceback" not in err
    assert "interrupted" in err
    assert "was not written" in err
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "cancelled"
    answer = last_message(shell)
    assert answer["complete"] is False
    assert answer["content"].startswith("w" * 200)


def test_an_answer_is_stored_while_nobody_reads_it_and_one_signal_then_ends_all(shell: Shell) -> None:
    shell.script({"text": WIDE})
    with small_pipe() as (reading, writing):
        running = start(shell, "-p", "hello", stdout=writing)
        until_full(reading)
        until_finished(shell)
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        assert code_within(running, GRACE) == 130
        said(running)
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "answered"
    assert last_message(shell)["content"] == WIDE


def test_a_second_signal_gives_up_what_the_first_waits_for(shell: Shell) -> None:
    shell.script(SLOW)
    with small_pipe() as (reading, writing):
        running = start(shell, "-p", "hello", "--output-format", "stream-json", stdout=writing)
        until_full(reading)
        running.send_signal(signal.SIGTERM)
        running.send_signal(signal.SIGINT)
        assert code_within(running, GRACE) == 130
        assert "Traceback" not in said(running)
    assert shell.events("turn.finished")[0]["body"]["stop_reason"] == "cancelled"


def test_a_reader_that_comes_late_gets_every_byte_in_order(shell: Shell) -> None:
    answer = " ".join(str(number) for number in range(5000))
    shell.script({"text": answer})
    with small_pipe() as (reading, writing):
        running = start(shell, "-p", "hello", stdout=writing)
        os.close(writing)
        until_finished(shell)
        with os.fdopen(os.dup(reading), "rb") as late:
            assert late.read().decode() == answer + "\n"
        assert code_within(running, GRACE) == 0
        assert said(running) == ""


def test_where_both_streams_are_one_what_is_said_comes_where_it_belongs(shell: Shell) -> None:
    answer = " ".join(str(number) for number in range(5000))
    shell.script({"text": answer, "error": "stream_broken"})
    with small_pipe() as (reading, writing):
        running = start(shell, "-c", "-p", "hello", stdout=writing, stderr=writing)
        os.close(writing)
        until_full(reading)
        until_finished(shell)
        with os.fdopen(os.dup(reading), "rb") as late:
            shown = late.read().decode().splitlines()
        assert code_within(running, GRACE) == 1
    assert "nothing to continue" in shown[0]
    assert shown[1] == answer
    assert "is kept" in shown[2]


def test_a_pipe_that_does_not_block_gets_every_byte(shell: Shell) -> None:
    answer = " ".join(str(number) for number in range(5000))
    shell.script({"text": answer})
    with small_pipe() as (reading, writing):
        os.set_blocking(writing, False)
        running = start(shell, "-p", "hello", stdout=writing)
        os.close(writing)
        until_finished(shell)
        with os.fdopen(os.dup(reading), "rb") as late:
            assert late.read().decode() == answer + "\n"
        assert code_within(running, GRACE) == 0
        assert said(running) == ""


def test_an_interrupted_answer_still_reaches_a_reader_that_reads(shell: Shell) -> None:
    shell.script(SLOW)
    with small_pipe() as (reading, writing):
        running = start(shell, "-p", "hello", stdout=writing)
        os.close(writing)
        until_full(reading)
        running.send_signal(signal.SIGINT)
        with os.fdopen(os.dup(reading), "rb") as late:
            shown = late.read().decode()
        assert code_within(running, GRACE) == 130
        assert "was not written" not in said(running)
    assert shown.removesuffix("\n") == last_message(shell)["content"].removesuffix("\n")


def test_a_stuck_stderr_does_not_keep_the_answer_back(shell: Shell) -> None:
    shell.script({"text": "yes"})
    with small_pipe() as (_, stuck), small_pipe() as (reading, writing):
        os.set_blocking(stuck, False)
        os.write(stuck, b"x" * PAGE)
        os.set_blocking(stuck, True)
        running = start(shell, "-c", "-p", "hello", stdout=writing, stderr=stuck)
        os.close(writing)
        with os.fdopen(os.dup(reading), "rb") as answer:
            assert answer.readline() == b"yes\n"
        running.send_signal(signal.SIGINT)
        assert code_within(running, GRACE) in {0, 130}  # all was done: whether it counts depends on the moment


def test_a_listing_ends_when_its_reader_goes_away(shell: Shell) -> None:
    shell.script({"text": "yes"})
    for _ in range(3):
        shell.run("-p", "hello")
    with small_pipe() as (reading, writing):
        running = start(shell, "events", "--json", stdout=writing)
        os.close(writing)
        until_full(reading)
        os.close(reading)
        assert code_within(running, SECONDS) == 1
        assert said(running) == ""
