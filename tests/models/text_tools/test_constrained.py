"""The schema of a move, and how moves stand in a prompt."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.models.text_tools.constrained import (
    answer_schema,
    answer_text,
    call_text,
    constrained_request,
    instructions,
    result_text,
    think_before,
)
from rune.models.text_tools.examples import example
from rune.models.text_tools.schema_check import problem
from rune.models.transport import Capability, ChatRequest, LoadOptions, ModelInfo
from rune.records.models import ThinkLevel
from rune.records.tools import ToolCall, ToolSchema

EDIT: dict[str, Any] = {
    "type": "object",
    "title": "Edit",
    "properties": {"search": {"type": "string", "maxLength": 90_000}, "replace": {"type": "string"}},
    "required": ["search", "replace"],
}
READ = ToolSchema(
    name="read_file",
    description="Read a file.\nUse it before you edit.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Which file.", "enum": ["calc.py"], "pattern": "calc"},
            "limit": {"type": "integer", "minimum": 1, "default": 200},
        },
        "required": ["path"],
    },
)
CHANGE = ToolSchema(
    name="edit_file",
    description="Change a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}, "minItems": 1},
        },
        "required": ["path", "edits"],
        "$defs": {"Edit": EDIT},
    },
)
OTHER = ToolSchema(
    name="other",
    description="Do something else.",
    parameters={
        "type": "object",
        "properties": {"edit": {"$ref": "#/$defs/Edit"}},
        "$defs": {"Edit": {"type": "integer"}},
    },
)
TOOLS = [READ, CHANGE, OTHER]


def schema_of(*tools: ToolSchema, answer: bool = True) -> dict[str, Any]:
    return json.loads(answer_schema(tools, answer=answer))


def fits(move: object, schema: dict[str, Any]) -> bool:
    return not problem(move, schema)


@pytest.mark.parametrize(
    "move",
    [
        {"tool": "read_file", "arguments": {"path": "calc.py"}},
        {"tool": "edit_file", "arguments": {"path": "x", "edits": [{"search": "a", "replace": "b"}]}},
        {"tool": "other", "arguments": {"edit": 3}},
        {"tool": "other", "arguments": {}},
        {"answer": "Done."},
    ],
)
def test_each_tool_and_the_answer_are_a_move(move: object) -> None:
    assert fits(move, schema_of(*TOOLS))


@pytest.mark.parametrize(
    "move",
    [
        {"tool": "read_file", "arguments": {"path": "other.py"}},
        {"tool": "read_file", "arguments": {"path": "calc.py", "mode": "w"}},
        {"tool": "read_file"},
        {"tool": "edit_file", "arguments": {"path": "x", "edits": [3]}},
        {"tool": "other", "arguments": {"edit": {"search": "a", "replace": "b"}}},
        {"tool": "rm", "arguments": {}},
        {"tool": "other", "arguments": {}, "answer": "Done."},
        {"answer": 3},
        {},
        "Done.",
    ],
)
def test_nothing_else_is_a_move(move: object) -> None:
    assert not fits(move, schema_of(*TOOLS))


def test_an_answer_that_is_not_admissible_is_no_move() -> None:
    assert not fits({"answer": "Done."}, schema_of(*TOOLS, answer=False))
    assert not fits({"answer": "Done."}, schema_of(READ, answer=False))
    with pytest.raises(ValueError, match="a move needs"):
        answer_schema((), answer=False)


def test_a_narrowed_schema_narrows_the_move() -> None:
    narrowed = {**CHANGE.parameters, "properties": {**CHANGE.parameters["properties"], "path": {"enum": ["calc.py"]}}}
    schema = schema_of(msgspec.structs.replace(CHANGE, parameters=narrowed))
    move: dict[str, Any] = {"path": "calc.py", "edits": [{"search": "a", "replace": "b"}]}
    assert fits({"tool": "edit_file", "arguments": move}, schema)
    assert not fits({"tool": "edit_file", "arguments": move | {"path": "x.py"}}, schema)


def test_what_a_grammar_cannot_hold_is_left_to_the_check_of_what_arrives() -> None:
    sent = answer_schema(TOOLS).decode()
    assert not [word for word in ("pattern", "title", "description", "default", "90000") if word in sent]
    assert '"minimum":1' in sent


def test_a_property_may_be_named_like_a_word_of_schemas() -> None:
    odd = ToolSchema(
        name="odd",
        description="",
        parameters={"type": "object", "properties": {"title": {"type": "string"}, "pattern": {"type": "integer"}}},
    )
    assert fits({"tool": "odd", "arguments": {"title": "x", "pattern": 1}}, schema_of(odd))


def test_a_request_is_held_to_one_move_and_offers_nothing_natively() -> None:
    request = ChatRequest(model="m", messages=b"[]", tools=b"[{}]", options=LoadOptions(num_ctx=4096), estimated=1)
    held = constrained_request(request, TOOLS)
    assert (held.tools, held.format, held.think) == (b"[]", answer_schema(TOOLS), "off")
    assert constrained_request(request, TOOLS, think="on").think == "on"


def test_a_model_thinks_before_a_move_only_when_asked_to_and_where_its_server_lets_it() -> None:
    def level(provider: str, think: ThinkLevel | None, *, able: bool = True) -> ThinkLevel | None:
        capabilities: frozenset[Capability] = frozenset({"chat", "thinking"} if able else {"chat"})
        return think_before(ModelInfo(name="m", provider=provider, capabilities=capabilities), think)

    assert (level("ollama", "high"), level("ollama", None), level("ollama", "off")) == ("high", "off", "off")
    assert (level("embedded", "high"), level("openai-compatible", None)) == ("off", "off")
    assert level("openai-compatible", "on", able=False) is None


def test_the_prompt_shows_each_tool_with_an_example_that_is_a_move() -> None:
    text = instructions(TOOLS)
    moves = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [move.get("tool") for move in moves] == ["read_file", "edit_file", "other", None]
    assert all(fits(move, schema_of(*TOOLS)) for move in moves)
    assert "read_file: Read a file. Use it before you edit.\n- path: Which file.\n- limit (may be left out)\n" in text


def test_the_prompt_stays_short() -> None:
    assert len(instructions(())) < 500


def test_an_example_of_anything_can_be_made() -> None:
    parameters: dict[str, Any] = {
        "properties": {
            "a": {"type": "array", "items": {"type": "integer", "minimum": 3}},
            "b": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "c": {"type": ["boolean", "null"]},
            "d": {"$ref": "#/$defs/Node"},
            "e": True,
            "f": {"examples": ["src/calc.py"]},
        },
        "required": ["a", "b", "c", "d", "e", "f"],
        "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]},
        },
    }
    made: Any = example(parameters)
    assert json.loads(json.dumps(made)) == made
    assert (made["a"], made["b"], made["c"], made["e"], made["f"]) == ([3], None, True, "<e>", "src/calc.py")


def test_a_past_call_has_sorted_keys_at_every_depth() -> None:
    call = ToolCall(id="x", name="t", arguments={"b": [{"z": 1, "y": 2}], "a": 1.5})
    assert call_text(call) == '{"tool": "t", "arguments": {"a": 1.5, "b": [{"y": 2, "z": 1}]}}'


@given(st.text(), st.text())
def test_what_stands_for_a_past_move_reads_back(name: str, text: str) -> None:
    assert json.loads(answer_text(text)) == {"answer": text}
    move = json.loads(call_text(ToolCall(id="x", name=name, arguments={text: name})))
    assert move == {"tool": name, "arguments": {text: name}}


@given(st.text(st.sampled_from("`\n x"), max_size=30))
def test_no_result_can_close_its_fence(content: str) -> None:
    head, fence, *inside, end = result_text("read_file", content).split("\n")
    assert (head, fence) == ("Result of read_file:", end)
    assert "\n".join(inside) == content
    assert fence not in content
