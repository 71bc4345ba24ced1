"""Calls that a model makes, what was prepared for them, and what came of them."""

from typing import Any, Literal

from rune.records.record import Record

CallSource = Literal["native", "constrained", "repaired"]
Outcome = Literal["ok", "failed", "denied", "cancelled", "unknown"]


class ToolCall(Record, frozen=True, kw_only=True):
    """One call as the model asked for it. `id` is unique within its message."""

    id: str
    name: str
    arguments: dict[str, Any]
    source: CallSource = "native"


class ToolSchema(Record, frozen=True, kw_only=True):
    """One tool as it is offered: `parameters` is a JSON schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class PreparedCall(Record, frozen=True, kw_only=True):
    """A checked call with its computed effect (tools.md, Prepare). `digest` covers tool, canonical
    arguments and preconditions; body of `tool.intent`.
    """

    schema_version: int = 1
    id: str
    turn_id: str
    call: ToolCall
    effect: str
    preconditions: dict[str, str]
    digest: str
    confinement: str


class ToolResult(Record, frozen=True, kw_only=True):
    """What a call came to; body of `tool.result`. `output` is an evidence id when it was long."""

    schema_version: int = 1
    id: str
    turn_id: str
    outcome: Outcome
    summary: str
    output: str | None
    milliseconds: int | None
