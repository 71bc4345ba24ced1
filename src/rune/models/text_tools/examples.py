"""A value that fits a JSON schema, to show a model how a call looks."""

from collections.abc import Mapping
from typing import Any, Final, cast

# A schema may refer to itself.
_DEEPEST: Final = 8


def example(parameters: Mapping[str, Any]) -> object:
    """Return arguments that fit, the required ones only: a schema's own example (`examples`, `enum`, `const`,
    `default`) where it has one, else the argument's name in angle brackets.
    """
    return _value(parameters, parameters, "", 0)


def members(schema: object) -> dict[str, Any]:
    """Return what a schema says; empty for one that is not an object."""
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}


def _value(schema: object, root: Mapping[str, Any], name: str, depth: int) -> object:
    given = _resolved(members(schema), root)
    listed = given.get("examples") or given.get("enum")
    if listed:
        return listed[0]
    fixed = given.get("const", given.get("default"))
    if fixed is not None or depth > _DEEPEST:
        return fixed
    for word in ("anyOf", "oneOf", "allOf"):
        if given.get(word):
            return _value(given[word][0], root, name, depth + 1)
    return _of_kind(given, root, name, depth)


def _of_kind(given: Mapping[str, Any], root: Mapping[str, Any], name: str, depth: int) -> object:
    kinds: list[str] | str = given.get("type", "object" if "properties" in given else "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        properties: Mapping[str, Any] = given.get("properties", {})
        required = given.get("required", ())
        return {key: _value(each, root, key, depth + 1) for key, each in properties.items() if key in required}
    if kind == "array":
        return [_value(given.get("items"), root, name, depth + 1)]
    plain = {"integer": given.get("minimum", 1), "number": given.get("minimum", 1), "boolean": True, "null": None}
    return plain.get(kind, f"<{name}>")


def _resolved(schema: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    found: object = root
    for step in reference[2:].split("/"):
        found = members(found).get(step)
    return members(found)
