# ruff: noqa: RUF001 - writing that looks like other writing is what is tested here
"""What a terminal is given: nothing it acts on, nothing that cannot be seen, and ordinary writing as it was."""

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.text.safe_text import MARKS_PER_BASE, SafeStream, safe_text

ZWJ, ZWNJ, VS16, KEYCAP = "\u200d", "\u200c", "\ufe0f", "\u20e3"

# Characters that decide about one another, so that a random text has something to get wrong.
TRICKY = st.sampled_from(
    "\r\n\t\x1b\x85\u200d\u200c\ufe0f\ufe0e\u20e3\u0301\u202e\U000e0041\ud83d\ude00\udc801#a \u2764\U0001f468\U0001f3fd"
    "\u0645\u0915\u094d\ue000\u00ad\u2028\u3164\U000e0100\u00e9\u4f60"
)
TEXTS = st.one_of(st.lists(TRICKY, max_size=24).map("".join), st.text(st.characters(), max_size=40))

ORDINARY = {
    "English": "A line, a tab\tand “quotes” – 100 % plain…\nNext line.",
    "German, French, Polish, Turkish": "Straße, déjà vu, zażółć gęślą jaźń, İstanbul’da",
    "Vietnamese, decomposed": unicodedata.normalize("NFD", "Tiếng Việt có dấu"),
    "Russian and Greek": "Съешь ещё этих булок. Ξεσκεπάζω τὴν ψυχοφθόρα",
    "Hebrew with points": "בְּרֵאשִׁ֖ית בָּרָ֣א",
    "Arabic with signs": "اَلْعَرَبِيَّةُ",
    "Persian with ZWNJ": "می\u200cخواهم کتاب\u200cها را",
    "Hindi with ZWJ": "क्\u200dष नमस्ते दुनिया",
    "Sinhala with ZWJ": "ශ්\u200dරී ලංකා",
    "Thai, Tamil, Bengali": "ภาษาไทยที่นี่ தமிழ் வாங்க বাংলা",
    "Chinese, Japanese, Korean": "你好，世界！ 日本語のテキスト「例」 한국어 ｆｕｌｌ",
    "boxes and arrows": "┌──┐ │▓░│ → ⇒ ✓ ✗ • · ⠋⠙⠹",
    "emoji": "😀 👍🏽 🇩🇪 🏳️\u200d🌈 👨\u200d👩\u200d👧 👩🏽\u200d💻 ❤️ ☎\ufe0e 1️⃣ #️⃣ 🤷\u200d♀️",
    "mathematics": "∀x∈ℝ: x² ≥ 0 ⟹ √x 𝔸",
}


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_writing_is_left_as_it_is(text: str) -> None:
    assert safe_text(text) == text


def test_of_all_code_points_alone_none_passes_that_acts_or_is_invisible() -> None:
    chars = [chr(code) for code in range(0x110000) if chr(code) not in "\r\n"]
    # One to a line is as good as alone, and a million calls take their time.
    for char, shown in zip(chars, safe_text("\n".join(chars)).split("\n"), strict=True):
        category = unicodedata.category(char)
        acts_or_hides = category[0] in "CM" or category in ("Zl", "Zp") or char in "\u115f\u1160\u3164\uffa0\U0001d159"
        reserved_pictograph = category == "Cn" and "\U0001f000" <= char <= "\U0001faff"
        if char == "\t" or reserved_pictograph or not acts_or_hides:
            assert shown == char, hex(ord(char))
        else:
            assert re.fullmatch(r"\\x[0-9a-f]{2}|<U\+[0-9A-F]{4,6}>", shown), hex(ord(char))
    assert (safe_text("\r"), safe_text("\n")) == ("\\r", "\n")


def test_names_say_which_character_was_there() -> None:
    assert safe_text("\x1b[2J\x9b\x7f") == "\\x1b[2J\\x9b\\x7f"
    assert safe_text("rm \u202ecod.exe") == "rm <U+202E>cod.exe"
    assert safe_text("\U000e0041\ufeff\ud800") == "<U+E0041><U+FEFF><U+D800>"


def test_a_window_title_and_a_clipboard_write_arrive_as_text() -> None:
    shown = safe_text("\x1b]0;owned\x07 \x1b]52;c;cm0gLXJm\x1b\\ \x1b]8;;http://x\x07y")
    assert shown == "\\x1b]0;owned\\x07 \\x1b]52;c;cm0gLXJm\\x1b\\ \\x1b]8;;http://x\\x07y"


def test_a_lone_carriage_return_is_shown_and_one_before_a_line_feed_is_a_line_end() -> None:
    assert safe_text("secret\rfine\r\nnext\r\r\n") == "secret\\rfine\nnext\\r\n"


def test_one_line_and_one_column_are_kept_where_they_must_be() -> None:
    assert safe_text("a\r\nb\tc", newlines=False, tabs=False) == "a\\r\\nb\\tc"


def test_joiners_and_selectors_stay_only_where_they_belong() -> None:
    assert safe_text(f"a{ZWJ}b{ZWNJ}c") == "a<U+200D>b<U+200C>c"
    assert safe_text(f"\u2764{VS16}{VS16}") == f"\u2764{VS16}<U+FE0F>"
    assert safe_text(f"1{VS16}2") == "1<U+FE0F>2"
    assert safe_text(f"\U0001f468{ZWJ}") == "\U0001f468<U+200D>"
    assert safe_text(f"\u0645{ZWNJ}{ZWNJ}\u0645") == "\u0645<U+200C><U+200C>\u0645"
    assert safe_text("x\ufe00\U000e0100") == "x<U+FE00><U+E0100>"


def test_a_tower_of_marks_is_cut_and_a_mark_needs_something_to_stand_on() -> None:
    assert safe_text("e" + "\u0301" * 8) == "e" + "\u0301" * MARKS_PER_BASE + "<U+0301>" * 2
    assert safe_text("\u0301a\n\u0301") == "<U+0301>a\n<U+0301>"


def test_two_halves_of_a_character_are_joined() -> None:
    assert safe_text("\ud83d\ude00 \ude00\ud83d") == "\U0001f600 <U+DE00><U+D83D>"


@given(TEXTS)
def test_it_is_idempotent(text: str) -> None:
    once = safe_text(text)
    assert safe_text(once) == once


@given(TEXTS, TEXTS)
def test_two_safe_texts_make_a_safe_text(left: str, right: str) -> None:
    both = safe_text(left) + safe_text(right)
    assert safe_text(both) == both


@given(TEXTS, st.lists(st.integers(0, 40), max_size=8), st.booleans(), st.booleans())
@example("a\r\nb", [2], True, True)
@example(f"\U0001f468{ZWJ}\ud83d\udc69", [1, 2, 3], True, True)
def test_any_split_into_deltas_gives_what_the_whole_gives(
    text: str, cuts: list[int], newlines: bool, tabs: bool
) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stream = SafeStream(newlines=newlines, tabs=tabs)
    shown = [stream.feed(text[start:end]) for start, end in pairwise(edges)]
    assert "".join([*shown, stream.finish()]) == safe_text(text, newlines=newlines, tabs=tabs)


def test_a_stream_holds_back_no_more_than_two_characters_and_starts_anew_after_finish() -> None:
    stream = SafeStream()
    assert stream.feed("abc\r") == "abc"
    assert stream.feed(ZWJ * 50).count("<U+200D>") == 49
    assert stream.finish() == "<U+200D>"
    assert stream.feed("\u0301") + stream.finish() == "<U+0301>"
