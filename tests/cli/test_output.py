"""Two streams: foreign text is made visible on a terminal and untouched elsewhere."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.cli.output import Output, StdoutLostError
from rune.text.safe_text import safe_text
from tests.fakes.streams import KeptStream


def test_into_a_pipe_an_answer_goes_as_it_came() -> None:
    out = KeptStream()
    output = Output(out, KeptStream())
    output.answer("\x1b[31mred\u202e")
    output.end_answer()
    assert out.text == "\x1b[31mred\u202e\n"


@given(st.lists(st.text(), max_size=8))
def test_on_a_terminal_any_pieces_show_what_the_whole_would(pieces: list[str]) -> None:
    out = KeptStream(is_terminal=True)
    output = Output(out, KeptStream())
    for piece in pieces:
        output.answer(piece)
    output.end_answer()
    shown = safe_text("".join(pieces))
    assert out.text.removesuffix("\n") == shown.removesuffix("\n")


def test_an_answer_that_ends_its_last_line_gets_no_second_newline() -> None:
    out = KeptStream()
    output = Output(out, KeptStream())
    output.answer("done\n")
    output.end_answer()
    output.end_answer()
    assert out.text == "done\n"


def test_a_problem_is_said_on_stderr_with_its_hint() -> None:
    out, err = KeptStream(), KeptStream(is_terminal=True)
    Output(out, err).problem("no \x1b[2J model", "install one")
    assert out.text == ""
    assert err.text.splitlines() == [r"rune: no \x1b[2J model", "      install one"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_problem_is_one_line_whatever_it_quotes(*, is_terminal: bool) -> None:
    err = KeptStream(is_terminal=is_terminal)
    Output(KeptStream(), err).problem("it said\r\nrune: all is well\u2028and\nmore")
    assert err.text.count("\n") == 1
    assert len(err.text.splitlines()) == 1


@given(st.text(st.characters()))
def test_what_utf_8_cannot_hold_is_escaped_and_does_not_fail(text: str) -> None:
    for is_terminal in (True, False):
        out = KeptStream(is_terminal=is_terminal)
        Output(out, KeptStream()).line(f"{text} \udcff")  # the space: two halves of a pair would be one character
        assert out.text.endswith(("\\udcff\n", "<U+DCFF>\n"))


@pytest.mark.parametrize(
    ("failure", "says"),
    [(BrokenPipeError(), ""), (OSError(errno.ENOSPC, "No space left on device"), "No space left")],
)
def test_a_stdout_that_takes_nothing_is_said_to_the_next_who_writes(failure: OSError, says: str) -> None:
    out = KeptStream()
    output = Output(out, KeptStream())
    told: list[bool] = []
    with output.when_lost(lambda: told.append(True)):
        out.fail(failure)
    assert told == [True]
    with pytest.raises(StdoutLostError) as lost:
        output.answer("more")
    assert says in lost.value.message
    assert bool(lost.value.message) == bool(says)


def test_a_stderr_that_takes_nothing_is_no_reason_to_stop() -> None:
    out, err = KeptStream(), KeptStream()
    output = Output(out, err)
    err.fail(OSError(errno.ENOSPC, "No space left on device"))
    output.problem("nobody hears this", "or this")
    output.line("yes")
    assert out.text == "yes\n"
