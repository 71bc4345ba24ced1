"""One move of the constrained protocol, read while it streams."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.errors import ModelError, ProtocolError, StreamBrokenError, UnusableCallError
from rune.models.text_tools import answer_reader
from rune.models.text_tools.answer_reader import ConstrainedReader
from rune.models.text_tools.json_text import JsonText
from rune.models.transport import ChatChunk, TextDelta, ToolCallReady
from rune.records.tools import ToolCall, ToolSchema

READ = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "enum": ["a.py", "b.py"]}, "limit": {"type": "integer"}},
        "required": ["path"],
    },
)
CALL = ToolCall(id="call_1", name="read_file", arguments={"path": "a.py"}, source="constrained")

End = type[ModelError] | None


def read(pieces: Sequence[str], *, cut: bool = False) -> tuple[str, list[ToolCall], End]:
    """Return the text, the calls, and how the reader ended."""
    reader = ConstrainedReader([READ])
    chunks: list[ChatChunk] = []
    end: End = None
    try:
        for piece in pieces:
            chunks += reader.feed(piece)
        chunks += reader.end(cut=cut)
    except ModelError as error:
        end = type(error)
    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]
    assert all(texts), "a delta is never empty"
    return "".join(texts), [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)], end


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def test_an_answer_comes_out_as_it_comes_and_never_as_its_json() -> None:
    reader = ConstrainedReader([READ])
    pieces = ['{"ans', 'wer"', ': "The ', "riv", "er\\", 'n\\"Po\\"', '"', "}"]
    assert [reader.feed(piece) for piece in pieces] == [
        [],
        [],
        [TextDelta("The ")],
        [TextDelta("riv")],
        [TextDelta("er")],
        [TextDelta('\n"Po"')],
        [],
        [],
    ]
    assert (reader.end(), reader.called) == ([], False)


def test_an_object_that_cannot_become_a_move_is_given_out_at_once() -> None:
    assert ConstrainedReader([READ]).feed('{"note') == [TextDelta('{"note')]


def test_a_call_comes_out_whole_with_an_id_of_its_own() -> None:
    reader = ConstrainedReader([READ])
    assert reader.feed('{"tool": "read_file", "arguments": {"path": "a') == []
    assert reader.feed('.py"}}') == [ToolCallReady(CALL)]
    assert (reader.end(), reader.called) == ([], True)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool":"read_file","arguments":{"path":"a.py"}}',
        '{"arguments": {"path": "a.py"}, "tool": "read_file"}',
        '\n ```json\n{"tool": "read_file",\n "arguments": {"path": "a.py"}}\n```\n',
        '\ufeff```\n{"tool": "read_file", "arguments": {"path": "\\u0061.py"}}```',
    ],
)
def test_one_call_in_many_spellings(text: str) -> None:
    assert read([text]) == ("", [CALL], None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"answer": "a\\ud83d\\ude00b"}', "a\U0001f600b"),
        ('{"answer": "a\\ud83dxb"}', "a\ufffdxb"),
        ('{"answer": "\\ude00\\ud83d"}', "\ufffd\ufffd"),
        ('{"answer": "\\u00e9\\/\\b\\f\\n\\r\\t\\\\"}', "\u00e9/\b\f\n\r\t\\"),
        ('{"answer": "a\nb\\qc\\uzz"}', "a\nb\\qc\\uzz"),
        ('```json\n{"answer": "x"}\n```', "x"),
        ('{"answer": "x", "confidence": 0.9}', "x"),
        ('{"answer": 42}', "42"),
        ('{"answer": {"a": [1, "}"]}}', '{"a":[1,"}"]}'),
        ('{"answer": "He said "hi" to me."}', 'He said "hi" to me."}'),
        ('{"answer": "x"} and more', "x and more"),
        ("Just words.", "Just words."),
        ("  \n{not json}", "  \n{not json}"),
        ('{"name": "Rex"}', '{"name": "Rex"}'),
        ("{}", "{}"),
        ("```python\nx = {}\n```", "```python\nx = {}\n```"),
        ('{"arguments": {}}', '{"arguments": {}}'),
        ('{"tool": "read_file" and so on', '{"tool": "read_file" and so on'),
        ("[1, 2]", "[1, 2]"),
        (" \n ", ""),
        ("```\n```", "```\n```"),
        ("```json\n", ""),
        ('{"answer": "x"}\n```\n```', "x\n```\n```"),
        ('\ufeff \n{"answer": "x"} \n', "x"),
    ],
)
def test_whatever_is_no_call_is_text_and_none_of_it_is_lost(text: str, said: str) -> None:
    assert read([text]) == (said, [], None)
    assert read(list(text)) == (said, [], None)


@pytest.mark.parametrize(
    ("text", "tool", "reason"),
    [
        ('{"tool": "rm", "arguments": {}}', "rm", "no tool of that name"),
        ('{"tool": "read_file", "arguments": {"path": "c.py"}}', "read_file", "path"),
        ('{"tool": "read_file", "arguments": {}}', "read_file", "path"),
        ('{"tool": "read_file"}', "read_file", "path"),
        ('{"tool": "read_file", "arguments": [1]}', "read_file", "object"),
        ('{"tool": 5, "arguments": {}}', "5", "no tool of that name"),
        ('{"tool": "read_file", "arguments": {"path": a.py}}', "read_file", "not JSON"),
        ('{"tool": "read_file", "arguments": {"path": "a.p', "read_file", "middle"),
        ('{"tool": "read_', "", "middle"),
        ('{"tool": "read_file", "arguments": {"path": "a.py"}, "tool": "rm"}', "read_file", "twice"),
        ('{"tool": "read_file", "' + "a" * 2_000, "read_file", "no end"),
    ],
)
def test_a_call_that_cannot_be_used_is_typed_with_its_reason(text: str, tool: str, reason: str) -> None:
    reader = ConstrainedReader([READ])
    assert reader.feed(text) == []
    with pytest.raises(UnusableCallError) as caught:
        reader.end()
    assert (caught.value.tool, reason in caught.value.reason) == (tool, True)


def test_an_answer_that_the_length_limit_cut_keeps_what_came() -> None:
    assert read(['{"answer": "The riv'], cut=True) == ("The riv", [], None)
    assert read(['{"answer": "The riv\\u00'], cut=True) == ("The riv", [], None)
    assert read(['{"answer": "The riv\\ud83d\\u'], cut=True) == ("The riv\ufffd", [], None)
    assert read(['{"answer": "The river"'], cut=True) == ("The river", [], None)
    assert read(['{"ans'], cut=True) == ('{"ans', [], None)


def test_an_answer_that_the_model_left_open_is_not_taken_for_whole() -> None:
    assert read(['{"answer": "The riv']) == ("The riv", [], StreamBrokenError)


def test_a_call_that_was_cut_is_no_call() -> None:
    assert read(['{"tool": "read_file", "arguments": {"path": "a.py"'], cut=True) == ("", [], UnusableCallError)


def test_words_and_a_call_in_one_object_are_both_taken() -> None:
    text = '{"answer": "Let me look.", "tool": "read_file", "arguments": {"path": "a.py"}}'
    assert read([text]) == ("Let me look.", [CALL], None)


def test_what_was_held_back_when_a_stream_breaks_is_given_out() -> None:
    reader = ConstrainedReader([READ])
    reader.feed('{"tool": "read_file", "argu')
    assert reader.release() == [TextDelta('{"tool": "read_file", "argu')]
    assert (reader.release(), reader.end()) == ([], [])


@pytest.mark.parametrize("beginning", ["", "```", '{"tool": "read_file", "', '{"answer": "x"}', '{"answer": "x"}```'])
@pytest.mark.parametrize("unit", ["    ", "abcd", "\\n"])
@pytest.mark.timeout(20)
def test_what_never_becomes_a_move_costs_no_more_with_each_piece(beginning: str, unit: str) -> None:
    reader = ConstrainedReader([READ])
    reader.feed(beginning)
    for _ in range(50_000):
        reader.feed(unit)


def test_a_call_without_an_end_does_not_fill_the_memory() -> None:
    reader = ConstrainedReader([READ])
    reader.feed('{"tool": "read_file", "arguments": {"path": "')
    with pytest.raises(ProtocolError, match="without an end"):
        for _ in itertools.repeat(None, 20):
            reader.feed("x" * (answer_reader.MOST_HELD // 16))


def escaped_answer(text: str) -> str:
    return json.dumps({"answer": text})


def plain_answer(text: str) -> str:
    return json.dumps({"answer": text}, ensure_ascii=False)


def call_of(path: str, limit: int) -> str:
    return json.dumps({"tool": "read_file", "arguments": {"path": path, "limit": limit}})


MOVES = st.one_of(
    st.builds(escaped_answer, st.text()),
    st.builds(plain_answer, st.text()),
    st.builds(call_of, st.sampled_from(["a.py", "b.py", "c.py"]), st.integers()),
    st.text('{}[]":,\\ \n`au0dD8cC.tolnswer', max_size=40),
    st.just('{"answer": "x" , "tool": "read_file", "arguments": {"path": "a.py", "limit": 1}} ``` x'),
)


@given(
    move=MOVES,
    around=st.sampled_from([("", ""), ("```json\n", "\n```"), (" ", " \n"), ("", "```!")]),
    keep=st.floats(0, 1),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    cut=st.booleans(),
)
@example(move='{"answer": "\\ud83d\\ude00"}', around=("", ""), keep=1.0, cuts=list(range(40)), cut=False)
def test_where_the_stream_is_cut_into_pieces_changes_nothing(
    move: str, around: tuple[str, str], keep: float, cuts: list[int], cut: bool
) -> None:
    text = around[0] + move + around[1]
    text = text[: round(len(text) * keep)]
    whole = read([text], cut=cut)
    assert read(pieces_of(text, cuts), cut=cut) == whole
    assert read(list(text), cut=cut) == whole


@given(text=st.text(), escaped=st.booleans())
def test_every_answer_arrives_as_it_was_meant(text: str, escaped: bool) -> None:
    written = escaped_answer(text) if escaped else plain_answer(text)
    assert read(list(written)) == (text, [], None)


@given(st.text('\\u"dD8cC0e/n', max_size=30), st.lists(st.integers(0, 30), max_size=8))
def test_any_text_between_quotation_marks_can_be_read_in_any_pieces(text: str, cuts: list[int]) -> None:
    def decoded(pieces: Sequence[str]) -> str:
        reader, left, out = JsonText(), "", ""
        for piece in pieces:
            said, taken = reader.read(left + piece)
            out, left = out + said, (left + piece)[taken:]
        return out if reader.ended else out + reader.end(left)

    assert decoded(pieces_of(text, cuts)) == decoded([text])
