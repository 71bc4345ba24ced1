"""The one door to turns: send a message, stop a turn, end a task."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec

from rune.config.settings import Settings
from rune.context.blocks import FrozenPrefix
from rune.errors import CancelledEarlyError, ModelError, RuneError, StorageError, UsageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.models.transport import ModelInfo
from rune.records.messages import Channel, ConversationMessageRecord, ConversationRecord
from rune.records.models import Thinking
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.times import rfc3339
from rune.records.turns import StopReason
from rune.store.conversations import ConversationStateRepository
from rune.store.tasks import TaskStateRepository
from rune.text.storable import storable
from rune.turn.bounds import closed, opened, unsaved
from rune.turn.conversation_actions import ConversationActions
from rune.turn.conversation_choices import ConversationChoices
from rune.turn.engine import TurnEngine
from rune.turn.events import Notice, TurnClosed, TurnEvent
from rune.turn.failures import TurnFailures
from rune.turn.flight import CancelToken, Flight, uninterrupted
from rune.turn.limits import Counters
from rune.turn.outcome import Outcome, land
from rune.turn.recorder import TurnRecorder
from rune.turn.request import TurnRequest
from rune.turn.runtime import LocalToolRuntime
from rune.turn.selection import ModelSelection
from rune.turn.session import Session, Sessions
from rune.turn.thinking import check_thinking, not_thinking, think_level

_EARLY = "interrupted before the message was stored"


class RuneOperator:
    """Takes messages and runs each as a turn of its own. A surface knows this and nothing behind it."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        sessions: Sessions,
        selection: ModelSelection,
        recorder: TurnRecorder,
        runtime: LocalToolRuntime,
        conversations: ConversationStateRepository,
        tasks: TaskStateRepository,
        unread: Callable[[str, bool], str],
        mask: Callable[[str], str],
        clock: Clock,
        ids: IdSource,
        failures: TurnFailures,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._selection = selection
        self._recorder = recorder
        self._runtime = runtime
        self._conversations = conversations
        self._tasks = tasks
        self._unread = unread
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
        settings = self._settings()
        turn_id = self._ids.new_id("trn")
        token = token or CancelToken()

        async def drive(emit: Callable[[TurnEvent], None]) -> TurnClosed:
            typed = storable(request.text)
            text = self._mask(typed)
            flight = Flight(
                request=msgspec.structs.replace(request, text=text),
                masked=text != typed,
                settings=settings,
                turn_id=turn_id,
                emit=emit,
                cancel=token,
                counters=Counters(iteration_budget=request.max_steps or settings.turn.iteration_budget),
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
            work = asyncio.create_task(self._fly(flight, session), name=f"work {flight.turn_id}")
            flight.cancel.bind(work)
            outcome = await land(work, flight)
            self._selection.landed(flight, outcome)
            if not flight.opened:
                if new:
                    await uninterrupted(self._sessions.release(session.conversation_id))
                raise outcome.exception or CancelledEarlyError(_EARLY)
            return await uninterrupted(self._close(flight, session, outcome))
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
            raise CancelledEarlyError(_EARLY)
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

    async def _fly(self, flight: Flight, session: Session) -> StopReason:
        first = session.conversation is None
        async with session.choosing:
            problem = await self._open(flight, session)
        flight.emit(opened(flight))
        if unread := self._unread(flight.request.folder, first):
            flight.emit(Notice(turn_id=flight.turn_id, text=unread, about="trust"))
        for text in self._worth_knowing(flight, session):
            stand_in = flight.model is not None and flight.model.stand_in and text == flight.model.notice
            flight.emit(Notice(turn_id=flight.turn_id, text=text, about="stand_in" if stand_in else ""))
        if problem is not None or flight.model is None:
            raise problem or RuntimeError("no model was chosen, for no reason")
        return await self._runtime.run(flight, session, flight.model)

    async def _open(self, flight: Flight, session: Session) -> RuneError | None:
        """Choose the model and make the turn durable; returns what stands in the way of an answer."""
        problem = await self._choose(flight, session)
        if problem is not None and flight.request.model is not None:
            raise problem  # a name that was mistyped is no message yet

        def first_prefix(message: ConversationMessageRecord) -> FrozenPrefix | None:
            nonlocal problem
            if flight.model is None:
                return None
            try:
                return self._runtime.first_prefix(flight, session, message)
            except RuneError as error:
                problem = problem or error
                return None

        await uninterrupted(self._recorder.open(flight, session, first_prefix))
        return problem

    def _worth_knowing(self, flight: Flight, session: Session) -> list[str]:
        """Return what the person could not know and the answer will not say, a sentence each."""
        told = [flight.model.notice if flight.model else ""]
        if flight.masked:
            told.append("what looks like a secret in this message was masked before it was stored or sent")
        if session.interrupted:
            session.interrupted = False
            told.append("the answer before this one was lost when its process was ended; the message to it is kept")
        if flight.model and (unable := not_thinking(flight.thinking, flight.model)) and session.unthinking != unable:
            session.unthinking = unable
            told.append(f"{unable} cannot think: `/thinking {flight.thinking}` waits for a model that can")
        return [text for text in told if text]

    async def _choose(self, flight: Flight, session: Session) -> RuneError | None:
        """Choose the model before the turn is stored, so that its facts name it; what stands in the way is
        raised once the person's message is safe. Raises CapabilityMissingError for thinking that this very request
        asks for.
        """
        flight.thinking = flight.request.thinking or session.thinking
        try:
            model = await self._selection.choose(
                requested=flight.request.model, conversation_model=session.model, settings=flight.settings
            )
        except ModelError as error:
            return error
        if flight.request.thinking is not None:
            check_thinking(flight.request.thinking, model.info)
        model.think = think_level(flight.thinking, model.info)
        flight.model = model
        return None

    async def _close(self, flight: Flight, session: Session, outcome: Outcome) -> TurnClosed:
        if outcome.exception is not None and outcome.reason is StopReason.BUG:
            self._failures.answer("turn", outcome.exception, flight.turn_id)
        try:
            trace_id = await self._recorder.close(flight, session, outcome)
        except StorageError as error:
            # The person must know that what they read is not kept; recovery ends the turn at the next start.
            self._failures.answer("journal", error, flight.turn_id)
            outcome, trace_id = unsaved(error), None
        # Only now, when the answer is safe: a server that is slow to tell must not cost it.
        lowered = await self._selection.afterwards(flight)
        for text in filter(None, [*self._failures.untold(), lowered]):
            flight.emit(Notice(turn_id=flight.turn_id, text=text, tier=1))
        return closed(flight, outcome, conversation_id=session.conversation_id, trace_id=trace_id)
