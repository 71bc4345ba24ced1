"""The one door to turns: send a message, stop a turn, end a task."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec

from rune.config.settings import Settings
from rune.errors import CancelledEarlyError, StorageError, UsageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.models.transport import ModelInfo
from rune.orchestration.approvals import Approvals
from rune.records.approvals import Decision
from rune.records.messages import Channel, ConversationRecord
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.times import rfc3339
from rune.store.conversations import ConversationStateRepository
from rune.store.tasks import TaskStateRepository
from rune.text.storable import storable
from rune.turn.changes import Changes, Undone
from rune.turn.conversation_actions import ConversationActions
from rune.turn.conversation_choices import ConversationChoices
from rune.turn.engine import TurnEngine
from rune.turn.events import TurnClosed, TurnEvent
from rune.turn.failures import TurnFailures
from rune.turn.flight import CancelToken, Flight, uninterrupted
from rune.turn.limits import Counters
from rune.turn.pilot import EARLY, Pilot
from rune.turn.recorder import TurnRecorder
from rune.turn.request import TurnRequest
from rune.turn.resumption import Resumption
from rune.turn.selection import ModelSelection
from rune.turn.session import Session, Sessions


class RuneOperator:
    """Takes messages and runs each as a turn of its own. A surface knows this and nothing behind it."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        sessions: Sessions,
        selection: ModelSelection,
        recorder: TurnRecorder,
        pilot: Pilot,
        approvals: Approvals,
        changes: Changes,
        conversations: ConversationStateRepository,
        tasks: TaskStateRepository,
        mask: Callable[[str], str],
        clock: Clock,
        ids: IdSource,
        failures: TurnFailures,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._recorder = recorder
        self._pilot = pilot
        self._approvals = approvals
        self._changes = changes
        self._conversations = conversations
        self._tasks = tasks
        self._mask = mask
        self._clock = clock
        self._ids = ids
        self._failures = failures
        self._engine = TurnEngine()
        self._choices = ConversationChoices(
            sessions=sessions,
            selection=selection,
            conversations=conversations,
            configured=lambda: settings().model.name,
        )
        self._actions = ConversationActions(
            sessions=sessions, conversations=conversations, mask=mask, leave=self.leave, clock=clock, ids=ids
        )

    async def send_task(
        self, request: TurnRequest, token: CancelToken | None = None
    ) -> AsyncGenerator[TurnEvent, None]:
        """Run one turn and yield what it shows, from TurnOpened to TurnClosed. `token` stops it also before
        its id is known.

        Raises before TurnOpened, with nothing stored: UsageError (empty message), LeaseHeldError,
        NotFoundError, StorageError. After it every end is a TurnClosed. Closing this generator detaches
        the watcher and does not end the turn; `cancel` does.
        """
        if not request.text.strip():
            raise UsageError("the message is empty", hint="Type what you want to ask.")
        typed = storable(request.text)
        text = self._mask(typed)
        request = msgspec.structs.replace(request, text=text)
        async with contextlib.aclosing(self._fly(request, token, masked=text != typed)) as events:
            async for event in events:
                yield event

    async def answer(
        self,
        approval_id: str,
        decision: Decision,
        *,
        reason: str = "",
        always: bool = False,
        token: CancelToken | None = None,
    ) -> AsyncGenerator[TurnEvent, None]:
        """Answer the question of a paused turn, in this process or after a restart, and yield what the turn shows that
        goes on with it, as `send_task` does. `reason` is told to the model; `always` makes the rules that the asked
        calls offer. What is allowed runs only if it still is what was shown.

        Raises before TurnOpened, with nothing decided: NotFoundError, AlreadyDecidedError, UsageError (it has expired,
        or was asked by a newer version), LeaseHeldError, StorageError, and ModelError while there is no model to go on
        with.
        """
        approval = await self._approvals.open(approval_id)
        folder = (await self._conversations.get(approval.conversation_id)).record.folder
        request = TurnRequest(text="", folder=folder, conversation_id=approval.conversation_id)
        word = self._mask(storable(reason.strip()))
        resumption = Resumption(approval=approval, decision=decision, reason=word, always=always)
        async with contextlib.aclosing(self._fly(request, token, resumption=resumption)) as events:
            async for event in events:
                yield event

    async def _fly(
        self,
        request: TurnRequest,
        token: CancelToken | None,
        *,
        masked: bool = False,
        resumption: Resumption | None = None,
    ) -> AsyncGenerator[TurnEvent, None]:
        settings = self._settings()
        turn_id = self._ids.new_id("trn")
        token = token or CancelToken()

        async def drive(emit: Callable[[TurnEvent], None]) -> TurnClosed:
            flight = Flight(
                request=request,
                masked=masked,
                settings=settings,
                turn_id=turn_id,
                emit=emit,
                cancel=token,
                counters=Counters(iteration_budget=request.max_steps or settings.turn.iteration_budget),
                resumption=resumption,
            )
            return await self._drive(flight)

        stream = self._engine.start(turn_id, token, drive)
        async with contextlib.aclosing(stream.events()) as events:
            async for event in events:
                yield event

    def cancel(self, turn_id: str | None = None) -> bool:
        """Stop a turn, or all that run; False when there was none. What was said so far is kept."""
        if turn_id is not None:
            return self._engine.cancel(turn_id)
        running = self._engine.running
        for each in running:
            self._engine.cancel(each)
        return bool(running)

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the turns that run now."""
        return self._engine.running

    async def new(
        self, *, folder: str, channel: Channel = "task", conversation_id: str | None = None
    ) -> ConversationRecord:
        """Supersede the open task of a conversation (None: the newest here) and start an empty one.

        Raises UsageError while a turn runs in it, LeaseHeldError when it is open elsewhere: its task is not this
        process's to end.
        """
        if conversation_id is None:
            found = await self._conversations.conversations(folder=folder, channel=channel, limit=1)
            conversation_id = found[0].record.id if found else None
        if conversation_id is not None:
            session = await self._locked(conversation_id)
            try:
                await uninterrupted(self._recorder.settle(session))
                await self._pilot.put_aside(session)
                if session.task is not None:
                    await uninterrupted(self._tasks.transition(session.task.id, TaskStatus.SUPERSEDED))
                    session.task = None
                await uninterrupted(self._sessions.release(conversation_id))
            finally:
                await self._let_go(session)
        return await self._start_empty(folder, channel)

    async def _start_empty(self, folder: str, channel: Channel) -> ConversationRecord:
        record = ConversationRecord(
            id=self._ids.new_id("cnv"),
            channel=channel,
            folder=folder,
            title="",
            model="",
            created_at=rfc3339(self._clock.now_ms()),
        )
        session = await self._sessions.take(record.id, new=True)
        await uninterrupted(self._conversations.create(record))
        session.conversation = record
        return record

    async def fork(self, conversation_id: str, at_message_id: str | None = None) -> ConversationRecord:
        """Branch off behind a message, or behind the newest; the original, which another Rune may have open, stays.

        Raises NotFoundError, UsageError where nothing was said yet, StorageError.
        """
        return await self._actions.fork(conversation_id, at_message_id)

    async def rename(self, conversation_id: str, title: str) -> str:
        """Give another title; returns it as it is kept. Raises UsageError, LeaseHeldError, NotFoundError."""
        return await self._actions.rename(conversation_id, title)

    async def hide(self, conversation_id: str, *, hidden: bool) -> None:
        """List a conversation no longer, or again. Raises LeaseHeldError, NotFoundError."""
        await self._actions.hide(conversation_id, hidden=hidden)

    async def done(self, conversation_id: str) -> TaskStateRecord:
        """Complete the open task of a conversation: the person says that it is done.

        Raises UsageError when there is none and while a turn runs in it.
        """
        session = await self._locked(conversation_id)
        try:
            if session.task is None:
                raise UsageError("there is no open task here", hint="A task begins with your first message.")
            await self._pilot.put_aside(session)
            if session.task.status is TaskStatus.AWAITING_APPROVAL:  # its question is answered: it waits no more
                await uninterrupted(self._tasks.transition(session.task.id, TaskStatus.OPEN))
            task = await uninterrupted(self._tasks.transition(session.task.id, TaskStatus.COMPLETED))
            session.task = None
            return task
        finally:
            await self._let_go(session)

    async def hold(self, conversation_id: str) -> None:
        """Have a stored conversation open in this process alone from now on, until `leave`; a turn of it may run.
        Holding it twice changes nothing.

        Raises LeaseHeldError when another process has it, NotFoundError, StorageError.
        """
        await self._sessions.hold(conversation_id)

    def holds(self, conversation_id: str) -> bool:
        """Say whether this operator has the conversation open."""
        return self._sessions.find(conversation_id) is not None

    async def leave(self, conversation_id: str) -> bool:
        """Give a conversation back, because the person goes on elsewhere; False: its turn still runs, and it is
        given back when that ends. One that is not held is no error; a message sent to it takes it again.

        Raises StorageError when what its last turn owes cannot be written: it stays held then.
        """
        session = self._sessions.find(conversation_id)
        if session is None:
            return True
        session.leaving = True
        if session.wanted > 0:
            return False
        await session.enter()
        try:
            if session.leaving and session.wanted == 1:
                await uninterrupted(self._give_back(session))
        finally:
            session.exit()
        return not self._sessions.holds(session)

    async def choose_model(self, conversation_id: str | None, name: str) -> ModelInfo:
        """Make `name` the conversation's model from its next turn on, and return it. None: only look whether
        it could answer; a surface then passes it on with the first message.

        Raises as choosing for a turn does (ModelNotFoundError, RemoteRefusedError, CapabilityMissingError,
        ModelUnavailableError), and LeaseHeldError, NotFoundError, StorageError.
        """
        return await self._choices.choose_model(conversation_id, name)

    async def choose_thinking(
        self, conversation_id: str | None, thinking: Thinking, *, requested: str | None = None
    ) -> None:
        """Have the conversation's models think so much from its next turn on. None: only look whether the one that
        would answer could, as in `choose_model`; `requested` is then the model that goes with the first message.

        Raises CapabilityMissingError for a model that cannot think (never for `off` and `auto`), else as
        `choose_model`.
        """
        await self._choices.choose_thinking(conversation_id, thinking, requested=requested)

    async def next_model(self, conversation_id: str | None, requested: str | None = None) -> ModelInfo:
        """Return the model that would answer now; nothing is changed. Raises as choosing for a turn does."""
        return await self._choices.next_model(conversation_id, requested)

    async def thinking(self, conversation_id: str) -> Thinking:
        """Return how much the conversation's models are to think. Raises NotFoundError, StorageError."""
        return await self._choices.thinking(conversation_id)

    async def choose_permission(self, conversation_id: str | None, mode: PermissionMode) -> None:
        """Have tools ask from the next call on as `mode` says. None: nothing to keep it in; a surface passes it on with
        the first message. Raises LeaseHeldError, NotFoundError, StorageError.
        """
        await self._choices.choose_permission(conversation_id, mode)

    async def permission(self, conversation_id: str) -> PermissionMode:
        """Return the permission mode of a conversation. Raises NotFoundError, StorageError."""
        return await self._choices.permission(conversation_id)

    async def undo(self, conversation_id: str) -> Undone:
        """Take back what the last turn's tools changed in files, where they still hold what the tool left.

        Raises UsageError while a turn runs and where there is nothing to take back, LeaseHeldError, NotFoundError,
        StorageError.
        """
        session = await self._locked(conversation_id)
        try:
            if session.conversation is None:
                raise UsageError("nothing was done in this conversation yet")
            return await uninterrupted(self._changes.undo(conversation_id, session.conversation.folder))
        finally:
            await self._let_go(session)

    async def close(self) -> bool:
        """Stop every turn, wait for its closing writes (at most 2 s), give the conversations back."""
        in_time = await self._engine.close()
        if in_time:
            for session in self._sessions.current:
                try:
                    await self._recorder.settle(session)
                except StorageError as error:
                    self._failures.background("journal", error)
            await self._sessions.close()
        return in_time

    async def _drive(self, flight: Flight) -> TurnClosed:
        new = flight.request.conversation_id is None
        session = await self._admit(flight)
        try:
            return await self._pilot.fly(flight, session)
        except BaseException:
            if new and not flight.opened:
                await uninterrupted(self._sessions.release(session.conversation_id))
            raise
        finally:
            await self._let_go(session, turn=True)

    async def _admit(self, flight: Flight) -> Session:
        """Return the conversation's session, locked for this turn; waiting for it can be cancelled."""
        entering = self._locked(flight.request.conversation_id, turn=True)
        admission = asyncio.create_task(entering, name=f"admit {flight.turn_id}")
        flight.cancel.bind(admission)
        while not admission.done():
            try:
                await asyncio.wait({admission})
            except asyncio.CancelledError:
                flight.cancel.cancel()
        if admission.cancelled():
            raise CancelledEarlyError(EARLY)
        return admission.result()

    async def _locked(self, conversation_id: str | None, *, turn: bool = False) -> Session:
        identity = conversation_id or self._ids.new_id("cnv")
        return await self._sessions.enter(identity, new=conversation_id is None, turn=turn)

    async def _let_go(self, session: Session, *, turn: bool = False) -> None:
        """End one use of a session; the last one gives back a conversation that the person has left."""
        try:
            if session.leaving and session.wanted == 1:
                await uninterrupted(self._give_back(session))
        except StorageError as error:
            # It stays ours, with what is owed: giving it back now would lose that.
            self._failures.background("journal", error)
        finally:
            session.exit(turn=turn)

    async def _give_back(self, session: Session) -> None:
        if self._sessions.holds(session):
            await self._recorder.settle(session)
            await self._sessions.release(session.conversation_id, if_left=True)
