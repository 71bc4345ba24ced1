"""How far a rebuild is: a bar on a terminal, a line now and then elsewhere, and nothing left of it in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.cli.output import Output
from rune.cli.rebuild_progress import RebuildProgress, bar_line, is_plain, opening_line
from rune.store.view_pass import Pass
from tests.fakes.streams import KeptStream

UTF8 = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows after this."""
    lines = [""]
    column = 0
    for character in text:
        if character == "\n":
            lines.append("")
            column = 0
        elif character == "\r":
            column = 0
        else:
            lines[-1] = lines[-1][:column] + character + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def test_a_bar_says_how_far_it_is() -> None:
    shown = bar_line(Pass(52_000, 120_000), 76, before="rune: ")
    assert shown == "rune: reading the journal anew  ▕████░░░░░░▏ 43 %   52,000 of 120,000 events"
    assert bar_line(Pass(5, 10), 60, plain=True) == "reading the journal anew  [#####.....] 50 %   5 of 10 events"


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 300), st.booleans())
def test_a_bar_fits_and_is_as_long_at_its_end_as_at_its_beginning(
    applied: int, total: int, columns: int, plain: bool
) -> None:
    lines = [bar_line(Pass(min(each, total), total), columns, plain=plain) for each in (0, applied, total)]
    assert all(len(line) <= columns for line in lines)
    assert all(line.isascii() for line in lines) or not plain
    if columns > 70:
        assert len({len(line) for line in lines}) == 1


def test_on_a_terminal_the_line_is_rewritten_and_wiped() -> None:
    err = KeptStream(is_terminal=True)
    output = Output(KeptStream(), err)
    progress = RebuildProgress(output, UTF8)
    for applied in (500, 60_000):
        progress(Pass(applied, 120_000))
        (line,) = screen(err.text)
        assert f"{applied:,} of 120,000 events" in line
    progress(Pass(120_000, 120_000))
    assert screen(err.text) == [""]
    progress(Pass(60_500, 120_000))
    output.problem("interrupted")
    assert screen(err.text) == ["rune: interrupted", ""]
    progress(Pass(61_000, 120_000))
    progress.end()
    progress.end()
    assert screen(err.text) == ["rune: interrupted", ""]


def test_an_answer_does_not_run_into_the_bar() -> None:
    both = KeptStream(is_terminal=True)
    output = Output(both, both)
    RebuildProgress(output, UTF8)(Pass(500, 120_000))
    output.line("Rhine")
    assert screen(both.text) == ["Rhine", ""]


def test_what_is_over_in_no_time_shows_no_bar() -> None:
    err = KeptStream(is_terminal=True)
    RebuildProgress(Output(KeptStream(), err), UTF8)(Pass(500, 1_200))
    assert err.text == ""
    assert opening_line(Pass(500, 1_200)) == ""
    assert opening_line(Pass(500, 50_000)).endswith("500 of 50,000 events")
    assert opening_line(Pass(50_000, 50_000)) == ""


def test_into_a_file_goes_a_line_every_ten_thousand_events() -> None:
    err = KeptStream()
    progress = RebuildProgress(Output(KeptStream(), err), UTF8)
    for applied in range(500, 25_001, 500):
        progress(Pass(applied, 25_000))
    progress.end()
    assert err.text.splitlines() == [
        "rune: reading the journal anew, 10,000 of 25,000 events ...",
        "rune: reading the journal anew, 20,000 of 25,000 events ...",
    ]


@pytest.mark.parametrize(
    ("environ", "plain"),
    [
        (UTF8, False),
        ({"TERM": "dumb", "LANG": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8"}, True),
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "LANG": "de_DE.utf8", "LC_ALL": "C"}, True),
        ({"TERM": "xterm", "LANG": "C", "LC_CTYPE": "en_GB.UTF-8"}, False),
    ],
    ids=["usual", "dumb", "no terminal", "no locale", "all C", "characters only"],
)
def test_a_dumb_terminal_and_another_locale_get_ascii(environ: dict[str, str], plain: bool) -> None:
    assert is_plain(environ) is plain
