"""Editing by choosing a line, for very small models (docs/decisions/constrained-moves.md). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from rune.records.tools import ToolSchema

_MOST_LINES_CHANGED: Final = 3


def by_line(schema: ToolSchema, lines: Sequence[str]) -> ToolSchema:
    """Return edit_file with `search` as one of these lines: a tiny model cuts out half of one, or copies it wrongly."""
    edit = {
        "type": "object",
        "properties": {"search": {"type": "string", "enum": list(lines)}, "replace": {"type": "string"}},
        "required": ["search", "replace"],
        "additionalProperties": False,
    }
    edits = {"type": "array", "items": edit, "minItems": 1, "maxItems": _MOST_LINES_CHANGED}
    given = cast("Mapping[str, Any]", schema.parameters["properties"])
    parameters = schema.parameters | {"properties": {**given, "edits": edits}}
    return ToolSchema(name=schema.name, description=schema.description, parameters=parameters)
