"""What a real server gave as text although the model had asked for a tool."""

import json
from pathlib import Path

import pytest

from rune.models.text_tools.repair import CallHold, Found, calls_in
from rune.records.tools import ToolSchema

RECORDINGS = Path(__file__).parents[2] / "data" / "ollama"
TOOLS = [
    ToolSchema(
        name="read_file",
        description="Read a text file and return its content",
        parameters={
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string"}, "start_line": {"type": "integer"}},
        },
    ),
    ToolSchema(
        name="write_file",
        description="Write text to a file, replacing it",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    ),
]


def _pieces(recording: str) -> list[str]:
    """Return the pieces of the answer's text; each line of JSON is a chunk of its own on this wire."""
    wire = (RECORDINGS / f"{recording}.wire.response.bin").read_bytes()
    lines = [json.loads(line) for line in wire.split(b"\n") if line.startswith(b'{"model"')]
    return [line["message"]["content"] for line in lines]


@pytest.mark.parametrize(
    ("recording", "name", "arguments"),
    [
        ("tool_stream_fewshot_qwen", "read_file", {"path": "calc.py"}),
        ("tool_nonstream_fewshot_qwen", "read_file", {"path": "calc.py"}),
        ("tool_stream_qwen", "read_file", {"path": "calc.py", "start_line": 0}),
        ("tool_nonstream_qwen", "read_file", {"path": "calc.py", "start_line": 0}),
        ("tool_stream_qwen_native", "read_file", {"path": "calc.py", "start_line": 1}),
        ("tool_nonstream_qwen_native", "read_file", {"path": "calc.py", "start_line": 1}),
        (
            "tool_result_followup_qwen",
            "write_file",
            {"path": "calc.py", "content": "def add(a, b):\n    return a - b"},
        ),
    ],
)
def test_a_recorded_leak_is_held_back_and_read(recording: str, name: str, arguments: dict[str, object]) -> None:
    pieces, hold = _pieces(recording), CallHold([tool.name for tool in TOOLS])
    assert all(hold.feed(piece) for piece in pieces)
    found = calls_in("".join(pieces), TOOLS)
    assert [(call.name, call.arguments) for call in found.calls] == [(name, arguments)]


@pytest.mark.parametrize(
    "recording",
    [
        "tool_offered_not_used_qwen",
        "tool_offered_not_used_qwen_native",
        "tool_cut_by_num_predict_qwen",
        "tool_result_followup_qwen_native",
        "schema_with_tools_qwen",
    ],
)
def test_a_recorded_answer_is_no_call(recording: str) -> None:
    assert calls_in("".join(_pieces(recording)), TOOLS) == Found()


def test_a_recorded_call_that_was_cut_off_is_told_apart() -> None:
    found = calls_in("".join(_pieces("tool_cut_in_call_fewshot_qwen")), TOOLS)
    assert not found.calls
    assert found.unusable is not None
    assert (found.unusable.name, found.unusable.reason) == ("read_file", "the text ends in the middle of the call")
