"""One valid event of each kind that can be stored."""

from typing import Any

from rune.host.ids import IdSource
from rune.records import events
from rune.records.approvals import PendingApprovalRecord
from rune.records.events import EVENT_KINDS, Event
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.models import ModelScoreRecord, ModelUnavailable, ProbeOutcome
from rune.records.permissions import PermissionChanged, RuleAdded, RuleRevoked
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.tools import CommandRun, FileTouch, PreparedCall, ToolCall, ToolResult
from rune.records.traces import (
    DroppedBlock,
    InferenceTraceRecord,
    PromptRecipe,
    RecipeBlock,
    RecipeMessage,
    TracedToolCall,
)
from rune.records.turns import StopReason, TurnRecord
from rune.records.usage import Usage

MOMENT = "2026-11-30T14:00:00.123Z"
CONVERSATION = "cnv_01kb9y3c7m0000000000000001"
TASK = "tsk_01kb9y3c7m0000000000000002"
MESSAGE = "msg_01kb9y3c7m0000000000000003"
TURN = "trn_01kb9y3c7m0000000000000004"
CALL = "cal_01kb9y3c7m000000000000000a"
DEVICE = "dev_01kb9y3c7m0000000000000005"
BLOB = "sha256:" + "ab" * 32
USAGE = Usage(calls=1, prompt_tokens=120, cached_tokens=None, output_tokens=9, model_time_ms=340)


def message(text: str, **fields: Any) -> ConversationMessageRecord:
    """Return a user message with this text."""
    whole: dict[str, Any] = {
        "id": MESSAGE,
        "ts": MOMENT,
        "role": "user",
        "content": text,
        "conversation_id": CONVERSATION,
        "task_id": TASK,
        "turn_id": TURN,
        "token_estimate": 6,
        "provenance": "owner",
    }
    return ConversationMessageRecord(**whole | fields)


def said(ids: IdSource, text: str = "name three rivers", *, pseq: int = 1, **fields: Any) -> Event:
    """Return a `user.message` event with a fresh id."""
    return Event(
        event_id=ids.new_id("evt"),
        event_type="user.message",
        partition_key=CONVERSATION,
        actor_id="owner",
        timestamp=MOMENT,
        body=message(text),
        pseq=pseq,
        **fields,
    )


def ended(ids: IdSource) -> Event:
    """Return a small event of the system partition with a fresh id."""
    return Event(
        event_id=ids.new_id("evt"),
        event_type="session.ended",
        partition_key="system",
        actor_id="rune",
        timestamp=MOMENT,
        body=events.SessionEnded(id=ids.new_id("ses")),
    )


def _call() -> ToolCall:
    return ToolCall(id="call_1", name="run", arguments={"command": "ls -l", "depth": 2, "ratio": 0.5, "all": True})


def _intent() -> PreparedCall:
    return PreparedCall(
        id=CALL,
        turn_id=TURN,
        call=_call(),
        effect="lists a folder",
        detail="$ ls -l\nin /home/ada/river",
        preconditions={"cwd": "/home/ada/river"},
        digest=BLOB,
        confinement="none",
        why="every command asks",
        rule="",
    )


def _approval() -> PendingApprovalRecord:
    return PendingApprovalRecord(
        id="apr_01kb9y3c7m0000000000000007",
        turn_id=TURN,
        conversation_id=CONVERSATION,
        calls=(_intent(),),
        loop_state=BLOB,
        expires_at=MOMENT,
    )


def _trace() -> InferenceTraceRecord:
    recipe = PromptRecipe(
        dialect="ollama",
        prefix=BLOB,
        blocks=(RecipeBlock(name="persona", placement="prefix", tokens=90, blob=BLOB),),
        history=(RecipeMessage(message_id=MESSAGE, rendering=BLOB),),
        tools="",
        messages_hash=BLOB,
        messages_bytes=812,
        prompt_tokens_estimated=120,
    )
    return InferenceTraceRecord(
        id="trc_01kb9y3c7m0000000000000008",
        kind="conversation",
        provider="ollama",
        model="qwen3:4b",
        remote=False,
        turn_id=TURN,
        task_id=TASK,
        conversation_id=CONVERSATION,
        window=16384,
        num_ctx=16384,
        input_budget=12288,
        model_calls=1,
        prompt_tokens_estimated=120,
        prompt_tokens_served=118,
        cached_tokens=None,
        output_tokens=9,
        latency_ms=400,
        first_token_ms=80,
        model_time_ms=340,
        per_block_tokens={"persona": 90, "user": 6},
        dropped_blocks=(DroppedBlock(name="project", tokens=9000, reason="over_budget"),),
        prefix_reuse=1.0,
        prefix_break=None,
        tool_calls=(TracedToolCall(name="run", source="native", outcome="ok", milliseconds=12),),
        stop_reason="answered",
        success=True,
        requests=(recipe,),
    )


def _records() -> tuple[Record, ...]:
    task = TaskStateRecord(
        id=TASK,
        title="name three rivers",
        status=TaskStatus.RUNNING,
        conversation_id=CONVERSATION,
        parent_task_id=None,
        assigned_model="qwen3:4b",
        created_at=MOMENT,
        updated_at=MOMENT,
    )
    conversation = ConversationRecord(
        id=CONVERSATION, channel="task", folder="/home/ada/river", title="rivers", model="", created_at=MOMENT
    )
    turn = TurnRecord(
        id=TURN,
        conversation_id=CONVERSATION,
        task_id=TASK,
        message_id=MESSAGE,
        model="qwen3:4b",
        stop_reason=StopReason.ANSWERED,
        usage=USAGE,
    )
    result = ToolResult(
        id=CALL,
        turn_id=TURN,
        tool="run",
        digest=BLOB,
        outcome="ok",
        summary="3 files",
        output=None,
        milliseconds=12,
        confinement="none",
        exit_code=0,
        files=(FileTouch(path="/home/ada/river/notes.md", before=None, after="ab" * 32),),
        message_id=MESSAGE,
    )
    return (
        conversation,
        turn,
        message("café: name three rivers"),
        task,
        _intent(),
        result,
        _approval(),
        _trace(),
    )


def _score() -> ModelScoreRecord:
    return ModelScoreRecord(
        model="qwen3:4b",
        provider="ollama",
        digest="ab" * 32,
        protocol="constrained",
        basis="measured",
        valid=3,
        repaired=1,
        failed=0,
        probe=(
            ProbeOutcome(task="use a result", protocol="native", passed=False, seen="said nothing", milliseconds=None),
        ),
    )


def _facts() -> tuple[Record, ...]:
    return (
        events.ConversationRenamed(conversation_id=CONVERSATION, title="three rivers"),
        events.ConversationHidden(conversation_id=CONVERSATION, hidden=True),
        events.TurnFailed(turn_id=TURN, conversation_id=CONVERSATION, error="BusyError", message="full", hint="wait"),
        events.HistoryArchived(conversation_id=CONVERSATION, turn_id=TURN, message_ids=(MESSAGE,), reason="budget"),
        events.SessionCheckpoint(
            conversation_id=CONVERSATION,
            task_id=TASK,
            phase="reading",
            files=("a.py",),
            decisions=(),
            remaining=("test",),
            next_action="run the tests",
        ),
        events.PrefixChanged(conversation_id=CONVERSATION, prefix=BLOB, reason="trust granted"),
        events.ModelSelected(conversation_id=CONVERSATION, model="qwen3:4b", provider="ollama", previous=""),
        events.ThinkingSelected(conversation_id=CONVERSATION, thinking="high", previous="auto"),
        *_of_tools(),
        ModelUnavailable(provider="ollama", model="", message="connection refused"),
        _score(),
        events.SessionStarted(id="ses_01kb9y3c7m0000000000000009", version="0.1.0", surface="headless", pid=4711),
        events.SessionEnded(id="ses_01kb9y3c7m0000000000000009"),
        events.TrustGranted(folder="/home/ada/river", digest=BLOB, files=("AGENTS.md",)),
        events.TrustRevoked(folder="/home/ada/river"),
        events.CapabilityFailed(subsystem="memory", error="OSError", message="gone", context="recall"),
        events.StorageDegraded(what="views", message="rebuilt"),
        events.BackgroundFailed(subsystem="reports", error="OSError", message="gone", context=""),
        events.JournalRepaired(segment="w000-000001.jsonl", kept_as="torn", bytes=17, reason="unfinished"),
        events.JournalForked(conversation_id=CONVERSATION, pseq=4, event_ids=("evt_01kb9y3c7m0000000000000006",)),
        events.BodyErased(event_ids=("evt_01kb9y3c7m0000000000000006",), reason="asked for"),
        events.EventImported(
            original_id="17",
            original_type="skill.loaded",
            source="matrix",
            channel="chat",
            occurred_at="",
            became="",
            evidence=BLOB,
        ),
        events.PinImported(
            original_id="4",
            topic=("rivers",),
            open_question=("which is the longest?",),
            outcome=(),
            status=("waiting",),
            context=(),
            occurred_at=MOMENT,
            evidence=BLOB,
        ),
    )


def _of_tools() -> tuple[Record, ...]:
    return (
        PermissionChanged(conversation_id=CONVERSATION, mode="edits", previous="ask"),
        CommandRun(
            id="cal_01kb9y3c7m000000000000000b",
            conversation_id=CONVERSATION,
            command="ls -l",
            exit_code=0,
            milliseconds=12,
            output=BLOB,
            summary="3 lines",
        ),
        RuleAdded(
            id="rul_01kb9y3c7m000000000000000c",
            folder="/home/ada/river",
            rule="edit_file(src/**)",
            approval_id="apr_01kb9y3c7m0000000000000007",
        ),
        RuleRevoked(id="rul_01kb9y3c7m000000000000000c"),
    )


def _bodies() -> dict[type[Record], Record]:
    return {type(body): body for body in (*_records(), *_facts())}


def one_of_each(ids: IdSource) -> list[Event]:
    """Return an event of every kind that has a body type, in the registry's order."""
    bodies = _bodies()
    found: list[Event] = []
    for pseq, kind in enumerate((kind for kind in EVENT_KINDS.values() if kind.body is not None), start=1):
        in_conversation = kind.partition == "conversation"
        assert kind.body is not None
        found.append(
            Event(
                event_id=ids.new_id("evt"),
                event_type=kind.name,
                partition_key=CONVERSATION if in_conversation else kind.partition,
                actor_id="rune",
                timestamp=MOMENT,
                body=bodies[kind.body],
                pseq=pseq if in_conversation else 0,
                authorization="owner" if kind.name == "tool.intent" else None,
            )
        )
    return found
