"""Calls written as text are found, by family; what is quoted or told is not."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.models.text_tools.repair import LENGTH, Found, calls_in
from rune.records.tools import ToolSchema
from tests.models.text_tools.leaked_calls import FAMILIES, NAMES, TOOLS, Sample, decoys, samples


def _id(sample: Sample) -> str:
    return f"{sample.family}-{sample.title}"


def _plain(found: Found) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": call.arguments} for call in found.calls]


def _right(sample: Sample) -> bool:
    return _plain(calls_in(sample.text, TOOLS)) == sample.calls


@pytest.mark.parametrize("sample", [each for each in samples() if not each.hard], ids=_id)
def test_a_leaked_call_is_read(sample: Sample) -> None:
    found = calls_in(sample.text, TOOLS)
    assert (_plain(found), found.unusable) == (sample.calls, None)


@pytest.mark.parametrize("sample", [each for each in samples() if each.hard], ids=_id)
def test_what_would_have_to_be_guessed_is_no_call(sample: Sample) -> None:
    assert calls_in(sample.text, TOOLS).calls == ()


@pytest.mark.parametrize("decoy", decoys(), ids=_id)
def test_a_decoy_is_an_answer(decoy: Sample) -> None:
    assert calls_in(decoy.text, TOOLS) == Found()


def test_the_table_by_family() -> None:
    every, answers = samples(), decoys()
    print("\n\nfamily      samples    read   recall")
    for family in FAMILIES:
        own = [sample for sample in every if sample.family == family]
        read = sum(map(_right, own))
        print(f"{family:<12}{len(own):>7}{read:>8}{read / len(own):>9.1%}")
        assert len(own) >= 15
    read = sum(map(_right, every))
    false = sum(bool(calls_in(decoy.text, TOOLS).calls) for decoy in answers)
    print(
        f"{'all':<12}{len(every):>7}{read:>8}{read / len(every):>9.1%}\ndecoys      {len(answers):>7}{false:>8} taken\n"
    )
    assert len(every) >= 120
    assert read >= 0.95 * len(every)
    assert len(answers) >= 60
    assert false == 0


def test_repaired_calls_are_marked_and_have_ids_of_their_own() -> None:
    found = calls_in('{"name":"git_status","arguments":{}}\n{"id":"x","name":"git_status","arguments":{}}', TOOLS)
    assert [(call.id, call.source) for call in found.calls] == [("repaired_1", "repaired"), ("repaired_2", "repaired")]


def test_without_tools_nothing_is_a_call() -> None:
    assert calls_in('{"name":"git_status","arguments":{}}', []) == Found()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name":"read_file","arguments":{}}', "arguments: expected `path`, which is missing"),
        ('{"name":"read_file","arguments":{"path":7}}', "path: expected string, got 7"),
        ('{"name":"read_file","arguments":{"path":"a","limit":"1.5"}}', 'limit: expected integer, got "1.5"'),
        (
            '{"name":"read_file","arguments":{"path":"a","lines":3}}',
            "arguments: expected only path, start_line, limit, got `lines`",
        ),
        ('{"name":"read_file","arguments":"calc.py"}', 'arguments: expected a JSON object, got "calc.py"'),
        ('{"name":"read_file","arguments":{"path":"a","path":"b"}}', "the arguments of read_file cannot be read"),
        ("```python\nread_file('a')\n```", "the arguments of read_file cannot be read: an argument has no name"),
        ("```python\nread_file(path=open('a'))\n```", "the arguments of read_file cannot be read: no literal"),
        ('[read_file(path="a" "b")]', "the arguments of read_file cannot be read: an argument is computed"),
        ("[read_file(path=['a'][0])]", "the arguments of read_file cannot be read: an argument is computed"),
        ("[read_file(path=2-1)]", "the arguments of read_file cannot be read: an argument is computed"),
        (f"[read_file(path='{'x' * 200_000}')]", "the arguments of read_file cannot be read: more than 200,000"),
        ('{"name":"read_file","arguments":{"path":"a", oh dear}}', "the arguments of read_file cannot be read"),
        ('{"name":"read_file","arguments":{"path":"cal', "the text ends in the middle of the call"),
        ('<tool_call>{"name":"read_file","arguments":{"path":"a"', "the text ends in the middle of the call"),
        ("<function=read_file><parameter=path>cal", "the text ends in the middle of the call"),
        ('{"name":"read_file","arguments":{"path":"\\ud800"}}', "arguments: expected text, got half of a surrogate"),
    ],
    ids=lambda text: text[:60],
)
def test_a_call_that_cannot_be_made_says_which_and_why(text: str, reason: str) -> None:
    found = calls_in(text, TOOLS)
    assert not found.calls
    assert found.unusable is not None
    assert found.unusable.name == "read_file"
    assert found.unusable.reason.startswith(reason)
    assert "\n" not in found.unusable.reason


def test_one_call_that_cannot_be_made_stops_those_beside_it() -> None:
    found = calls_in('[{"name":"git_status","arguments":{}},{"name":"read_file","arguments":{}}]', TOOLS)
    assert not found.calls
    assert found.unusable is not None


@pytest.mark.parametrize("written", ["mcp__a__b__run", "functions.mcp__a__b__run"])
def test_a_namespace_is_not_stripped_when_it_could_mean_two_tools(written: str) -> None:
    schema: dict[str, Any] = {"type": "object"}
    tools = [ToolSchema(name=name, description="", parameters=schema) for name in ("b__run", "run")]
    assert calls_in(f'{{"name":"{written}","arguments":{{}}}}', tools) == Found()
    assert calls_in(f'{{"name":"{written}","arguments":{{}}}}', tools[1:]).calls[0].name == "run"


_PIECES = st.sampled_from(
    [
        *('{"name":"', '"read_file"', '","arguments":', '{"path":"a"}', "}", "]", "[", "{", '"', "'", ",", "\\", "```"),
        *("json\n", "tool_code\n", "<tool_call>", "</tool_call>", "<function=read_file>", "<parameter=path>"),
        *(
            "</parameter>",
            "</function>",
            "[TOOL_CALLS]",
            "read_file",
            "[ARGS]",
            "<|python_tag|>",
            "<think>",
            "</think>",
        ),
        *("<|channel|>", "commentary to=functions.", "<|message|>", "<|tool_call_begin|>", "<|tool_sep|>", "<tools>"),
        *("(path=", ")", "(", "git_status", '{"name":"git_status","arguments":{}}', '"tool_calls":', " ", "\n", "x"),
    ]
)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=30).map("".join)))
def test_no_text_raises_and_no_call_has_a_name_that_was_not_offered(text: str) -> None:
    found = calls_in(text, TOOLS)
    assert {call.name for call in found.calls} <= set(NAMES)
    assert all(call.name in text for call in found.calls)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.sampled_from(NAMES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "arguments", "parameters", "function", "tool", "type", "tool_calls", "path"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(_JSON)
def test_no_json_raises_and_only_offered_names_are_called(value: Any) -> None:
    text = repr(value)
    assert {call.name for call in calls_in(text, TOOLS).calls} <= set(NAMES)


_HOSTILE = [
    ("", "[", ""),
    ("", '{"tool_calls":[', ""),
    ("", '{"function":', "}}"),
    ("", '{"name":"read_file","arguments":{}}', ""),
    ("", "```json\n", ""),
    ("", "<tool_call>", ""),
    ("", "<think>", "</think>"),
    ("", " ", "{}"),
    ("", "a", "[ARGS]{}"),
    ("", "<function=git_status></function>", ""),
    ("", "git_status[ARGS]{}", ""),
    ('{"name":"read_file","arguments":', "[", ""),
    ('{"name":"read_file","arguments":{"path":', "[],", "1}}"),
    ('{"name":"read_file","arguments":{"path":', "'\",", "1}}"),
    ('{"name":"read_file","arguments":{"path":"', "\\", '"}}'),
    ('{"name":"read_file","arguments":{"path":"', '\\"', '"}}'),
    ('{"name":"read_file","arguments":{"path":"', '\\"', ""),
    ('{"name":"read_file","arguments":{"path":[', '"",', "]}}"),
    ('{"name":"read_file","arguments":{"path":[', "1,", "]}}"),
    ('{"name":"read_file","arguments":{"path":[', "1,", "1]}}"),
    ("[read_file(path=", "[", ")]"),
    ("[read_file(path=", "-", "1)]"),
    ("[read_file(path=1", "+1", ")]"),
    ("[read_file(path=", "not ", "1)]"),
    ("[read_file(path=a", ".a", ")]"),
    ("[read_file(path=", '"" ', ")]"),
    ("[read_file(path=", '"""', ")]"),
    ("[read_file(path=[", "1,", "])]"),
    ('[read_file(path="""', 'a"', '""")]'),
    ('[read_file(path="', "\\", '")]'),
    ("<function=read_file><parameter=path>", "</parameter>", "</function>"),
    ("<function=read_file><parameter=path>", "</parameter> \n", ""),
    ("<function=read_file>", "<parameter=path>a</parameter>", "</function>"),
    ("<|channel|>analysis<|message|>", "<|end|", ""),
]


@pytest.mark.parametrize(("beginning", "piece", "ending"), _HOSTILE)
def test_a_megabyte_of_hostile_text_takes_less_than_a_second(beginning: str, piece: str, ending: str) -> None:
    text = beginning + piece * (1_000_000 // len(piece)) + ending
    started = time.process_time()
    calls_in(text, TOOLS)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("beginning", "ending"),
    [
        ("<tool_call>" * 1_001, ""),
        ('{"name":"read_file","arguments":{"path":' + "[" * 64, "]" * 64 + "}}"),
        ("[list_files(path=" + "[" * 64, "]" * 64 + ")]"),
    ],
    ids=["markers", "nested JSON", "nested Python"],
)
def test_what_no_model_means_is_an_answer(beginning: str, ending: str) -> None:
    middle = "" if ending else '{"name":"git_status","arguments":{}}'
    assert calls_in(beginning + middle + ending, TOOLS) == Found()


def test_a_text_beyond_all_measure_is_an_answer() -> None:
    content = "x" * LENGTH
    assert calls_in(f'{{"name":"read_file","arguments":{{"path":"{content}"}}}}', TOOLS) == Found()
