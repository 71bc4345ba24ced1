"""One turn in the air: what is fixed about it, and what changes while it runs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from rune.config.settings import Settings
from rune.context.blocks import Capsule, ContextTrace
from rune.models.transport import ChatTransport, ModelInfo
from rune.records.approvals import PendingApprovalRecord
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.models import ActionProtocol, Thinking, ThinkLevel
from rune.records.permissions import PermissionMode
from rune.records.tasks import TaskStateRecord
from rune.records.tools import ToolCall
from rune.records.turns import StopReason
from rune.records.usage import Usage
from rune.turn.events import TurnEvent
from rune.turn.limits import Counters
from rune.turn.loop_watch import LoopWatch
from rune.turn.request import TurnRequest
from rune.turn.resumption import Resumption

T = TypeVar("T")


class CancelToken:
    """Says once that a turn is to stop. `bind` names the task that does the turn's work."""

    def __init__(self) -> None:
        self.cancelled = False
        self._work: asyncio.Task[Any] | None = None

    def bind(self, work: asyncio.Task[Any]) -> None:
        """Name the task to cancel; one that was cancelled before stops at once."""
        self._work = work
        if self.cancelled:
            work.cancel()

    def cancel(self) -> None:
        """Ask the turn to stop; the second time changes nothing."""
        if self.cancelled:
            return
        self.cancelled = True
        if self._work is not None:
            self._work.cancel()


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn's work ended without an error. `text` says for a person why, where the reason alone does not."""

    reason: StopReason
    text: str = ""
    hint: str = ""


class Answer(msgspec.Struct, kw_only=True):
    """One model answer as it comes in. `size` counts its characters, thinking included; `calls` are those it asks for,
    each under an id that no other of this answer has.
    """

    message_id: str
    calls: list[ToolCall] = msgspec.field(default_factory=list[ToolCall])
    usage: Usage | None = None
    text: list[str] = msgspec.field(default_factory=list[str])
    thinking: list[str] = msgspec.field(default_factory=list[str])
    complete: bool = False
    size: int = 0

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self.text)


class CallCounts(msgspec.Struct, kw_only=True):
    """How a model's calls of tools came out: usable as they came, usable once repaired, or not at all."""

    valid: int = 0
    repaired: int = 0
    failed: int = 0


class ModelRun(msgspec.Struct, kw_only=True):
    """Which model answers a turn, and what its calls came to. Times in
    milliseconds; `notice` is what the person should know about the choice, `think` what its calls ask for.
    `stand_in`: it was chosen for want of another, and the notice says so.
    `protocol` is how it asks for tools, where there are any. `estimated` and `read` are the tokens of the newest
    prompt that was answered: by the estimator, and as the server counted them.
    """

    transport: ChatTransport
    info: ModelInfo
    num_ctx: int
    protocol: ActionProtocol = "native"
    notice: str = ""
    stand_in: bool = False
    think: ThinkLevel | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    latency_ms: int | None = None
    first_token_ms: int | None = None
    estimated: int = 0
    read: int | None = None
    calls: CallCounts = msgspec.field(default_factory=CallCounts)


class Flight(msgspec.Struct, kw_only=True):
    """A running turn. Facts are written by the recorder only; `emit` shows, it does not store.

    `capsule` is the prompt that was sent last; `pending` the question for which the turn pauses. `said` counts answers
    that are stored by now. `acted`: a call was made.
    `protocol` is how a resumed turn asked for tools before it paused.
    `secretive` are the ids of those calls of the newest answer that hold a secret, `unusable` those that cannot be
    used, with the reason. `circling` says that the turn goes in circles, "" while it does not;
    `put_aside` what waited for the person when they wrote this message instead, "" for nothing.
    """

    request: TurnRequest
    settings: Settings
    turn_id: str
    emit: Callable[[TurnEvent], None]
    cancel: CancelToken
    counters: Counters
    conversation: ConversationRecord | None = None
    task: TaskStateRecord | None = None
    message: ConversationMessageRecord | None = None
    model: ModelRun | None = None
    masked: bool = False
    thinking: Thinking = "auto"
    permission: PermissionMode = "ask"
    opened: bool = False
    resumption: Resumption | None = None
    answer: Answer | None = None
    said: int = 0
    acted: bool = False
    protocol: ActionProtocol | None = None
    secretive: set[str] = msgspec.field(default_factory=set[str])
    unusable: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    circling: str = ""
    put_aside: str = ""
    watch: LoopWatch = msgspec.field(default_factory=LoopWatch)
    pending: PendingApprovalRecord | None = None
    capsule: Capsule | None = None
    traces: list[tuple[Capsule, ContextTrace]] = msgspec.field(default_factory=list[tuple[Capsule, ContextTrace]])
    degraded: list[str] = msgspec.field(default_factory=list[str])

    @property
    def model_name(self) -> str:
        """The model's name, empty as long as none was chosen."""
        return self.model.info.name if self.model else ""


async def uninterrupted(work: Awaitable[T]) -> T:
    """Await to the end whatever cancels the caller; a cancellation is raised afterwards.

    A fact that is being written is written whole, and the flight knows it before the turn closes.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:
            if cancelled is None:
                raise
    if cancelled is not None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            raise failure
        raise cancelled
    return task.result()
