"""Writing without waiting: in order, whole, given up when told."""

import errno
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rune.cli.streams import StandardStream, Writer

SECONDS = 20.0
STUCK = 0.05


@contextmanager
def pipe(*, blocking: bool = True) -> Generator[tuple[int, int]]:
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    try:
        yield reading, writing
    finally:
        os.close(writing)
        os.close(reading)


def read(descriptor: int, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += os.read(descriptor, size - len(got))
    return got


@pytest.mark.parametrize("blocking", [True, False])
def test_a_writer_never_waits_and_loses_nothing(*, blocking: bool) -> None:
    pieces = [b"%d " % number for number in range(50_000)]
    whole = b"".join(pieces)
    with pipe(blocking=blocking) as (reading, writing):
        stream = StandardStream(writing, Writer())
        for piece in pieces:  # far more than a pipe holds, and nobody reads
            stream.write(piece)
        assert stream.unwritten > 0
        assert stream.drain(STUCK) is False
        assert read(reading, len(whole)) == whole
        assert stream.drain(SECONDS) is True
        assert stream.unwritten == 0


def test_each_piece_arrives_at_once() -> None:
    with pipe() as (reading, writing):
        stream = StandardStream(writing, Writer())
        for piece in (b"one", b"two", b"three"):
            stream.write(piece)
            assert read(reading, len(piece)) == piece


def test_two_streams_of_one_writer_keep_their_order(tmp_path: Path) -> None:
    file = tmp_path / "both"
    with file.open("ab", buffering=0) as one, file.open("ab", buffering=0) as other:
        writer = Writer()
        out, err = StandardStream(one.fileno(), writer), StandardStream(other.fileno(), writer)
        for number in range(500):
            (out if number % 3 else err).write(b"%d\n" % number)
        assert writer.drain(SECONDS)
    assert file.read_text().split() == [str(number) for number in range(500)]


def test_what_is_given_up_is_not_written_and_the_other_stream_still_is() -> None:
    unread, stuck = os.pipe()
    ended = threading.Event()
    with pipe() as (reading, writing):
        out, err = StandardStream(stuck, Writer()), StandardStream(writing, Writer())
        out.on_lost = ended.set
        out.write(b"x" * 1_000_000)
        assert out.drain(STUCK) is False
        err.write(b"still here")
        out.give_up()
        out.write(b"z")
        assert out.drain() is True
        assert err.drain(SECONDS)
        assert read(reading, 10) == b"still here"
        assert out.unwritten > 0
    os.close(unread)
    assert ended.wait(SECONDS)  # its number may be another file's from now on
    os.close(stuck)


def test_a_slow_reader_is_no_stuck_one() -> None:
    size, patience = 400_000, 1.0
    pause = threading.Event()
    with pipe() as (reading, writing):

        def read_slowly() -> None:
            left = size
            while left:
                pause.wait(0.02)  # in all twice as long as the patience
                left -= len(os.read(reading, min(left, 4096)))

        stream = StandardStream(writing, Writer())
        stream.write(b"x" * size)
        slow = threading.Thread(target=read_slowly, daemon=True)
        slow.start()
        assert stream.drain(patience) is True
        slow.join(SECONDS)
        assert stream.unwritten == 0


def test_a_reader_that_went_away_is_noticed_once_and_what_waits_is_dropped() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    told = threading.Event()
    stream = StandardStream(writing, Writer())
    stream.on_lost = told.set
    stream.write(b"x")
    assert told.wait(SECONDS)
    assert isinstance(stream.lost, BrokenPipeError)
    stream.write(b"y")
    assert stream.drain(SECONDS) is True
    os.close(writing)


def test_a_full_disk_is_noticed() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        stream = StandardStream(full.fileno(), Writer())
        stream.write(b"x")
        assert stream.drain(SECONDS) is True
        assert stream.lost is not None
        assert stream.lost.errno == errno.ENOSPC


def test_a_reader_that_went_away_is_noticed_before_anything_is_written() -> None:
    reading, writing = os.pipe()
    stream = StandardStream(writing, Writer())
    stream.look()
    assert stream.lost is None
    os.close(reading)
    stream.look()
    os.close(writing)
    assert isinstance(stream.lost, BrokenPipeError)
