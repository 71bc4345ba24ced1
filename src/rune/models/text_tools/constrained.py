"""The constrained protocol: a model's every message is one JSON object, a call of a tool or its answer, and a schema
holds it to that (models.md, Action protocols). Everything here is pure.

The schema is live: a caller passes tools whose schemas it has narrowed to what is possible now (a path as an
enumeration of the files there), and says whether an answer is admissible. What stands in the prompt is built from the
tools as they are for the whole conversation, so that it stays as sent.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from rune.models.prompt_files import prompt
from rune.models.text_tools.examples import example, members
from rune.models.transport import ChatRequest, ModelInfo
from rune.records.models import ThinkLevel
from rune.records.tools import ToolCall, ToolSchema
from rune.text.storable import storable

TOOL: Final = "tool"
ARGUMENTS: Final = "arguments"
ANSWER: Final = "answer"

# The most that a grammar counts: llama.cpp writes each repetition out, and refuses a schema with too many.
_MOST_REPEATED: Final = 256

# What the servers' grammars understand. Words for readers (title, description, default) cost bytes and change nothing;
# a pattern or a format that a grammar does not know is a refused request. All of it is checked on what arrives.
_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_SCHEMA_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_VALUES: Final = frozenset({"type", "required", "enum", "const"})
_BOUNDS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength"})
_NUMBER_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})

# Ollama runs a model that thinks twice: freely, then held to the schema.
_THINK_FIRST: Final = frozenset({"ollama"})

_BACKTICKS: Final = re.compile(r"`{3,}")


def answer_schema(tools: Sequence[ToolSchema], *, answer: bool = True) -> bytes:
    """Return the JSON schema for the next move: an alternative a tool, and the answer where it is admissible.

    Raises ValueError when there is nothing to choose from.
    """
    definitions: dict[str, Any] = {}
    alternatives = [_call_schema(tool, definitions) for tool in tools]
    if answer:
        alternatives.append(_object({ANSWER: {"type": "string"}}))
    if not alternatives:
        raise ValueError("a move needs a tool to call, or an answer that is admissible")
    schema: dict[str, Any] = {"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0]
    if definitions:
        schema = schema | {"$defs": definitions}
    return storable(json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))).encode()


def constrained_request(
    request: ChatRequest, tools: Sequence[ToolSchema], *, answer: bool = True, think: ThinkLevel | None = "off"
) -> ChatRequest:
    """Return a request whose messages were rendered in the dialect `constrained`, held to one move. `think` is
    what `think_before` says. A move is the likeliest one, where nothing else is asked for: left to themselves, servers
    sample at 0.8, and a line that is to be copied into an edit is then often not the line. Who thinks first is left
    alone: thinking without chance goes round in circles.
    """
    schema = answer_schema(tools, answer=answer)
    likeliest = 0.0 if request.temperature is None and think in {None, "off"} else request.temperature
    return msgspec.structs.replace(request, tools=b"[]", format=schema, think=think, temperature=likeliest)


def think_before(info: ModelInfo, think: ThinkLevel | None) -> ThinkLevel | None:
    """Return how much a model may think before a constrained answer: as much as is asked for in so many words, where
    the server holds to the schema only what follows the thoughts; else not at all. None for a model that cannot think:
    some servers refuse the very word.
    """
    if "thinking" not in info.capabilities:
        return None
    return think if think is not None and info.provider in _THINK_FIRST else "off"


def instructions(tools: Sequence[ToolSchema]) -> str:
    """Return what stands in the prompt: how to answer, and the tools with an example each."""
    return prompt("constrained").replace("{tools}", "\n\n".join(_described(tool) for tool in tools))


def call_text(call: ToolCall) -> str:
    """Return a past call as the model would have written it, its arguments' keys sorted as the journal sorts them.

    Raises ValueError for a number that JSON lacks.
    """
    return _move(call.name, call.arguments, sort_keys=True)


def answer_text(text: str) -> str:
    """Return a past answer as the model would have written it."""
    return f'{{"{ANSWER}": {_dumps(text)}}}'


def result_text(tool_name: str, content: str) -> str:
    """Return what a call came to, as a message to the model."""
    return f"Result of {storable(tool_name)}:\n{fenced(content)}"


def fenced(content: str) -> str:
    """Return what a tool found as data: between fences that nothing in it can close."""
    content = storable(content)
    longest = max((len(run) for run in _BACKTICKS.findall(content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{content}\n{fence}"


def _call_schema(tool: ToolSchema, definitions: dict[str, Any]) -> dict[str, Any]:
    # References begin at the root of what is sent; there the names of two tools must not meet.
    names: dict[str, str] = {}
    for word in _DEFINITIONS:
        for name in tool.parameters.get(word, {}):
            names[f"#/{word}/{name}"] = f"{tool.name}-{name}"
    for word in _DEFINITIONS:
        for name, schema in tool.parameters.get(word, {}).items():
            definitions[f"{tool.name}-{name}"] = _sent(schema, names)
    arguments: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    arguments |= members(_sent(tool.parameters, names))
    return _object({TOOL: {"const": tool.name}, ARGUMENTS: arguments})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _sent(schema: object, names: Mapping[str, str]) -> object:
    """Return the part of a schema that a grammar can hold a model to."""
    if isinstance(schema, bool):
        return schema
    given = members(schema)
    kept: dict[str, object] = {}
    for word, value in given.items():
        if word == "$ref":
            kept[word] = f"#/$defs/{names[value]}" if value in names else value
        elif word == "properties":
            kept[word] = {name: _sent(each, names) for name, each in value.items()}
        elif word in {"items", "additionalProperties"}:
            kept[word] = _sent(value, names)
        elif word in _SCHEMA_LISTS:
            kept[word] = [_sent(each, names) for each in value]
        elif word in _VALUES or _is_bound(word, value, given):
            kept[word] = value
    return kept


def _is_bound(word: str, value: Any, given: Mapping[str, Any]) -> bool:  # noqa: ANN401 - a schema's value
    if word in _NUMBER_BOUNDS:
        return given.get("type") == "integer"
    return word in _BOUNDS and value <= _MOST_REPEATED


def _described(tool: ToolSchema) -> str:
    lines = [f"{tool.name}: {' '.join(tool.description.split())}"]
    lines += _arguments(tool.parameters)
    return "\n".join([*lines, _move(tool.name, example(tool.parameters), sort_keys=False)])


def _arguments(parameters: Mapping[str, Any]) -> Iterator[str]:
    required = parameters.get("required", ())
    properties: Mapping[str, Any] = parameters.get("properties", {})
    for name, schema in properties.items():
        said = " ".join(str(members(schema).get("description", "")).split())
        left_out = "" if name in required else " (may be left out)"
        if said or left_out:
            yield f"- {name}{left_out}{f': {said}' if said else ''}"


def _move(name: str, arguments: object, *, sort_keys: bool) -> str:
    return f'{{"{TOOL}": {_dumps(name)}, "{ARGUMENTS}": {_dumps(arguments, sort_keys=sort_keys)}}}'


def _dumps(value: object, *, sort_keys: bool = False) -> str:
    # With blanks, as models write JSON when nothing holds them: what was sent is likelier to be what they say.
    return storable(json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=sort_keys))
