"""A snippet shows where the first match stands, on one line, and marks what matches in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.text.folding import alike, places
from rune.text.snippets import SNIPPET_CHARACTERS, Phrase, pattern_of, snippet


def marked(text: str, *phrases: str, begun: bool = False) -> str:
    """Return the snippet with brackets round its marks."""
    shown = snippet(text, pattern_of([Phrase(phrase, begun=begun) for phrase in phrases]))
    pieces, last = list[str](), 0
    for start, end in shown.marks:
        pieces += [shown.text[last:start], "[", shown.text[start:end], "]"]
        last = end
    return "".join([*pieces, shown.text[last:]])


@pytest.mark.parametrize(
    ("text", "phrases", "shown"),
    [
        ("three rivers", ["rivers"], "three [rivers]"),
        ("Three RIVERS, three lakes", ["three"], "[Three] RIVERS, [three] lakes"),
        ("one\n  two\tthree", ["two three"], "one [two three]"),
        ("foo_bar and foo.bar", ["foo_bar"], "[foo_bar] and [foo.bar]"),
        ("riversides and rivers", ["rivers"], "riversides and [rivers]"),
        ("Le Café d'été", ["cafe", "ete"], "Le [Café] d'[été]"),
        ("Cafe\u0301 noir", ["café"], "[Café] noir"),
        ("eine Straße", ["strasse"], "eine [Straße]"),
        ("昨日は東京に行った", ["東京"], "昨日は[東京]に行った"),
        ("Rune読込error", ["error", "rune"], "[Rune]読込[error]"),
        ("nothing of it", ["rivers"], "nothing of it"),
        ("no words", ["..."], "no words"),
        ("", ["rivers"], ""),
    ],
    ids=["plain", "case", "blanks", "code", "whole words", "accents", "decomposed", "sharp s", "cjk", "mixed", "none",
         "signs", "empty"],
)  # fmt: skip
def test_matches_are_marked(text: str, phrases: list[str], shown: str) -> None:
    assert marked(text, *phrases) == shown


def test_the_beginning_of_a_word_is_marked_as_far_as_it_was_typed() -> None:
    assert marked("three rivers", "riv", begun=True) == "three [riv]ers"


def test_a_match_far_in_a_text_is_shown_with_what_stands_around_it() -> None:
    text = "word " * 3000 + "before the needle after it" + " word" * 3000
    shown = marked(text, "needle")
    assert shown.startswith("\u2026")
    assert "before the [needle] after it" in shown
    assert shown.endswith("\u2026")
    assert len(shown) <= SNIPPET_CHARACTERS + 2


def test_a_match_over_the_end_of_what_is_looked_at_at_once_is_found() -> None:
    for blanks in range(4070, 4110):
        assert "[needle]" in marked("é" * 10 + " " * blanks + "needle", "needle")


def test_in_a_very_long_text_only_the_beginning_is_looked_through() -> None:
    text = "wörter " * 300_000 + "needle"
    assert marked(text, "needle").startswith("wörter wörter")


@given(st.text(), st.text(min_size=1))
def test_any_text_has_a_snippet_on_one_line(text: str, phrase: str) -> None:
    shown = snippet(text, pattern_of([Phrase(phrase, begun=True)]))
    assert len(shown.text) <= SNIPPET_CHARACTERS
    assert len(shown.text.splitlines()) <= 1
    assert all(0 <= start < end <= len(shown.text) for start, end in shown.marks)


@given(st.text())
def test_each_folded_character_has_its_place(text: str) -> None:
    assert len(places(text)) == len(alike(text)) + 1
