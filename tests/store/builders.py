"""Records as tests need them: everything that a test does not speak of has a plain value."""

from rune.records.approvals import Decision, PendingApprovalRecord
from rune.records.events import (
    ConversationHidden,
    ConversationRenamed,
    HistoryArchived,
    ModelSelected,
    PrefixChanged,
    TurnFailed,
)
from rune.records.messages import Channel, ConversationMessageRecord, ConversationRecord, Role
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.tools import FileTouch, Outcome, PreparedCall, ToolCall, ToolResult
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

TIME = "2026-11-30T14:00:00.000Z"


def an_id(kind: str, number: int | str) -> str:
    """Return an id that shows its number: `cnv_000...7`."""
    return f"{kind}_{number:0>26}"


CONVERSATION = an_id("cnv", 1)


def a_conversation(
    conversation_id: str = CONVERSATION,
    *,
    folder: str = "/home/ada/poems",
    channel: Channel = "task",
    title: str = "Three rivers",
    model: str = "llama3.2",
    prefix: str | None = None,
) -> ConversationRecord:
    return ConversationRecord(
        id=conversation_id,
        channel=channel,
        folder=folder,
        title=title,
        model=model,
        prefix=prefix,
        created_at=TIME,
    )


def a_message(
    number: int | str,
    conversation_id: str = CONVERSATION,
    *,
    role: Role = "user",
    content: str = "Name three rivers",
    task_id: str = an_id("tsk", 1),
    turn_id: str = an_id("trn", 1),
) -> ConversationMessageRecord:
    return ConversationMessageRecord(
        id=an_id("msg", number),
        ts=TIME,
        role=role,
        content=content,
        conversation_id=conversation_id,
        task_id=task_id,
        turn_id=turn_id,
        token_estimate=4,
        provenance="owner" if role == "user" else "model",
        model="" if role == "user" else "llama3.2",
    )


def a_full_answer(number: int | str, conversation_id: str = CONVERSATION) -> ConversationMessageRecord:
    """Return a message in which no field has its default."""
    return ConversationMessageRecord(
        id=an_id("msg", number),
        ts=TIME,
        role="assistant",
        content="Elbe, Oder, Spree\n\u2028\U0001f30a",
        conversation_id=conversation_id,
        task_id=an_id("tsk", 1),
        turn_id=an_id("trn", 1),
        token_estimate=9,
        tool_calls=(ToolCall(id="call_1", name="look", arguments={"at": ["maps", 1, None]}, source="repaired"),),
        tool_call_id="call_0",
        tool_name="look",
        thinking="Which country?",
        attachments=("sha256:" + "a" * 64,),
        tail="(recalled: likes rivers)",
        provenance="model",
        complete=False,
        model="llama3.2",
        usage=Usage(calls=1, prompt_tokens=120, output_tokens=9),
    )


def a_task(
    number: int | str, conversation_id: str = CONVERSATION, *, status: TaskStatus = TaskStatus.CREATED
) -> TaskStateRecord:
    return TaskStateRecord(
        id=an_id("tsk", number),
        title="Rivers",
        status=status,
        conversation_id=conversation_id,
        parent_task_id=None,
        assigned_model="llama3.2",
        created_at=TIME,
        updated_at=TIME,
    )


def a_turn(
    number: int | str, conversation_id: str = CONVERSATION, *, stop_reason: StopReason | None = None
) -> TurnRecord:
    return TurnRecord(
        id=an_id("trn", number),
        conversation_id=conversation_id,
        task_id=an_id("tsk", 1),
        message_id=an_id("msg", 1),
        model="llama3.2",
        stop_reason=stop_reason,
    )


def a_failure(turn: int | str, conversation_id: str = CONVERSATION, *, message: str = "nobody answers") -> TurnFailed:
    return TurnFailed(
        turn_id=an_id("trn", turn),
        conversation_id=conversation_id,
        error="ModelUnavailableError",
        message=message,
        hint="Start the server.",
    )


def a_trace(number: int | str, conversation_id: str = CONVERSATION, *, history: int = 2) -> InferenceTraceRecord:
    """Return a trace whose one request sent that many messages of history."""
    recipe = PromptRecipe(
        dialect="ollama",
        prefix="sha256:" + "b" * 64,
        blocks=(RecipeBlock(name="persona", placement="prefix", tokens=40, blob="sha256:" + "c" * 64),),
        history=tuple(
            RecipeMessage(message_id=an_id("msg", index + 1), rendering=f"{index:064x}") for index in range(history)
        ),
        tools="",
        messages_hash="d" * 64,
        messages_bytes=512,
        prompt_tokens_estimated=130,
    )
    return InferenceTraceRecord(
        id=an_id("trc", number),
        kind="conversation",
        provider="ollama",
        model="llama3.2",
        remote=False,
        turn_id=an_id("trn", number),
        task_id=an_id("tsk", 1),
        conversation_id=conversation_id,
        window=8192,
        num_ctx=8192,
        input_budget=6000,
        model_calls=1,
        prompt_tokens_estimated=130,
        prompt_tokens_served=120,
        cached_tokens=None,
        output_tokens=9,
        latency_ms=900,
        first_token_ms=300,
        model_time_ms=800,
        per_block_tokens={"persona": 40},
        dropped_blocks=(DroppedBlock(name="history", tokens=50, reason="history_trimmed"),),
        prefix_reuse=1.0,
        prefix_break=None,
        tool_calls=(TracedToolCall(name="look", source="native", outcome="ok", milliseconds=3),),
        stop_reason="answered",
        success=True,
        requests=(recipe,),
    )


def renamed(title: str, conversation_id: str = CONVERSATION) -> ConversationRenamed:
    return ConversationRenamed(conversation_id=conversation_id, title=title)


def hidden(conversation_id: str = CONVERSATION, *, hidden: bool = True) -> ConversationHidden:
    return ConversationHidden(conversation_id=conversation_id, hidden=hidden)


def model_selected(model: str, conversation_id: str = CONVERSATION) -> ModelSelected:
    return ModelSelected(conversation_id=conversation_id, model=model, provider="ollama", previous="llama3.2")


def prefix_changed(prefix: str, conversation_id: str = CONVERSATION) -> PrefixChanged:
    return PrefixChanged(conversation_id=conversation_id, prefix=prefix, reason="model")


def archived(*message_ids: str, conversation_id: str = CONVERSATION) -> HistoryArchived:
    return HistoryArchived(
        conversation_id=conversation_id, turn_id=an_id("trn", 1), message_ids=message_ids, reason="over budget"
    )


DIGEST = "sha256:" + "d" * 64


def a_prepared_call(
    number: int | str, *, turn: int | str = 1, name: str = "edit_file", rule: str = "", text: str = "rivers"
) -> PreparedCall:
    return PreparedCall(
        id=an_id("cal", number),
        turn_id=an_id("trn", turn),
        call=ToolCall(id=f"call_{number}", name=name, arguments={"path": "rivers.md", "new": text}),
        effect="rivers.md +1",
        detail=f"+{text}",
        preconditions={},
        digest=DIGEST,
        confinement="none",
        why="every change asks",
        rule=rule,
    )


def a_result(
    number: int | str, *, turn: int | str = 1, outcome: Outcome = "ok", output: str | None = None
) -> ToolResult:
    return ToolResult(
        id=an_id("cal", number),
        turn_id=an_id("trn", turn),
        tool="edit_file",
        digest=DIGEST,
        outcome=outcome,
        summary=f"call {number} ended",
        output=output,
        milliseconds=3,
        confinement="none",
        exit_code=None,
        files=(FileTouch(path="/home/ada/poems/rivers.md", before=None, after="e" * 64),),
    )


def an_approval(
    number: int | str,
    conversation_id: str = CONVERSATION,
    *,
    calls: tuple[PreparedCall, ...] | None = None,
    loop_state: str = DIGEST,
    expires_at: str = "2026-12-30T14:00:00.000Z",
    decision: Decision | None = None,
) -> PendingApprovalRecord:
    return PendingApprovalRecord(
        id=an_id("apr", number),
        turn_id=an_id("trn", 1),
        conversation_id=conversation_id,
        calls=(a_prepared_call(number),) if calls is None else calls,
        loop_state=loop_state,
        expires_at=expires_at,
        decided_by="owner" if decision else None,
        decision=decision,
    )
