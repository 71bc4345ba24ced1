"""Arguments are held against the tool's schema: made what it asks for where nothing is lost, else refused in words."""

import copy
import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.errors import InvalidArgumentsError
from rune.models.text_tools.arguments import fitted
from rune.records.tools import ToolSchema

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
FLAG = {"type": "boolean"}
TEXT = {"type": "string"}


def _tool(schema: dict[str, Any]) -> ToolSchema:
    return ToolSchema(name="t", description="", parameters=schema)


def _one(schema: Any, **more: Any) -> ToolSchema:
    return _tool({"type": "object", "properties": {"x": schema}, "additionalProperties": False, **more})


def _problem(tool: ToolSchema, arguments: object) -> str:
    with pytest.raises(InvalidArgumentsError) as caught:
        fitted(tool, arguments)
    return caught.value.message.partition("\n")[0]


@pytest.mark.parametrize(
    ("schema", "given_value", "taken"),
    [
        (INTEGER, "1", 1),
        (INTEGER, " -12\n", -12),
        (INTEGER, 3.0, 3),
        (NUMBER, "1.5", 1.5),
        (NUMBER, "2", 2),
        (NUMBER, "1e3", 1000.0),
        (FLAG, "true", True),
        (FLAG, "False", False),
        (TEXT, "1", "1"),
        (TEXT, "true", "true"),
        ({"type": ["integer", "null"]}, "4", 4),
        ({"type": ["string", "integer"]}, "4", "4"),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "4", 4),
        ({"anyOf": [TEXT, INTEGER]}, "4", "4"),
        ({"enum": [1, 2, 3]}, "2", 2),
        ({"enum": ["1", "2"]}, "2", "2"),
        ({"type": "array", "items": INTEGER}, ["1", 2, "3"], [1, 2, 3]),
        ({"type": "array", "prefixItems": [TEXT, FLAG]}, ["1", "true"], ["1", True]),
        ({"type": "object", "properties": {"y": {"type": "array", "items": FLAG}}}, {"y": ["TRUE"]}, {"y": [True]}),
        ({"type": "object", "additionalProperties": NUMBER}, {"a": "0.25"}, {"a": 0.25}),
        ({}, "1", "1"),
        (True, ["1"], ["1"]),
    ],
)
def test_a_value_becomes_what_the_schema_asks_for(schema: Any, given_value: Any, taken: Any) -> None:
    x = fitted(_one(schema), {"x": given_value})["x"]
    assert (x, type(x)) == (taken, type(taken))


@pytest.mark.parametrize(
    ("schema", "given_value"),
    [
        (INTEGER, "1.5"),
        (INTEGER, "1.0"),
        (INTEGER, "007"),
        (INTEGER, "+1"),
        (INTEGER, "1_000"),
        (INTEGER, "٣"),
        (INTEGER, "99999999999999999999"),
        (INTEGER, 1.5),
        (INTEGER, True),
        (INTEGER, ""),
        (NUMBER, "1e999"),
        (NUMBER, "nan"),
        (NUMBER, "0.12345678901234567"),
        (NUMBER, "1e-999"),
        (FLAG, "yes"),
        (FLAG, "1"),
        (FLAG, 1),
        (TEXT, 1),
        (TEXT, None),
        ({"type": "array", "items": TEXT}, "a"),
        ({"type": "object"}, "{}"),
    ],
)
def test_what_would_lose_or_guess_is_refused(schema: Any, given_value: Any) -> None:
    assert _problem(_one(schema), {"x": given_value}).startswith("x: expected ")


def test_a_string_is_unwrapped_once() -> None:
    assert fitted(_one(INTEGER), '{"x": "1"}') == {"x": 1}
    assert _problem(_one(INTEGER), '"{\\"x\\": 1}"').startswith("arguments: expected an object, got ")
    assert _problem(_one(INTEGER), "x=1") == 'arguments: expected a JSON object, got "x=1"'


@pytest.mark.parametrize("arguments", [None, [], 1, True])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    assert _problem(_one(INTEGER), arguments) == f"arguments: expected an object, got {json.dumps(arguments)}"


EDITS = _tool(
    {
        "type": "object",
        "properties": {
            "path": TEXT,
            "mode": {"enum": ["fast", "slow"]},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": TEXT, "new": TEXT, "count": {"type": "integer", "minimum": 1}},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "arguments: expected `path`, which is missing"),
        ({"path": "a", "edits": [{"old": "x"}]}, "edits[0]: expected `new`, which is missing"),
        (
            {"path": "a", "edits": [{"old": "x", "new": "y", "count": 0}]},
            "edits[0].count: expected minimum 1, got 0",
        ),
        ({"path": "a", "mode": "quick"}, 'mode: expected one of "fast", "slow", got "quick"'),
        ({"path": "a", "file": 1}, "arguments: expected only path, mode, edits, got `file`"),
        ({"path": ["a"]}, 'path: expected string, got ["a"]'),
        ({"path": "a", "edits": {}}, "edits: expected array, got {}"),
    ],
)
def test_the_message_names_the_place_what_was_expected_and_what_was_there(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        fitted(EDITS, arguments)
    first, second = caught.value.message.split("\n")
    assert first == message
    assert json.loads(second.removeprefix("schema of t: ")) == EDITS.parameters
    assert caught.value.retryable


def test_a_message_stays_short() -> None:
    long = {"x": {"enum": [f"file{number}.py" for number in range(500)]}}
    with pytest.raises(InvalidArgumentsError) as caught:
        fitted(_tool({"type": "object", "properties": long}), {"x": "y" * 10_000})
    assert "and 488 more" in caught.value.message
    assert len(caught.value.message) < 3_000


def test_what_was_given_is_left_as_it_is() -> None:
    given_arguments = {"x": {"y": ["1"]}}
    before = copy.deepcopy(given_arguments)
    schema = {"type": "object", "properties": {"y": {"type": "array", "items": INTEGER}}}
    assert fitted(_one(schema), given_arguments) == {"x": {"y": [1]}}
    assert given_arguments == before


def test_a_reference_within_the_schema_is_followed() -> None:
    tool = _one({"$ref": "#/$defs/count"}, **{"$defs": {"count": INTEGER}})
    assert fitted(tool, {"x": "3"}) == {"x": 3}
    assert _problem(tool, {"x": "three"}) == 'x: expected integer, got "three"'


def test_a_tree_described_by_itself_is_checked() -> None:
    node = {"type": "object", "properties": {"value": INTEGER, "next": {"$ref": "#/$defs/node"}}, "required": ["value"]}
    tool = _one({"$ref": "#/$defs/node"}, **{"$defs": {"node": node}})
    assert fitted(tool, {"x": {"value": "1", "next": {"value": "2"}}}) == {"x": {"value": 1, "next": {"value": 2}}}
    assert _problem(tool, {"x": {"value": 1, "next": {}}}) == "x.next: expected `value`, which is missing"


def test_a_schema_of_an_earlier_draft_is_understood() -> None:
    tool = _tool(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"x": {"type": "array", "items": [INTEGER, TEXT]}},
        }
    )
    assert fitted(tool, {"x": ["1", "1"]}) == {"x": [1, "1"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "file:///etc/hostname"},
        {"$ref": "#/nowhere"},
        {"$ref": "#/properties/x"},
        {"type": "text"},
        {"type": 7},
        {"properties": []},
        {"minimum": "many"},
        {"anyOf": 3},
        {"required": "x"},
    ],
)
def test_a_schema_that_cannot_be_used_is_the_tools_fault_not_the_models(schema: Any) -> None:
    with pytest.raises(InvalidArgumentsError, match="the schema of t cannot be used") as caught:
        fitted(_one(schema), {"x": 1})
    assert not caught.value.retryable


def test_nothing_is_fetched_for_a_reference() -> None:
    asked: list[str] = []

    class Schemas(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with ThreadingHTTPServer(("127.0.0.1", 0), Schemas) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/schema.json"
        with pytest.raises(InvalidArgumentsError, match="a reference leads nowhere"):
            fitted(_one({"$ref": address}), {"x": 1})
        server.shutdown()
    assert asked == []


def _doubled(levels: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"$defs": {**defs, f"d{levels}": INTEGER}}


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (_one({"$ref": "#/$defs/d0"}, **_doubled(40)), {"x": 1}),
        (_one({"type": "array", "items": {"anyOf": [{"const": n} for n in range(400)]}}), {"x": [-1] * 9_000}),
        (_one({"type": "array", "uniqueItems": True}), {"x": [{"a": n} for n in range(4_900)] + [{"a": 0}]}),
        (_one({}), {"x": _nested(100_000)}),
        (_one({}), {"x": list(range(200_000))}),
    ],
    ids=["doubling references", "many forms", "unlike items", "deep", "wide"],
)
def test_a_check_ends_soon_whatever_the_schema_and_the_value(tool: ToolSchema, arguments: Any) -> None:
    fitted(_one(INTEGER), {"x": 1})  # the library is loaded
    started = time.process_time()
    assert _problem(tool, arguments)
    assert time.process_time() - started < 2


def test_a_regular_expression_of_a_schema_is_never_run() -> None:
    slow = "(a+)+$"
    tool = _tool(
        {
            "type": "object",
            "properties": {"x": {"type": "string", "pattern": slow}},
            "patternProperties": {slow: TEXT},
            "additionalProperties": False,
        }
    )
    assert fitted(tool, {"x": "a" * 60 + "!", "a" * 60 + "!": "y"})


def test_the_library_is_loaded_by_the_first_call_only() -> None:
    script = "import rune.models.text_tools.repair, sys; print([m for m in sys.modules if m.startswith('jsonschema')])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["1", "true", "1.5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
_SCHEMAS = st.recursive(
    st.sampled_from(
        [INTEGER, NUMBER, FLAG, TEXT, {}, True, False, {"enum": [1, "a", None]}, {"$ref": "#/properties/x"}]
    ),
    lambda inner: (
        inner.map(lambda each: {"type": "array", "items": each})
        | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(
            lambda each: {"type": "object", "properties": each}
        )
        | st.lists(inner, min_size=1, max_size=2).map(lambda each: {"anyOf": each})
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(_SCHEMAS, st.dictionaries(st.sampled_from("xyz"), _VALUES, max_size=3))
def test_whatever_comes_is_taken_whole_or_refused_in_words(schema: Any, arguments: Any) -> None:
    tool = _one(schema, additionalProperties=True)
    try:
        taken = fitted(tool, arguments)
    except InvalidArgumentsError as error:
        assert error.message
    else:
        assert taken.keys() == arguments.keys()
        assert fitted(tool, taken) == taken
