import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.models.wire.stray_tag import StrayCloserFilter


def through(pieces: list[str]) -> str:
    stray = StrayCloserFilter()
    return "".join([*(stray.feed(piece) for piece in pieces), stray.flush()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("</think>\n\nHello", "\n\nHello"),
        ("so it is 4\n</think>\nFour.", "so it is 4\n\nFour."),
        ("a</think>b</think>c", "ab</think>c"),
        ("<think>x</think>y", "<think>x</think>y"),
        ("write `</think>` at the end", "write `</think>` at the end"),
        ('"</think>"', '"</think>"'),
        ("a </thin air", "a </thin air"),
        ("a <", "a <"),
        ("</think", "</think"),
        ("", ""),
    ],
)
def test_only_an_end_that_was_never_opened_is_cut_out(text: str, shown: str) -> None:
    assert through([text]) == shown


@given(
    st.lists(st.sampled_from(["<", "/", "think", "t", "hink>", ">", "a", " ", "`", "</think>", "<think>"])), st.data()
)
def test_however_the_text_is_cut_the_same_comes_out(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    points = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *points], [*points, len(text)], strict=True)]
    assert through(pieces) == through([text])


def test_text_that_cannot_be_a_tag_is_given_at_once() -> None:
    stray = StrayCloserFilter()
    assert stray.feed("a<b") == "a<b"
    assert stray.feed("c</") == "c"
    assert stray.feed("d") == "</d"
