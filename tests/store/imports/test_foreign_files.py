import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import UsageError
from rune.store.imports.arrivals import EVIDENCE_LIMIT
from rune.store.imports.foreign_files import chunks, lines, opened


@given(st.lists(st.binary(max_size=6).map(lambda part: part.replace(b"x", b"\n")), max_size=8))
def test_lines_are_the_same_however_a_file_is_read(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    found = [(line.number, line.data) for line in lines(iter(pieces))]
    assert found == list(enumerate(expected if expected[-1] else expected[:-1], 1))


def test_a_line_that_is_too_long_is_counted_and_not_kept() -> None:
    mega = b"a" * (1 << 20)
    found = list(lines(iter([b"first\n", *[mega] * 9, b"\nlast"])))
    assert [(line.number, len(line.data), line.too_long) for line in found] == [
        (1, 5, False),
        (2, 0, True),
        (3, 4, False),
    ]
    assert found[1].length == 9 << 20 > EVIDENCE_LIMIT


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"\xef\xbb\xbf{}\n")
    with opened(path) as descriptor:
        assert [line.data for line in lines(chunks(descriptor, path))] == [b"{}"]


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("pipe", "folder", "socket", "missing", "nul\0"):
            with pytest.raises(UsageError), opened(tmp_path / name):
                pass
    with pytest.raises(UsageError, match="is a device"), opened(Path("/dev/null")):
        pass
