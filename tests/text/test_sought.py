"""Texts are found in every form in which a file of Rune holds them, and nothing else is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.text.sought import SHORTEST, Sought

SECRETS = {
    "ascii": "buy the old mill",
    "german": "Die Füße der Größe Süd",
    "emoji": "a fox \U0001f98a and a bear \U0001f43b",
    "quotes": 'she said "no"\n\tand left \\ for good',
    "separators": "one\u2028two\u0085three\x7ffour",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("shift", range(17))
def test_a_text_is_found_raw_and_in_both_forms_of_json_wherever_it_begins(text: str, shift: int) -> None:
    sought = Sought([text, "something else entirely"])
    for form in (text, json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert sought.within(b"x" * shift + form.encode() + b"rest of it")
    assert not sought.within(b"x" * shift + text[:-1].encode() + b"~ rest of it")


@given(st.lists(st.text(alphabet="ab", min_size=SHORTEST, max_size=40), min_size=1, max_size=5), st.text("ab"))
def test_it_finds_what_a_plain_search_finds(texts: list[str], among: str) -> None:
    assert Sought(texts).within(among.encode()) == any(text in among for text in texts)


def test_a_short_text_is_only_compared_with_whole_fields() -> None:
    sought = Sought(["yes", "  "])
    assert not sought
    assert sought.short == ("yes",)
    assert sought.equals(" yes\n")
    assert not sought.equals("yes, and no")
    assert not sought.within(b'{"text":"yes"}')


def test_openings_find_what_was_cut_off() -> None:
    sought = Sought(["It was a dark and stormy night; the rain fell in torrents\n  except at occasional intervals"])
    cut = b'{"content":"It was a dark and stormy ni'
    assert not sought.within(cut)
    assert sought.openings().within(cut)
    assert sought.openings().within(b"    | except at occasional intervals")
