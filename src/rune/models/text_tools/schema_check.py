"""Values held against a JSON schema that may be another program's (docs/decisions/json-schema.md).

Nothing is fetched for a reference, no regular expression of a schema is run (one can run for ever), and a check
ends: schemas, values and the steps of a check are bounded.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from jsonschema import SchemaError, ValidationError, Validator

DEPTH: Final = 32
NODES: Final = 10_000
_SCHEMA_DEPTH: Final = 64
_SCHEMA_NODES: Final = 5_000
_STEPS: Final = 50_000
_SHOWN: Final = 80
_LISTED: Final = 12

_Keyword = Callable[["Validator", Any, Any, Mapping[str, Any]], Iterator["ValidationError"] | None]

_steps: ContextVar[int] = ContextVar("steps", default=0)


class UnusableSchemaError(Exception):
    """The schema itself cannot be checked against; the text says why. Never leaves this package."""


class _TooManyStepsError(Exception):
    """The check would take too long."""


def size_problem(value: object, *, depth: int = DEPTH, nodes: int = NODES) -> str:
    """Say what makes this no JSON value of a bounded size; "" when nothing does."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    count = 0
    while waiting:
        each, level = waiting.pop()
        count += 1
        if level > depth:
            return f"nested more than {depth} deep"
        if count > nodes:
            return f"more than {nodes:,} values"
        if isinstance(each, dict):
            members = cast("dict[object, object]", each)
            if not all(isinstance(key, str) for key in members):
                return "a key that is no string"
            waiting.extend((member, level + 1) for member in members.values())
        elif isinstance(each, list):
            waiting.extend((item, level + 1) for item in cast("list[object]", each))
        elif not (each is None or isinstance(each, str | int | float)):
            return f"a value that JSON does not have ({type(each).__name__})"
        elif isinstance(each, float) and not -float("inf") < each < float("inf"):
            return f"a number that JSON does not have ({each})"
    return ""


def problem(value: object, schema: Mapping[str, Any]) -> str:
    """Say where the value does not fit, what was expected and what is there; "" when it fits.

    Raises UnusableSchemaError.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - 50 ms that only a call pays for
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    try:
        validator = _validator(json.dumps(schema))
        _steps.set(_STEPS)
        found = best_match(validator.iter_errors(value))
    except _TooManyStepsError:
        return "arguments: too large to be checked"
    except Unresolvable as error:
        raise UnusableSchemaError(f"a reference leads nowhere: {error}") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnusableSchemaError(str(error) or type(error).__name__) from error
    return "" if found is None else _said(found)


@lru_cache(maxsize=64)
def _validator(text: str) -> "Validator":
    """Return what checks against a schema. Raises UnusableSchemaError where that is none."""
    from jsonschema import SchemaError, validators  # noqa: PLC0415 - see above
    from referencing import Registry  # noqa: PLC0415 - see above

    schema = json.loads(text)
    trouble = size_problem(schema, depth=_SCHEMA_DEPTH, nodes=_SCHEMA_NODES)
    if trouble:
        raise UnusableSchemaError(trouble)
    kind = _bounded(validators.validator_for(schema, default=validators.Draft202012Validator))
    try:
        validators.validator_for(schema, default=validators.Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise UnusableSchemaError(f"{_path(error)}: {error.message[:_SHOWN]}") from error
    registry: Registry[Any] = Registry()
    return kind(schema, registry=registry)  # an empty registry of its own: nothing is fetched


@lru_cache(maxsize=16)
def _bounded(kind: "type[Validator]") -> "type[Validator]":
    """Return the library's validator with counted steps and without what runs for long."""
    from jsonschema import validators  # noqa: PLC0415 - see above

    own: dict[str, _Keyword] = {name: _counted(check) for name, check in kind.VALIDATORS.items()}
    extra = own.get("additionalProperties")
    for name in ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems"):
        if name in own:
            own[name] = _unchecked
    if extra is not None:
        own["additionalProperties"] = lambda validator, value, instance, schema: (
            None if "patternProperties" in schema else extra(validator, value, instance, schema)
        )
    own["uniqueItems"] = _unique_items
    return validators.extend(kind, own)


def _counted(check: _Keyword) -> _Keyword:
    def counted(
        validator: "Validator", value: object, instance: object, schema: Mapping[str, Any]
    ) -> Iterator["ValidationError"] | None:
        left = _steps.get() - 1
        _steps.set(left)
        if left < 0:
            raise _TooManyStepsError
        return check(validator, value, instance, schema)

    return counted


def _unchecked(*_: object) -> None:
    """Let everything pass."""


def _unique_items(
    _validator: "Validator", value: object, instance: object, _schema: Mapping[str, Any]
) -> Iterator["ValidationError"]:
    """Check as the library does, but for time: it compares each with each where items cannot be sorted."""
    from jsonschema import ValidationError  # noqa: PLC0415 - see above

    if value and isinstance(instance, list):
        items = [json.dumps(item, sort_keys=True) for item in cast("list[object]", instance)]
        if len(set(items)) < len(items):
            yield ValidationError("expected items that differ")


def _said(error: "ValidationError") -> str:
    expected, got = _expected(error)
    return f"{_path(error)}: expected {expected}, {got}"


def _expected(error: "ValidationError") -> tuple[str, str]:
    rule, got = error.validator_value, f"got {shown(error.instance)}"
    match error.validator:
        case "required":
            missing = [f"`{name}`" for name in rule if name not in error.instance]
            expected, got = ", ".join(missing), "which is missing"
        case "additionalProperties" if rule is False:
            known = list(error.schema.get("properties", {}))
            unknown = [f"`{name}`" for name in error.instance if name not in known]
            expected, got = f"only {_listed(known)}", f"got {', '.join(unknown)[:_SHOWN]}"
        case "type":
            expected = rule if isinstance(rule, str) else " or ".join(rule)
        case "enum":
            expected = f"one of {_listed([shown(each) for each in rule])}"
        case "const":
            expected = shown(rule)
        case "anyOf" | "oneOf":
            expected = "one of the forms in the schema"
        case "uniqueItems":
            expected = "items that differ"
        case _:
            expected = f"{error.validator} {shown(rule)}"
    return expected, got


def _path(error: "ValidationError | SchemaError") -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return path.removeprefix(".") or "arguments"


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "") or "nothing"


def shown(value: object) -> str:
    """Return a value as a short piece of JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
