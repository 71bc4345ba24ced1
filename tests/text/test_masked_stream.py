"""A secret is masked also where a stream splits it."""

import string
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.text.masked_stream import LONGEST_LINE, MaskedStream
from rune.text.masking import Masker, forms_of

PLAIN = "q8Zp2xLmK4vT/9+w"
TWO_LINES = "first line of it\r\nsecond-line-of-the-secret-value\nthird"
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIBOgIBAAJBAKj34Gkx\n" * 60
    + "-----END RSA PRIVATE KEY-----\n"
)
MASKER = Masker([("PLAIN", PLAIN), ("TWO_LINES", TWO_LINES)])
FORMS = (*forms_of(PLAIN), *forms_of(TWO_LINES))

words = st.one_of(
    st.sampled_from(FORMS),
    st.sampled_from([KEY, KEY[:200], "-----BEGIN ", "ghp_" + "a1B2" * 10, "password: q8Zp2xLmK4vT", "Bearer "]),
    st.sampled_from(["first line of it\r\n", "first line of it\n", "\r", "\n", "\r\n", " ", "\t", "]", "sk-"]),
    st.text(alphabet=string.ascii_letters + " :=/\n\r", max_size=20),
)
texts = st.lists(words, max_size=12).map("".join)


def streamed(text: str, cuts: list[int], masker: Masker = MASKER) -> str:
    stream = MaskedStream(masker)
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    parts = [stream.feed(text[start:end]) for start, end in pairwise(places)]
    return "".join(parts) + stream.finish()


@given(texts, st.lists(st.integers(min_value=0), max_size=12))
def test_any_split_gives_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    assert streamed(text, cuts) == MASKER.mask(text)


@given(st.sampled_from(FORMS), st.integers(min_value=0))
def test_a_secret_in_two_pieces_is_masked(form: str, cut: int) -> None:
    assert form not in streamed(f"before {form} after\n", [7 + cut % len(form)])


def test_every_character_apart_gives_what_the_whole_gives() -> None:
    text = f"a\n{KEY}b {PLAIN}\r\n{TWO_LINES}\nfirst line of it\r\nand no more\n{PLAIN}"
    assert streamed(text, list(range(len(text)))) == MASKER.mask(text)


def test_a_whole_line_is_let_go_at_once() -> None:
    stream = MaskedStream(MASKER)
    assert stream.feed("compiling\nlinki") == "compiling\n"
    assert stream.feed("ng") == ""
    assert stream.feed("\n") == "linking\n"


def test_a_line_that_may_begin_a_secret_waits_and_goes_when_it_does_not() -> None:
    stream = MaskedStream(MASKER)
    assert stream.feed("ok\nfirst line of it\r\n") == "ok\n"
    assert stream.feed("something else\n") == "first line of it\r\nsomething else\n"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4), st.integers(0, 3_000), st.integers(700, 9_000))
def test_a_very_long_line_holds_no_secret_either(forms: list[str], shift: int, piece: int) -> None:
    # They lie close together where the line has to be cut.
    masker = Masker([("PLAIN", PLAIN)])
    known = [form for form in forms if form in masker.known_forms] or [PLAIN]
    text = (
        "x" * (LONGEST_LINE - 2_000 + shift)
        + "-".join(known * (4_000 // len("-".join(known))))
        + "y" * 70_000
        + known[0]
        + "z" * 10
    )
    assert "\n" not in text
    assert streamed(text, list(range(0, len(text), piece)), masker) == masker.mask(text)


@pytest.mark.parametrize("filler", ["x", "ab ", "-----BEGIN x"])
def test_what_never_ends_is_not_held_without_end(filler: str) -> None:
    stream = MaskedStream(MASKER)
    let_go = sum(len(stream.feed(filler * (8_192 // len(filler)))) for _ in range(200))
    assert 200 * 8_000 - let_go < 2 * LONGEST_LINE
