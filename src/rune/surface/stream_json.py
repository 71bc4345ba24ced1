"""`--output-format stream-json` and `json`: what a program reads. Names are only ever added.

One JSON object a line, ASCII. The first key of each is `version`, `type` names the event, the other
keys are the fields of that event in `turn/events.py`. Documented in `docs/stream-json.md`.
"""

import json
from typing import Any

import msgspec

from rune.errors import RuneError
from rune.turn.events import TurnClosed, TurnEvent

VERSION = 1


def event_line(event: TurnEvent) -> str:
    """Return one event as a line without its newline."""
    return _ascii({"version": VERSION, **msgspec.to_builtins(event)})


def error_line(error: RuneError) -> str:
    """Return what went wrong before a turn was opened, as a line of type `error`."""
    details = _error(error)
    details["error_type"] = details.pop("type")
    return _ascii({"version": VERSION, "type": "error", **details})


def result_object(closed: TurnClosed) -> str:
    """Return the one object of `--output-format json`."""
    fields = msgspec.to_builtins(closed)
    result: dict[str, Any] = {"version": VERSION}
    for key in ("conversation_id", "task_id", "turn_id", "model", "answer", "complete", "stop_reason", "usage"):
        result[key] = fields[key]
    result |= {"tool_calls": [], "pending_approval": None}
    result |= {"degraded": fields["degraded"], "trace_id": fields["trace_id"], "error": None}
    if closed.error:
        result["error"] = {"type": closed.error_type, "message": closed.error, "hint": closed.hint}
    return _ascii(result)


def error_object(error: RuneError) -> str:
    """Return the object for a failure before a turn was opened: the same keys, empty."""
    keys = ("conversation_id", "task_id", "turn_id", "model", "answer", "complete", "stop_reason", "usage")
    result: dict[str, Any] = {"version": VERSION, **dict.fromkeys(keys)}
    result |= {"tool_calls": [], "pending_approval": None, "degraded": [], "trace_id": None, "error": _error(error)}
    return _ascii(result)


def _error(error: RuneError) -> dict[str, str]:
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint}


def _ascii(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
