"""What `rune erase` says fits the terminal that it is said on."""

from hypothesis import given
from hypothesis import strategies as st

from rune.cli.erasing import wrapped
from rune.surface.erasure import LIMITS


def test_sentences_are_broken_between_words_at_the_terminals_width() -> None:
    text = "\n".join(("place    files  done", *LIMITS))
    lines = wrapped(text, 60)
    assert lines[0] == "place    files  done"
    assert max(len(line) for line in lines) <= 60
    assert " ".join(lines[1:]) == " ".join(LIMITS)


def test_what_is_indented_stays_so() -> None:
    assert wrapped("  one two three", 9) == ["  one two", "  three"]


@given(st.text())
def test_into_a_file_lines_go_as_they_are(text: str) -> None:
    assert wrapped(text, None) == text.splitlines()
