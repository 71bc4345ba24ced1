import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.models.transport import TextDelta, ThinkingDelta
from rune.models.wire.stray_tag import LeakedThinkingFilter

GPT_OSS = "<|channel|>analysis<|message|>"
PIECES = [
    "<", "/", "think", "t", "hink>", ">", "a", " ", "\n", "`", "</think>", "<think>", "[THINK]", "[/THINK]", "[", "]",
    "<thought>", "</thought>", GPT_OSS, "<|end|>", "<|", "<|start|>assistant", "<|channel|>final<|message|>",
    "<|channel>thought", "<channel|>", "<seed:think>", "</seed:think>",
]  # fmt: skip


def sorted_out(pieces: list[str]) -> tuple[str, str]:
    """Return the joined thinking and the joined answer."""
    leaked = LeakedThinkingFilter()
    given = [delta for piece in pieces for delta in leaked.feed(piece)] + leaked.flush()
    assert all(delta.text for delta in given)
    thinking = "".join(delta.text for delta in given if isinstance(delta, ThinkingDelta))
    return thinking, "".join(delta.text for delta in given if isinstance(delta, TextDelta))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("</think>\n\nHello", "\n\nHello"),
        ("so it is 4\n</think>\nFour.", "so it is 4\n\nFour."),
        ("a</think>b</think>c", "ab</think>c"),
        ("a <think>x</think>y", "a <think>x</think>y"),
        ("write `</think>` at the end", "write `</think>` at the end"),
        ('"</think>"', '"</think>"'),
        ("a </thin air", "a </thin air"),
        ("a <", "a <"),
        ("</think", "</think"),
        (" \n", " \n"),
        ("", ""),
    ],
)
def test_only_an_end_that_was_never_opened_is_cut_out(text: str, shown: str) -> None:
    assert sorted_out([text]) == ("", shown)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>x</think>y", "x", "y"),
        ("\n <think>\n x y \n</think>\n\nz\n", "x y", "z\n"),
        ("<think>\n\n</think>\n\nHello", "", "Hello"),
        ("<think>a <b> c</think>d", "a <b> c", "d"),
        ("<think>it never ends ", "it never ends ", ""),
        ("<think>it stops in its end</thi", "it stops in its end</thi", ""),
        ("<think>x</think>speak of <think> and </think> freely", "x", "speak of <think> and </think> freely"),
        ("<think>x</think>\n<think>z</think>y", "xz", "y"),
        ("[THINK]hm[/THINK]Yes.", "hm", "Yes."),
        ("<thought>\nhm\n</thought>\n\nYes.", "hm", "Yes."),
        ("<seed:think>hm</seed:think>Yes.", "hm", "Yes."),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.", "hm", "Yes."),
        ("<|channel>thought\nhm<channel|>Yes.", "hm", "Yes."),
        (GPT_OSS + "hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "hm", "Yes."),
        ("<|start|>assistant" + GPT_OSS + "hm<|end|>Yes.", "hm", "Yes."),
        ("<|channel|>final<|message|>Yes.", "", "Yes."),
    ],
)
def test_an_answer_that_begins_with_a_mark_is_thinking_up_to_its_end(text: str, thinking: str, answer: str) -> None:
    assert sorted_out([text]) == (thinking, answer)
    assert sorted_out(list(text)) == (thinking, answer)


@pytest.mark.parametrize(
    "text",
    [
        "`<think>` opens it",
        '"<think>" opens it',
        "The tag <think> opens it and [THINK] too.",
        "```\n<think>\n```",
        "<thin> is no tag",
        "[THINKING] neither",
        "<|channel|>analysis without a message",
        "<thoughts>",
    ],
)
def test_a_mark_that_is_spoken_of_stays_text(text: str) -> None:
    assert sorted_out([text]) == ("", text)
    assert sorted_out(list(text)) == ("", text)


@given(st.lists(st.sampled_from(PIECES)), st.data())
def test_however_the_text_is_cut_the_same_comes_out(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    points = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *points], [*points, len(text)], strict=True)]
    assert sorted_out(pieces) == sorted_out([text])


@given(st.text(alphabet="abc <>/`\n"))
def test_text_without_a_mark_passes_as_it_is(text: str) -> None:
    assert sorted_out([text]) == ("", text)


@pytest.mark.parametrize("beginning", ["", "<think>", "<think>a", "<think>a</think>"])
@pytest.mark.timeout(10)
def test_blanks_without_an_end_cost_no_more_with_each_piece(beginning: str) -> None:
    leaked = LeakedThinkingFilter()
    leaked.feed(beginning)
    for _ in range(200_000):
        assert leaked.feed("  \n ") == []


def test_text_that_cannot_be_a_mark_is_given_at_once() -> None:
    leaked = LeakedThinkingFilter()
    assert leaked.feed("a<b") == [TextDelta("a<b")]
    assert leaked.feed("c</") == [TextDelta("c")]
    assert leaked.feed("d") == [TextDelta("</d")]


def test_thinking_is_given_as_it_comes() -> None:
    leaked = LeakedThinkingFilter()
    assert leaked.feed("<thi") == []
    assert leaked.feed("nk>one ") == [ThinkingDelta("one")]
    assert leaked.feed("two</") == [ThinkingDelta(" two")]
    assert leaked.feed("think>") == []
    assert leaked.feed("\nyes") == [TextDelta("yes")]
