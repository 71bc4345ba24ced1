"""Two streams: foreign text is made visible on a terminal and untouched elsewhere."""

import io
import os
import pty

from hypothesis import given
from hypothesis import strategies as st

from rune.cli.output import Output
from rune.text.safe_text import safe_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_into_a_pipe_an_answer_goes_as_it_came() -> None:
    out = io.StringIO()
    output = Output(out, io.StringIO())
    output.answer("\x1b[31mred\u202e")
    output.end_answer()
    assert out.getvalue() == "\x1b[31mred\u202e\n"


@given(st.lists(st.text(), max_size=8))
def test_on_a_terminal_any_pieces_show_what_the_whole_would(pieces: list[str]) -> None:
    out = Terminal()
    output = Output(out, io.StringIO())
    for piece in pieces:
        output.answer(piece)
    output.end_answer()
    shown = safe_text("".join(pieces))
    assert out.getvalue().removesuffix("\n") == shown.removesuffix("\n")


def test_an_answer_that_ends_its_last_line_gets_no_second_newline() -> None:
    out = io.StringIO()
    output = Output(out, io.StringIO())
    output.answer("done\n")
    output.end_answer()
    output.end_answer()
    assert out.getvalue() == "done\n"


def test_a_problem_is_said_on_stderr_with_its_hint() -> None:
    out, err = io.StringIO(), Terminal()
    Output(out, err).problem("no \x1b[2J model", "install one")
    assert out.getvalue() == ""
    assert err.getvalue().splitlines() == [r"rune: no \x1b[2J model", "      install one"]


def test_what_utf_8_cannot_hold_is_escaped_and_does_not_fail() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w", encoding="utf-8") as out:
        Output(out, io.StringIO()).line("a\udcffb")
    shown = os.read(leader, 1000)
    os.close(leader)
    assert b"a" in shown
    assert b"b" in shown
