"""The prompt on a real terminal: what its driver makes of bytes, and which bytes come out."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 30
HOSTILE = "a\x1b]52;c;RVZJTA==\x07\x1b[2J\x9b31m\u202e\u2066\U000e0041\U000f0000\u200bend"
PROGRAM = """
import sys
from tests.tui.prompt_app import PromptApp
from rune.tui.widgets.prompt import Prompt

class Noting(PromptApp):
    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        with open(sys.argv[1], "a") as file:
            print(repr((event.text, event.command)), file=file)
        if event.text == "leave":
            self.exit()
        if event.text == "/hostile":
            self.prompt.set_text(sys.argv[2])

Noting().run()
"""


class Terminal:
    """An app behind a pseudo-terminal of 80 columns and 24 rows, and the screen that it draws."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environ = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT / "src"), "LANG": "C.UTF-8"}
        command = [sys.executable, "-c", PROGRAM, str(notes), HOSTILE]
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environ)
        os.close(slave)
        self.out = bytearray()
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)

    def type(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.master, data) :]

    def until(self, met: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not met():
            assert time.monotonic() < end, "\n".join(self.rows())
            if select.select([self.master], [], [], 0.05)[0]:
                data = os.read(self.master, 65536)
                self.out += data
                self._stream.feed(data)

    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.screen.display]

    def sent(self) -> list[tuple[str, bool]]:
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [eval(line) for line in lines]  # noqa: S307 - written by the program above

    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.x, self.screen.cursor.y

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path / "sent")
    try:
        terminal.until(lambda: terminal.rows()[-1].startswith("> message"))
        yield terminal
    finally:
        terminal.close()


def test_one_write_of_a_line_and_enter_sends_it(terminal: Terminal) -> None:
    terminal.type(b"/help\r")
    terminal.until(lambda: len(terminal.sent()) == 1)
    terminal.type("was heißt das hier?\r".encode())
    terminal.until(lambda: len(terminal.sent()) == 2)
    assert terminal.sent() == [("/help", True), ("was heißt das hier?", False)]


def test_keys_of_one_write_act_in_their_order(terminal: Terminal) -> None:
    terminal.type(b"hello\x7f\x7fXY\x1b[D\x1b[Da")
    terminal.until(lambda: terminal.rows()[-1] == "> helaXY")
    terminal.type(b"\x05\x15/help\r")
    terminal.until(lambda: len(terminal.sent()) == 1)
    assert terminal.sent() == [("/help", True)]


def test_lines_that_come_as_keys_send_nothing_until_enter_is_pressed(terminal: Terminal) -> None:
    terminal.type(b"first line\rsecond line\r" + b"and more\r" * 600)
    terminal.until(lambda: "[Pasted 602 lines]" in terminal.rows()[-1])
    assert terminal.sent() == []
    terminal.type(b"\r")
    terminal.until(lambda: len(terminal.sent()) == 1)
    assert terminal.sent() == [("first line\nsecond line\n" + "and more\n" * 600, False)]


def test_thousands_of_lines_that_come_as_keys_are_one_block(terminal: Terminal) -> None:
    lines = [f"line {number}" for number in range(3_000)]
    data = "".join(f"{line}\r" for line in lines).encode()
    began = time.monotonic()
    writing = threading.Thread(target=terminal.type, args=(data,))
    writing.start()
    terminal.until(lambda: terminal.rows()[-1] == "> [Pasted 3,000 lines]")
    writing.join()
    assert time.monotonic() - began < 15  # a second or two where nothing else runs
    assert terminal.sent() == []
    terminal.type(b"\r")
    terminal.until(lambda: len(terminal.sent()) == 1)
    assert terminal.sent() == [("\n".join([*lines, ""]), False)]


def test_a_paste_that_comes_haltingly_is_one_block_and_none_of_it_is_sent(terminal: Terminal) -> None:
    terminal.type(b"a line\r" * 20)
    terminal.until(lambda: terminal.rows()[-1] == "> [Pasted 20 lines]")
    terminal.type(b"the last one\r")
    terminal.until(lambda: terminal.rows()[-1] == "> [Pasted 21 lines]")
    assert terminal.sent() == []
    terminal.type(b"\r")
    terminal.until(lambda: len(terminal.sent()) == 1)
    assert terminal.sent() == [("a line\n" * 20 + "the last one\n", False)]


def test_alt_enter_begins_a_line_where_it_is_escape_and_enter(terminal: Terminal) -> None:
    terminal.type(b"a")
    terminal.until(lambda: terminal.rows()[-1] == "> a")
    terminal.type(b"\x1b\r")
    terminal.until(lambda: terminal.rows()[-2] == "> a")
    terminal.type(b"b")
    terminal.until(lambda: terminal.rows()[-2:] == ["> a", "  b"])
    assert terminal.sent() == []


def test_the_terminals_cursor_is_where_one_types(terminal: Terminal) -> None:
    terminal.type("ab你".encode())
    terminal.until(lambda: terminal.cursor() == (6, 23))
    terminal.type(b"\n")
    terminal.until(lambda: terminal.rows()[-2].startswith("> ab"))
    terminal.until(lambda: terminal.cursor() == (2, 23))
    terminal.type(b"c\x1b[A")
    terminal.until(lambda: terminal.cursor() == (3, 22))


def test_the_terminals_cursor_stays_in_a_text_that_is_higher_than_the_prompt(terminal: Terminal) -> None:
    for count in range(1, 12):
        terminal.type(b"%d\n" % count)
        terminal.until(lambda count=count: terminal.rows()[max(16, 23 - count) : 23][-1][2:] == str(count))
        terminal.until(lambda: terminal.cursor() == (2, 23))
        terminal.type(b"\x1b[F")  # a program that types eleven lines in no time pastes; a key in between ends that
    terminal.type(b"\x1b[A" * 9)
    terminal.until(lambda: terminal.cursor()[1] < 23)
    assert terminal.rows()[terminal.cursor()[1]][2:] == "3"


def test_nothing_of_a_text_is_acted_on(terminal: Terminal) -> None:
    # A terminal takes ESC out of what it pastes, so that one comes in another way: the program's /hostile sets it.
    terminal.type(b"/hostile\r")
    name = "\\x1b]52;c;RVZJTA==\\x07\\x1b[2J\\x9b31m<U+202E>"
    terminal.until(lambda: name in "".join(terminal.rows()))
    terminal.type(b"\x1b[200~" + HOSTILE.replace("\x1b", "").encode() + b"\x1b[201~")
    terminal.until(lambda: "".join(terminal.rows()).count("31m<U+202E>") == 2)
    out = re.sub(rb"\x1b\]22;\w*\x07", b"", terminal.out)  # Textual sets the shape of the mouse pointer
    for raw in ("\x1b]52", "\x07", "\x9b", "\u202e", "\u2066", "\U000e0041", "\U000f0000", "\u200b"):
        assert raw.encode() not in out
    assert b"\x1b[2J" not in out.partition(b"hostile")[2]
    assert not [char for char in out.decode(errors="replace") if ord(char) >= 0xF0000]
    terminal.type(b"\r")
    terminal.until(lambda: len(terminal.sent()) == 2)
    assert terminal.sent()[1] == (HOSTILE + HOSTILE.replace("\x1b", ""), False)


def test_ctrl_z_undoes_and_does_not_suspend(terminal: Terminal) -> None:
    terminal.type(b"ab")
    terminal.until(lambda: terminal.rows()[-1] == "> ab")
    terminal.type(b"\x1a")
    terminal.until(lambda: terminal.rows()[-1].startswith("> message"))
    terminal.type(b"leave\r")
    assert terminal.process.wait(SECONDS) == 0
