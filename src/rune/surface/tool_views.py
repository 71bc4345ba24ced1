"""What a surface may read about tools: calls with what came of them, and questions that wait for the person."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rune.errors import NotFoundError, PartUnreadableError
from rune.records.approvals import PendingApprovalRecord
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import PreparedCall, ToolCall
from rune.store.approvals import ApprovalRepository, StoredApproval
from rune.store.conversations import ConversationStateRepository
from rune.store.intents import IntentRepository, StoredResult
from rune.surface.rows import ApprovalRow, CallRow
from rune.turn.events import AskedCall

# What an argument list says of itself where nothing was prepared: enough to tell calls apart.
_EFFECT: Final = 200


class ToolViews:
    """Reads about tools; a part of `Views`."""

    def __init__(
        self, *, conversations: ConversationStateRepository, intents: IntentRepository, approvals: ApprovalRepository
    ) -> None:
        self._conversations = conversations
        self._intents = intents
        self._approvals = approvals

    async def tool_results(self, conversation_id: str) -> Sequence[CallRow]:
        """Return the calls that were made in a conversation, in the order of the messages that hold them; of a fork
        also those that it shares. Raises StorageError.
        """
        messages = await self._conversations.messages(conversation_id)
        if not any(message.tool_calls for message in messages):
            return ()
        results = await self._intents.results(conversation_id)
        waiting = await self._approvals.pending(conversation_id)
        return call_rows(messages, results, waiting)

    async def changed_files(self, conversation_id: str) -> bool:
        """Say whether tools ever changed a file in a conversation, taken back since or not. Raises StorageError."""
        results = await self._intents.results(conversation_id)
        return any(touch.changed for each in results for touch in each.result.files)

    async def pending_approvals(self, conversation_id: str | None = None) -> Sequence[ApprovalRow]:
        """Return the questions that wait, the oldest first; of one conversation, or of all. One whose time is over
        stays among them until that is written. Raises StorageError.
        """
        found = await self._approvals.pending(conversation_id)
        return [await self._approval_row(await self._approvals.stored(each.id)) for each in found]

    async def waiting_conversations(self) -> frozenset[str]:
        """Return the ids of the conversations in which a question waits; none while the journal cannot be read whole,
        which is told where that is found. Raises StorageError.
        """
        try:
            return frozenset(record.conversation_id for record in await self._approvals.pending())
        except PartUnreadableError:
            return frozenset()

    async def resolve_approval(self, text: str) -> str:
        """Return the id of the question that a person means, answered ones too. Raises NotFoundError."""
        return await self._approvals.resolve(text)

    async def approval(self, approval_id: str) -> ApprovalRow:
        """Return a question, whether or not it still waits. Raises NotFoundError."""
        return await self._approval_row(await self._approvals.stored(approval_id))

    async def _approval_row(self, stored: StoredApproval) -> ApprovalRow:
        record = stored.record
        folder = title = ""
        try:
            conversation = (await self._conversations.get(record.conversation_id)).record
            folder, title = conversation.folder, conversation.title
        except NotFoundError:
            pass  # its beginning was erased or lost: the question is still one
        return ApprovalRow(
            id=record.id,
            conversation_id=record.conversation_id,
            turn_id=record.turn_id,
            asked_at=stored.asked_at,
            expires_at=record.expires_at,
            folder=folder,
            title=title,
            calls=tuple(_asked(call) for call in record.calls),
            standing=stored.standing,
            decision=record.decision,
            reason=record.reason,
            closed_at=stored.closed_at,
        )


def call_rows(
    messages: Sequence[ConversationMessageRecord],
    results: Sequence[StoredResult],
    waiting: Sequence[PendingApprovalRecord] = (),
) -> list[CallRow]:
    """Return a row a call. `messages` and `results` are all of a conversation in order; `waiting` are its questions.

    What the model reads of a call names it by the id that the model gave it, which is unique within one answer only:
    so it belongs to the newest answer before it. A result names its message; one that names none (as written by an
    earlier version) belongs to the next such message of its turn and tool.
    """
    rows: list[CallRow] = []
    made: list[ToolCall] = []
    open_calls: dict[str, int] = {}
    told = {each.result.message_id: each for each in results if each.result.message_id}
    left: dict[str, list[StoredResult]] = {}
    for result in results:
        if not result.result.message_id:
            left.setdefault(result.result.turn_id, []).append(result)
    for message in messages:
        if message.tool_calls:
            open_calls = {call.id: len(rows) + number for number, call in enumerate(message.tool_calls)}
            rows += [_begun(message.id, call) for call in message.tool_calls]
            made += message.tool_calls
        elif message.role == "tool" and message.tool_call_id in open_calls:
            place = open_calls.pop(message.tool_call_id)
            result = told.get(message.id) or _taken(left.get(message.turn_id, []), message)
            rows[place] = _ended(rows[place], result, message)
    # Killed in the act: no model was told what came of it. Asked about: nothing came of it yet.
    found = {row.call_id for row in rows if row.outcome is not None}
    unknown = [each for each in results if each.result.outcome == "unknown" and each.result.id not in found]
    asked = [call for question in waiting for call in question.calls]
    for place, row in enumerate(rows):
        if row.outcome is not None:
            continue
        killed = next((each for each in unknown if each.prepared and each.prepared.call == made[place]), None)
        prepared = next((each for each in asked if each.call == made[place]), None)
        if killed is not None:
            unknown.remove(killed)
            rows[place] = _ended(row, killed)
        elif prepared is not None:
            rows[place] = msgspec.structs.replace(row, **_prepared(prepared), waits=True)
    # What the same answer asked for behind those: its turn comes when they are answered.
    held = {row.message_id for row in rows if row.waits}
    return [
        msgspec.structs.replace(row, waits=True)
        if row.message_id in held and row.outcome is None and not row.result_message_id
        else row
        for row in rows
    ]


def effect_of(arguments: Mapping[str, Any]) -> str:
    """Return in a line what a call is about, out of its arguments alone: its path or command, else all of them."""
    named = next((arguments[key] for key in ("path", "command", "pattern") if key in arguments), None)
    text = named if isinstance(named, str) else json.dumps(dict(arguments), ensure_ascii=False) if arguments else ""
    line = " ".join(text.split())
    return line if len(line) <= _EFFECT else line[: _EFFECT - 1] + "…"


def _begun(message_id: str, call: ToolCall) -> CallRow:
    return CallRow(
        call_id="", message_id=message_id, tool_call_id=call.id, name=call.name, effect=effect_of(call.arguments)
    )


def _taken(left: list[StoredResult], message: ConversationMessageRecord) -> StoredResult | None:
    """Take the result out of those that are left to which a message belongs."""
    for place, each in enumerate(left):
        wanted = each.prepared.call.id if each.prepared is not None else message.tool_call_id
        if each.result.tool == message.tool_name and wanted == message.tool_call_id:
            return left.pop(place)
    return None


def _ended(row: CallRow, stored: StoredResult | None, message: ConversationMessageRecord | None = None) -> CallRow:
    if message is not None:
        row = msgspec.structs.replace(row, text=message.content, result_message_id=message.id)
    if stored is None:  # nothing of it was carried out, or its receipt was erased: what the model read of it is there
        return row
    result = stored.result
    prepared = _prepared(stored.prepared) if stored.prepared is not None else {"call_id": result.id}
    return msgspec.structs.replace(
        row,
        **prepared,
        outcome=result.outcome,
        milliseconds=result.milliseconds,
        summary=result.summary,
        output=result.output,
        exit_code=result.exit_code,
        allowed_by=stored.authorization,
    )


def _prepared(prepared: PreparedCall) -> dict[str, Any]:
    return {"call_id": prepared.id, "effect": prepared.effect, "detail": prepared.detail}


def _asked(call: PreparedCall) -> AskedCall:
    return AskedCall(
        call_id=call.id, name=call.call.name, effect=call.effect, detail=call.detail, why=call.why, rule=call.rule
    )
