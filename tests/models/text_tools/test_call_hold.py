"""Streamed text is held back while it may be nothing but calls, and let go as soon as it cannot."""

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.models.text_tools.repair import LENGTH, CallHold, Found, calls_in, may_become_call
from tests.models.text_tools.leaked_calls import NAMES, TOOLS, Sample, decoys, samples

READ = [sample for sample in samples() if not sample.hard]


def _let_go_after(text: str, offered: list[str] | None = None) -> int | None:
    """How many characters came before the text was let go; None when it was held to its end."""
    hold = CallHold(offered)
    return next((count for count, character in enumerate(text, 1) if not hold.feed(character)), None)


@pytest.mark.parametrize("sample", READ, ids=lambda sample: f"{sample.family}-{sample.title}")
def test_every_beginning_of_a_call_is_held(sample: Sample) -> None:
    assert _let_go_after(sample.text) is None
    assert _let_go_after(sample.text, NAMES) is None
    assert all(may_become_call(sample.text[:end]) for end in range(0, len(sample.text) + 1, 7))


@pytest.mark.parametrize(
    "text",
    [
        "The¦ file calc.py holds ...",
        "I¦ will",
        "¦4 is the answer",
        "¦**Done.**",
        "¦# Title",
        "¦- one",
        "¦> quoted",
        '¦"text"',
        "¦(text)",
        "`¦code`",
        "\n\n  Well¦, ...",
        "Gr¦öße",
        "¦1. First",
        "¦你好",
        "```¦bash\nls",
        "```j¦avascript\nx",
        "```¦`markdown\nx",
        "```python\nimport¦ os",
        "```python\n¦# a comment",
        "```\nmake¦ all",
        "```json\n[¦1, 2]",
        '```json\n{"c¦ity": "Paris"}',
        '{"c¦ity": "Paris"}',
        '{"name": "Ada¦ Lovelace"}',
        '{"name": "x", "¦version": 1}',
        '{"name": "x"¦}',
        '{"name": ¦["x"]}',
        '{"type": "¦person"}',
        '{"arguments": ¦3}',
        "{¦}",
        "{ ¦x }",
        "[x¦] done",
        "[link¦](a.md)",
        "<¦html>",
        "<tool_¦response>",
        "<|channel|>¦final<|message|>Hello",
        "<think>a</think>Hello¦ there",
        '<tool_call>{"name": "x", "arguments": {}}</tool_call> So¦ it is',
        '{"name": "x", "arguments": {}}\nThis¦ call',
        '{"name": "x", "arguments": {}}¦.',
        '{"name": "x", "arguments": {}},\n¦and',
        "comments¦ on it",
        "analysis ¦of it",
        "read_file¦(path='a')",
    ],
)
def test_what_is_no_call_is_let_go_at_once(text: str) -> None:
    held, _, rest = text.partition("¦")
    assert _let_go_after(held + rest) == len(held) + 1


def test_names_that_are_not_offered_are_let_go_at_the_name() -> None:
    text = '{"name": "send_mail", "arguments": {"to": "x"}}'
    assert _let_go_after(text, NAMES) == len('{"name": "send_mail"')
    assert _let_go_after(text) is None
    assert _let_go_after('{"name": "functions.read_file", "arguments": {}}', NAMES) is None


@pytest.mark.parametrize("decoy", decoys(), ids=lambda decoy: decoy.title)
def test_a_decoy_is_let_go_or_found_to_be_none_at_its_end(decoy: Sample) -> None:
    ends = _let_go_after(decoy.text, NAMES)
    assert ends is None or ends <= len(decoy.text)
    assert calls_in(decoy.text, TOOLS) == Found()


_PIECES = st.one_of(
    st.text(max_size=3),
    st.sampled_from(
        [
            *('{"name":"', '"read_file"', '","arguments":', '{"path":"a"}', "}", "]", "[", "{", '"', "'", ",", "\\"),
            *("```", "json\n", "tool_code\n", "<tool_call>", "</tool_call>", "<function=read_file>", "<parameter=a>"),
            *("</parameter>", "</function>", "[TOOL_CALLS]", "read_file", "[ARGS]", "<think>", "</think>", "<tools>"),
            *("<|channel|>", "commentary to=functions.", "<|message|>", "<|tool_call_begin|>", "<|tool_sep|>", "("),
            *("(path=", '"""', "''", ")", '{"name":"git_status","arguments":{}}', '"tool_calls":', " ", "\n"),
        ]
    ),
)
_TEXTS = st.one_of(
    st.lists(_PIECES, max_size=25).map("".join),
    st.tuples(st.sampled_from([sample.text for sample in READ]), _PIECES, st.integers(0, 300)).map(
        lambda made: made[0][: made[2]] + made[1] + made[0][made[2] :]
    ),
)


@settings(deadline=None, max_examples=300)
@given(_TEXTS, st.lists(st.integers(1, 9), min_size=1))
def test_however_the_text_is_cut_the_answer_is_the_same(text: str, sizes: list[int]) -> None:
    hold, start, held = CallHold(NAMES), 0, True
    while start < len(text):
        size = sizes[start % len(sizes)]
        now = hold.feed(text[start : start + size])
        assert held or not now  # once let go, it stays so
        start, held = start + size, now
    assert hold.holds == CallHold(NAMES).feed(text)


@settings(deadline=None, max_examples=300)
@given(_TEXTS)
def test_what_was_let_go_is_no_call(text: str) -> None:
    if calls_in(text, TOOLS) != Found():
        assert CallHold(NAMES).feed(text)
        assert may_become_call(text)


@pytest.mark.parametrize(
    "beginning",
    [
        '{"name":"write_file","arguments":{"path":"a","content":"',
        '{"name":"write_file","arguments":{"path":[',
        "<function=write_file><parameter=content>",
        '```tool_code\nwrite_file(content="""',
        "<think>",
        "<tool_call>",
    ],
)
@pytest.mark.parametrize("piece", ["word", '\\"a ', "   \n", "</pa"])
def test_the_cost_of_many_pieces_is_linear(beginning: str, piece: str) -> None:
    hold = CallHold()
    hold.feed(beginning)
    started = time.process_time()
    for _ in range(100_000):
        hold.feed(piece)
    assert time.process_time() - started < 2


def test_what_was_looked_at_is_not_kept() -> None:
    hold = CallHold()
    hold.feed('{"name":"write_file","arguments":{"content":"')
    tracemalloc.start()
    for _ in range(1_000):
        hold.feed("a word\\n" * 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert hold.holds
    assert peak < 50_000


def test_a_text_beyond_all_measure_is_let_go() -> None:
    hold = CallHold()
    assert hold.feed('{"name":"write_file","arguments":{"content":"')
    assert not hold.feed("x" * LENGTH)
