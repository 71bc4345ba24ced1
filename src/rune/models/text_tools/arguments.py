"""What a model gave as arguments, held against the tool's JSON schema (models.md, Repair). Pure."""

import json
from typing import Any, Final, cast

from rune.errors import InvalidArgumentsError
from rune.models.text_tools.coercion import coerced
from rune.models.text_tools.loose_json import decoded
from rune.models.text_tools.schema_check import UnusableSchemaError, problem, shown, size_problem
from rune.records.tools import ToolSchema
from rune.text.storable import is_storable

_SCHEMA_SHOWN: Final = 2_000


def fitted(tool: ToolSchema, arguments: object) -> dict[str, Any]:
    """Return the arguments as the tool's schema wants them; what was given is left as it is.

    A JSON string is unwrapped once; numbers and booleans in strings become what the schema asks for, where nothing
    is lost. Raises InvalidArgumentsError for anything else: its first line names the place, what was expected and
    what was there, its second the schema.
    """
    if isinstance(arguments, str):
        try:
            arguments = decoded(arguments)
        except ValueError:
            raise _refused(tool, f"arguments: expected a JSON object, got {shown(arguments)}") from None
    if not isinstance(arguments, dict):
        raise _refused(tool, f"arguments: expected an object, got {shown(arguments)}")
    trouble = size_problem(cast("object", arguments))
    if trouble:
        raise _refused(tool, f"arguments: expected less, got {trouble}")
    given: dict[str, Any] = coerced(arguments, tool.parameters, tool.parameters)
    if not is_storable(json.dumps(given, ensure_ascii=False)):
        raise _refused(tool, "arguments: expected text, got half of a surrogate pair")
    try:
        trouble = problem(given, tool.parameters)
    except UnusableSchemaError as error:
        raise InvalidArgumentsError(
            f"the schema of {tool.name} cannot be used: {error}",
            retryable=False,
            hint="Whoever offers this tool must correct its schema.",
        ) from error
    if trouble:
        raise _refused(tool, trouble)
    return given


def _refused(tool: ToolSchema, what: str) -> InvalidArgumentsError:
    schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
    if len(schema) > _SCHEMA_SHOWN:
        schema = f"{schema[: _SCHEMA_SHOWN - 1]}…"
    return InvalidArgumentsError(f"{what}\nschema of {tool.name}: {schema}")
