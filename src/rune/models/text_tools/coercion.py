"""Numbers and booleans that a model wrote as strings, made what the schema asks for. Never with loss. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

Schema = Mapping[str, Any]

_ALTERNATIVES: Final = 64
_HOPS: Final = 16
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_BOOLEANS: Final = {"true": True, "false": False}
_DIGITS: Final = 15  # that a float holds, whichever they are
_EXACT: Final = 2**53
_KINDS: Final = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (dict, "object"))


def coerced(value: Any, schema: object, root: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy of the value in which strings are what `schema` (a part of `root`) wants instead of a string.

    What does not fit is left as it is: the check that follows names it.
    """
    return _coerced(value, _plain_schemas(schema, root), root)


def _coerced(value: Any, schemas: Sequence[Schema], root: Schema) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _coerced(each, _under(schemas, key, root), root) for key, each in members.items()}
    if isinstance(value, list):
        return _items(cast("list[Any]", value), schemas, root)
    return _scalar(value, _kinds(schemas)) if isinstance(value, str | float) else value


def _scalar(value: Any, kinds: frozenset[str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and "integer" in kinds and "number" not in kinds:
        return int(value) if value.is_integer() and abs(value) <= _EXACT else value
    if not isinstance(value, str) or "string" in kinds:
        return value
    text = value.strip()
    if kinds & {"integer", "number"} and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return _number(text) if math.isfinite(_number(text)) else value
    if "boolean" in kinds:
        return _BOOLEANS.get(text.lower(), value)
    return value


def _number(text: str) -> float:
    digits = sum(character.isdigit() for character in re.split("[eE]", text)[0].lstrip("-0."))
    number = float(text)
    lost = digits > _DIGITS or (number == 0 and digits > 0)
    return math.inf if lost else number


def _under(schemas: Sequence[Schema], key: str, root: Schema) -> list[Schema]:
    found: list[object] = []
    for schema in schemas:
        properties = schema.get("properties")
        named = cast("Schema", properties).get(key) if isinstance(properties, dict) else None
        found.append(schema.get("additionalProperties") if named is None else named)
    return _joined(found, root)


def _items(values: Sequence[Any], schemas: Sequence[Schema], root: Schema) -> list[Any]:
    # Before draft 2020-12 a list under `items` was what `prefixItems` is now.
    firsts = [_listed(schema.get("prefixItems")) or _listed(schema.get("items")) for schema in schemas]
    places = max(map(len, firsts), default=0)
    rest = _joined([schema.get("items") for schema in schemas], root)
    made: list[Any] = []
    for place, value in enumerate(values):
        if place < places:
            own = [first[place] for first in firsts if place < len(first)]
            made.append(_coerced(value, _joined(own, root), root))
        else:
            made.append(_coerced(value, rest, root))
    return made


def _joined(schemas: Sequence[object], root: Schema) -> list[Schema]:
    found: list[Schema] = []
    for schema in schemas:
        if len(found) >= _ALTERNATIVES:
            break
        found.extend(_plain_schemas(schema, root))
    return found[:_ALTERNATIVES]


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _plain_schemas(schema: object, root: Schema) -> list[Schema]:
    """Return the schema and all that it is put together from, references within `root` followed."""
    found: list[Schema] = []
    waiting: list[tuple[object, int]] = [(schema, 0)]
    while waiting and len(found) < _ALTERNATIVES:
        each, hops = waiting.pop()
        if not isinstance(each, dict) or hops > _HOPS:
            continue
        part = cast("Schema", each)
        found.append(part)
        reference = part.get("$ref")
        if isinstance(reference, str):
            waiting.append((_referenced(reference, root), hops + 1))
        for combined in ("allOf", "anyOf", "oneOf"):
            branches = part.get(combined)
            if isinstance(branches, list):
                waiting.extend((branch, hops + 1) for branch in cast("list[object]", branches)[:_ALTERNATIVES])
    return found


def _referenced(reference: str, root: Schema) -> object:
    """Return what a JSON pointer into the schema itself names, else None."""
    if not reference.startswith("#"):
        return None
    place: Any = root
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        place = cast("Schema", place).get(name) if isinstance(place, dict) else None
    return place


def _kinds(schemas: Sequence[Schema]) -> frozenset[str]:
    """Return the types that the schemas name, in `type`, `const` or `enum`; empty when none does."""
    return frozenset(kind for schema in schemas for kind in _kinds_of(schema))


def _kinds_of(schema: Schema) -> Iterator[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        yield kind
        return
    if isinstance(kind, list):
        yield from (each for each in cast("list[Any]", kind) if isinstance(each, str))
        return
    values: list[Any] = [schema["const"]] if "const" in schema else []
    listed = schema.get("enum")
    if isinstance(listed, list):
        values.extend(cast("list[Any]", listed))
    for value in values:
        yield next((name for known, name in _KINDS if isinstance(value, known)), "null")
