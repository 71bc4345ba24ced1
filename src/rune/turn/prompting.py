"""The prompts of a turn: assembled once, then extended by each round; made durable where they change something."""

from collections.abc import Callable, Sequence
from typing import Final

from rune.context.blocks import AssemblyRequest, Capsule, FrozenPrefix, ProjectFile
from rune.context.broker import ContextBroker
from rune.context.budget import MIN_TOOL_WINDOW
from rune.models.catalog import is_stand_in
from rune.models.first_guess import is_tiny
from rune.records.messages import ConversationMessageRecord
from rune.records.models import ActionProtocol
from rune.records.tools import ToolSchema
from rune.records.traces import Dialect
from rune.tools.registry import Toolbox
from rune.turn import events as shown
from rune.turn.flight import Flight, ModelRun, uninterrupted
from rune.turn.recorder import TurnRecorder
from rune.turn.session import Session

# Below this the tools for looking round and writing are offered and nothing else: all of them would take a fifth of it.
ROOMY: Final = 12_288


class Prompts:
    """Builds what a turn sends. `project` gives the instructing files of a folder."""

    def __init__(
        self,
        *,
        broker: ContextBroker,
        recorder: TurnRecorder,
        toolbox: Toolbox,
        project: Callable[[str], tuple[ProjectFile, ...]],
    ) -> None:
        self._broker = broker
        self._recorder = recorder
        self._toolbox = toolbox
        self._project = project

    def offered(self, run: ModelRun) -> Sequence[ToolSchema]:
        """Return the tools that a model is offered, the same for as long as its window is: they stand in the prefix.

        The small model that stands in for another gets none: it cannot use them, and reads them for seconds.
        """
        if run.num_ctx < MIN_TOOL_WINDOW or is_stand_in(run.info):
            return ()
        return self._toolbox.schemas(core_only=run.num_ctx < ROOMY or is_tiny(run.info))

    def protocol(self, run: ModelRun) -> ActionProtocol:
        """Return how a model asks for tools."""
        return run.protocol if self.offered(run) else "native"

    def first_prefix(self, flight: Flight, session: Session, message: ConversationMessageRecord) -> FrozenPrefix:
        """Return the prefix with which a conversation starts. Raises as the broker does."""
        if flight.model is None:
            raise RuntimeError("a prefix needs a model")
        folder = flight.request.folder
        return self._broker.collect_prefix(self._request(folder, message, session.history, session, flight.model))

    async def assembled(self, flight: Flight, session: Session, run: ModelRun) -> Capsule:
        """Build the turn's prompt with the rounds that it has had so far, and make durable what it changes."""
        if flight.message is None or flight.conversation is None:
            raise RuntimeError("a turn must be opened before its prompt is assembled")
        history = session.history
        at = next((n for n in range(len(history) - 1, -1, -1) if history[n].id == flight.message.id), len(history))
        request = self._request(flight.conversation.folder, flight.message, history[:at], session, run)
        capsule, trace = self._broker.assemble(request)
        flight.degraded += [name for name in trace.degraded if name not in flight.degraded]
        if rounds := [each for each in history[at + 1 :] if each.id not in session.archived]:
            # What was decided for the message holds; the rounds only come behind it.
            extended, _ = self._broker.extend(capsule, rounds)
            await uninterrupted(self._recorder.before_call(flight, session, extended, trace))
            capsule = extended
        else:
            await uninterrupted(self._recorder.before_call(flight, session, capsule, trace))
        if left := len(trace.archived_now):
            text = f"{left} earlier messages do not fit any more and are no longer sent to the model; they are kept"
            flight.emit(shown.Notice(turn_id=flight.turn_id, text=text))
        flight.capsule = capsule
        return capsule

    async def extended(
        self, flight: Flight, session: Session, capsule: Capsule, messages: Sequence[ConversationMessageRecord]
    ) -> Capsule:
        """Add rounds to the prompt that was sent last: all its bytes stay. Raises ContextOverflowError."""
        capsule, trace = self._broker.extend(capsule, messages)
        await uninterrupted(self._recorder.before_call(flight, session, capsule, trace))
        flight.capsule = capsule
        return capsule

    def _request(
        self,
        folder: str,
        message: ConversationMessageRecord,
        history: Sequence[ConversationMessageRecord],
        session: Session,
        run: ModelRun,
    ) -> AssemblyRequest:
        return AssemblyRequest(
            conversation_id=session.conversation_id,
            message=message,
            history=history,
            archived=session.archived,
            frozen=session.frozen,
            last_messages=session.last_messages,
            tools=self.offered(run),
            model=run.info.name,
            dialect=self.dialect(run),
            window=run.num_ctx,
            project=self._project(folder),
        )

    def dialect(self, run: ModelRun) -> Dialect:
        """Return how messages are written for a model."""
        return "constrained" if self.protocol(run) == "constrained" else run.transport.dialect
