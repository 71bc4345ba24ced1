"""From types to what a model is offered, and back: the arguments of a tool are a msgspec struct."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rune.errors import InvalidArgumentsError
from rune.records.tools import ToolSchema

A = TypeVar("A", bound="Arguments")

_REFERENCE = "#/$defs/"
_CHECKED = frozenset({"title", "additionalProperties", "minLength", "maxLength", "minimum", "maximum", "maxItems"})


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of a tool's arguments. Each field is `Annotated[T, msgspec.Meta(description=..., examples=[...])]`; a
    default makes it one that may be left out. What a model reads is written for a small one: a few plain words.
    """


def schema_of(name: str, description: str, arguments: type[Arguments]) -> ToolSchema:
    """Return a tool as it is offered: a JSON schema object with all references followed and without what a model does
    not need: titles, bounds and what else msgspec checks on arrival. It stands in every prompt.
    """
    (whole,), definitions = msgspec.json.schema_components([arguments], ref_template=f"{_REFERENCE}{{name}}")
    return ToolSchema(name=name, description=description, parameters=_plain(whole, definitions))


def arguments_of(kind: type[A], given: Mapping[str, Any], tool: str) -> A:
    """Return a call's arguments, typed. Raises InvalidArgumentsError, which names the argument and the tool."""
    try:
        return msgspec.convert(dict(given), type=kind)
    except msgspec.ValidationError as error:
        raise InvalidArgumentsError(f"{tool}: {error}") from error


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a JSON schema's parts
    if isinstance(schema, list):
        return [_plain(each, definitions) for each in schema]  # pyright: ignore[reportUnknownVariableType] - as above
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - as above
    if isinstance(reference, str):
        return _plain(definitions[reference.removeprefix(_REFERENCE)], definitions)
    whole = "properties" in schema
    return {
        key: _named(value, definitions) if whole and key == "properties" else _plain(value, definitions)
        for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType] - as above
        if not (key in _CHECKED or (whole and key == "description") or (key == "required" and not value))
    }


def _named(properties: Any, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
    # An argument may be called like a word of schemas.
    return {name: _plain(schema, definitions) for name, schema in properties.items()}
