"""What a paused turn goes on with: the answer to its question, and the state in which it stopped."""

from typing import Final

import msgspec

from rune.errors import InvalidRecordError, UsageError
from rune.records.approvals import Decision, PendingApprovalRecord
from rune.records.loop import LoopState
from rune.records.record import from_builtins

VERSION: Final = 2


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """How the person answered a question. `reason` is their word to the model, "" for none."""

    approval: PendingApprovalRecord
    decision: Decision
    reason: str = ""
    always: bool = False


class _Versioned(msgspec.Struct, frozen=True):
    schema_version: int


class _First(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of version 1, which knew of no circles and had one protocol."""

    schema_version: int
    turn_id: str
    iterations_used: int
    iteration_budget: int
    capsule: str
    round_message_ids: tuple[str, ...]
    failures: dict[str, int]


def encode_state(state: LoopState) -> bytes:
    """Return the bytes under which a state is kept as evidence."""
    return msgspec.json.encode(state, order="sorted")


def decode_state(data: bytes, message_id: str) -> LoopState:
    """Return a kept state, one of an earlier version brought up to this one; `message_id` is that of its turn.

    Raises UsageError for one of a newer version: what it means is not guessed. Raises InvalidRecordError.
    """
    try:
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if version > VERSION:
            raise UsageError(
                f"this question was asked by a newer version of Rune (loop state {version}, this one knows {VERSION})",
                hint="Answer it with that version, or answer no: the task then goes on without what was asked.",
            )
        if version < VERSION:
            return _upgraded(msgspec.json.decode(data, type=_First), message_id)
        return from_builtins(msgspec.json.decode(data), LoopState)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRecordError("LoopState", field="state", expected="a loop state", got=str(error)) from error


def _upgraded(state: _First, message_id: str) -> LoopState:
    return LoopState(
        turn_id=state.turn_id,
        message_id=message_id,
        iterations_used=state.iterations_used,
        iteration_budget=state.iteration_budget,
        capsule=state.capsule,
        round_message_ids=state.round_message_ids,
        failures=state.failures,
        recent=(),
        nudged=False,
        protocol="native",
        acted=True,
    )
