"""What every record has in common, and the two ways between a record and plain JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from rune.errors import InvalidRecordError

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of stored records: immutable, keyword-only, strict on decoding (spine.md, Records).

    A default is a convenience of the constructor only: a stored value that lacks the field is refused.
    """


def to_builtins(record: msgspec.Struct) -> dict[str, Any]:
    """Return the record as JSON-able builtins; enums become their values, tuples lists."""
    return msgspec.to_builtins(record)


def from_json(data: bytes | msgspec.Raw, kind: type[R]) -> R:
    """Decode one record strictly. Raises InvalidRecordError, which names the field."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRecordError(kind.__name__, field="record", expected="JSON", got=str(error)) from error
    return from_builtins(value, kind)


def from_builtins(value: object, kind: type[R]) -> R:
    """Convert plain values to one record strictly. Raises InvalidRecordError."""
    try:
        record = msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid(kind, error) from error
    # Defaults would hide a missing field, at any depth: what comes out must be what went in.
    missing = _first_missing(value, msgspec.to_builtins(record), "")
    if missing:
        raise InvalidRecordError(kind.__name__, field=missing, expected="a value", got="nothing")
    return record


def _first_missing(given: object, whole: object, path: str) -> str:
    """Return the path of the first key that `whole` has and `given` lacks; empty when there is none."""
    if isinstance(given, Mapping) and isinstance(whole, Mapping):
        given_map, whole_map = cast("Mapping[str, object]", given), cast("Mapping[str, object]", whole)
        for key, inner in whole_map.items():
            below = f"{path}.{key}" if path else key
            if key not in given_map:
                return below
            if found := _first_missing(given_map[key], inner, below):
                return found
    elif isinstance(given, list | tuple) and isinstance(whole, list | tuple):
        pairs = zip(cast("Sequence[object]", given), cast("Sequence[object]", whole), strict=True)
        for index, (left, right) in enumerate(pairs):
            if found := _first_missing(left, right, f"{path}[{index}]"):
                return found
    return ""


def _invalid(kind: type[msgspec.Struct], error: Exception) -> InvalidRecordError:
    # msgspec says "Expected `int`, got `str` - at `$.seq`"; the parts are what a person needs.
    text, _, path = str(error).partition(" - at ")
    where = path.strip("`").removeprefix("$").lstrip(".")
    for start, expected, got in (
        ("Object contains unknown field ", "no such field", "one"),
        ("Object missing required field ", "a value", "nothing"),
    ):
        if text.startswith(start):
            name = text.removeprefix(start).strip("`")
            return InvalidRecordError(
                kind.__name__, field=f"{where}.{name}" if where else name, expected=expected, got=got
            )
    expected, _, got = text.partition(", got ")
    return InvalidRecordError(
        kind.__name__,
        field=where or "record",
        expected=expected.removeprefix("Expected ").strip("`"),
        got=got.strip("`") or text,
    )
