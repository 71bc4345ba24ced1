"""`--output-format stream-json` and `json`: what a program reads. Names are only ever added.

One JSON object a line, ASCII. The first key of each is `version`, `type` names the event, the other
keys are the fields of that event in `turn/events.py`. Documented in `docs/stream-json.md`.
"""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from rune.errors import RuneError
from rune.turn.events import ApprovalAsked, AskedCall, ToolFinished, ToolPrepared, TurnClosed, TurnEvent

VERSION = 1

_KEYS = ("conversation_id", "task_id", "turn_id", "model", "answer", "complete", "stop_reason", "usage")
_COUNTS = ("iterations_used", "iteration_budget")
_CALL: dict[str, Any] = {
    "call_id": "",
    "name": "",
    "effect": "",
    "outcome": None,
    "milliseconds": None,
    "summary": "",
    "output": None,
    "exit_code": None,
    "allowed_by": None,
}


def event_line(event: TurnEvent) -> str:
    """Return one event as a line without its newline."""
    return _ascii({"version": VERSION, **msgspec.to_builtins(event)})


def error_line(error: RuneError) -> str:
    """Return what went wrong before a turn was opened, as a line of type `error`."""
    details = _error(error)
    details["error_type"] = details.pop("type")
    return _ascii({"version": VERSION, "type": "error", **details})


class CallsSeen:
    """What the events of a turn said of its tools, for the one object of `json`. `answered` are the calls of the
    question that it goes on with: what they would do was said in the turn that asked.
    """

    def __init__(self, answered: Sequence[AskedCall] = ()) -> None:
        self._calls: dict[str, dict[str, Any]] = {}
        self._effects = {call.call_id: call.effect for call in answered}
        self._asked: ApprovalAsked | None = None

    def note(self, event: TurnEvent) -> None:
        """Take one event in; those that are not about tools leave nothing."""
        match event:
            case ToolPrepared(call_id=call_id):
                self._call(call_id, event.name)["effect"] = event.effect
            case ToolFinished(call_id=call_id):
                call = self._call(call_id, event.name)
                for key in ("outcome", "milliseconds", "summary", "output", "exit_code", "allowed_by"):
                    call[key] = getattr(event, key)
            case ApprovalAsked():
                self._asked = event
            case _:
                pass

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The calls in the order in which they came; `outcome` is None for one that has not ended."""
        return list(self._calls.values())

    def pending(self, approval_id: str | None) -> dict[str, Any] | None:
        """Return the question for which the turn waits, None when it does not."""
        if approval_id is None:
            return None
        asked = self._asked
        if asked is None or asked.approval_id != approval_id:
            return {"id": approval_id, "summary": "", "calls": []}
        return {"id": approval_id, "summary": asked.summary, "calls": msgspec.to_builtins(asked.calls)}

    def _call(self, call_id: str, name: str) -> dict[str, Any]:
        known = {"call_id": call_id, "name": name, "effect": self._effects.get(call_id, "")}
        return self._calls.setdefault(call_id, _CALL | known)


def result_object(closed: TurnClosed, seen: CallsSeen | None = None) -> str:
    """Return the one object of `--output-format json`; `seen` took in the turn's events."""
    seen = seen or CallsSeen()
    fields = msgspec.to_builtins(closed)
    result: dict[str, Any] = {"version": VERSION, **{key: fields[key] for key in _KEYS}}
    result |= {"tool_calls": seen.tool_calls, "pending_approval": seen.pending(closed.pending_approval)}
    result |= {key: fields[key] for key in _COUNTS}
    result |= {"degraded": fields["degraded"], "trace_id": fields["trace_id"], "error": None}
    if closed.error:
        result["error"] = {"type": closed.error_type, "message": closed.error, "hint": closed.hint}
    return _ascii(result)


def error_object(error: RuneError) -> str:
    """Return the object for a failure before a turn was opened: the same keys, empty."""
    result: dict[str, Any] = {"version": VERSION, **dict.fromkeys(_KEYS)}
    result |= {"tool_calls": [], "pending_approval": None, **dict.fromkeys(_COUNTS, 0)}
    result |= {"degraded": [], "trace_id": None, "error": _error(error)}
    return _ascii(result)


def _error(error: RuneError) -> dict[str, str]:
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint}


def _ascii(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)
