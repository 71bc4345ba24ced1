"""The samples of `tests/data/leaked_calls`: calls as families of models write them, and texts that are none.

A sample is a line `#### what it is`, the text as the model wrote it, a line `==>` and the calls as JSON; a decoy has no
calls. Those that begin with `hard:` are known not to be read: what is missing in them would have to be guessed.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from rune.records.tools import ToolSchema

FOLDER = Path(__file__).parents[2] / "data" / "leaked_calls"
FAMILIES = ("generic", "qwen", "llama", "mistral", "deepseek", "gpt_oss", "gemma")


class Sample(NamedTuple):
    """One text and the calls that it is, as `{"name", "arguments"}`."""

    family: str
    title: str
    text: str
    calls: list[dict[str, Any]]

    @property
    def hard(self) -> bool:
        return self.title.startswith("hard: ")


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TEXT = {"type": "string"}
_INTEGER = {"type": "integer"}
_FLAG = {"type": "boolean"}
_EDIT = _object({"old": _TEXT, "new": _TEXT, "count": _INTEGER}, "old", "new")
_FACTS = _object({"subject": _TEXT, "tags": {"type": "array", "items": _TEXT}, "weight": {"type": "number"}}, "subject")
_ISSUE = _object(
    {
        "title": _TEXT,
        "labels": {"type": "array", "items": _TEXT},
        "priority": {"type": "integer", "enum": [1, 2, 3]},
        "assignee": {"type": ["string", "null"]},
    },
    "title",
)
_PARAMETERS: dict[str, dict[str, Any]] = {
    "read_file": _object({"path": _TEXT, "start_line": _INTEGER, "limit": _INTEGER}, "path"),
    "write_file": _object({"path": _TEXT, "content": _TEXT}, "path", "content"),
    "edit_file": _object({"path": _TEXT, "edits": {"type": "array", "items": _EDIT}}, "path", "edits"),
    "run_command": _object({"command": _TEXT, "timeout": {"type": "number"}, "background": _FLAG}, "command"),
    "search_files": _object({"pattern": _TEXT, "glob": _TEXT, "case_sensitive": _FLAG}, "pattern"),
    "list_files": _object({"path": _TEXT}),
    "git_status": {"type": "object", "properties": {}},
    "remember": _object({"facts": _FACTS, "pinned": _FLAG}, "facts"),
    "mcp__tracker__create_issue": _ISSUE,
}
TOOLS = [ToolSchema(name=name, description="", parameters=parameters) for name, parameters in _PARAMETERS.items()]
NAMES = list(_PARAMETERS)


def samples() -> list[Sample]:
    return [sample for family in FAMILIES for sample in _read(family)]


def decoys() -> list[Sample]:
    return _read("decoys")


def _read(family: str) -> list[Sample]:
    text = (FOLDER / f"{family}.txt").read_text(encoding="utf-8")
    found: list[Sample] = []
    for part in text.removeprefix("#### ").split("\n#### "):
        title, _, rest = part.partition("\n")
        body, _, calls = rest.partition("\n==>\n")
        found.append(Sample(family, title, body, json.loads(calls) if calls else []))
    return found
