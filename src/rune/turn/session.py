"""A conversation that this process writes: its lease, and what the next prompt builds on."""

import asyncio

from rune.context.blocks import FrozenPrefix
from rune.context.prefix import decode_prefix
from rune.context.reconstruct import rebuild_messages
from rune.errors import EvidenceTamperedError, InvalidRecordError, NotFoundError, RuneError, UsageError
from rune.models.truncation import TruncationWatch
from rune.records.approvals import PendingApprovalRecord
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.records.tasks import TaskStateRecord
from rune.records.tools import ToolCall, ToolResult
from rune.records.turns import StopReason, TurnRecord
from rune.store.approvals import ApprovalRepository
from rune.store.conversations import ConversationStateRepository
from rune.store.evidence_store import Evidence
from rune.store.leases import ConversationLease, LeaseBook
from rune.store.ledger import Draft, Ledger
from rune.store.tasks import TaskStateRepository
from rune.store.traces import TraceRepository
from rune.store.turns import TurnRepository
from rune.tools.workplace import Workplace
from rune.turn.failures import TurnFailures
from rune.turn.flight import ModelRun, uninterrupted


class Session:
    """What is known of one conversation while its lease is held. Changed only by the turn in progress,
    which holds `lock`; a second turn of the same conversation waits for it. `owed` are facts of an ended
    turn that could not be written yet; `interrupted` says that the last turn was killed in mid-answer.

    `permission` may change at any time, and holds from the next call on. `pending` is the question of its paused turn;
    `place` is where its tools work, once they did; `made` are its calls and what they came to, oldest first.
    `model` and `thinking` are changed only under `choosing`: by a turn until it is opened, or by the person at any
    time. `unthinking` is the model of which the person was told that it cannot think.
    `wanted` counts who holds `lock` or waits for it, `turns` the turns among them; with `leaving` the last of
    them gives the conversation back.
    """

    def __init__(self, conversation_id: str, lease: ConversationLease) -> None:
        self.conversation_id = conversation_id
        self.lease = lease
        self.lock = asyncio.Lock()
        self.choosing = asyncio.Lock()
        self.wanted = 0
        self.turns = 0
        self.leaving = False
        self.conversation: ConversationRecord | None = None
        self.task: TaskStateRecord | None = None
        self.history: list[ConversationMessageRecord] = []
        self.archived: frozenset[str] = frozenset()
        self.frozen: FrozenPrefix | None = None
        self.last_messages = b""
        self.model = ""
        self.thinking: Thinking = "auto"
        self.permission: PermissionMode = "ask"
        self.pending: PendingApprovalRecord | None = None
        self.place: Workplace | None = None
        self.made: list[tuple[ToolCall, ToolResult]] = []
        self.unthinking = ""
        self.owed: list[Draft] = []
        self.interrupted = False
        self._watched: tuple[str, str, str, int] | None = None
        self._watch = TruncationWatch()

    def watch(self, run: ModelRun) -> TruncationWatch:
        """Return what looks for cut prompts: one for as long as the model and its window stay what they are."""
        watched = (run.info.provider, run.info.name, run.info.digest, run.num_ctx)
        if watched != self._watched:
            self._watched, self._watch = watched, TruncationWatch()
        return self._watch

    async def enter(self, *, turn: bool = False) -> None:
        """Wait until nobody else changes the conversation; `exit` lets the next one in. `turn`: for a turn."""
        self._count(1, turn=turn)
        try:
            await self.lock.acquire()
        except BaseException:
            self._count(-1, turn=turn)
            raise

    def exit(self, *, turn: bool = False) -> None:
        """Let the next one in."""
        self._count(-1, turn=turn)
        self.lock.release()

    def _count(self, one: int, *, turn: bool) -> None:
        self.wanted += one
        self.turns += one if turn else 0


def unanswerable(turn: TurnRecord) -> bool:
    """Say whether a turn's message did not fit: unless it was answered all the same, it is not sent again.

    It stays in the journal and in what a person sees.
    """
    return turn.stop_reason is StopReason.CONTEXT_EXHAUSTED


class Sessions:
    """Takes and gives back leases; one session a conversation."""

    def __init__(
        self,
        *,
        leases: LeaseBook,
        ledger: Ledger,
        conversations: ConversationStateRepository,
        tasks: TaskStateRepository,
        turns: TurnRepository,
        traces: TraceRepository,
        approvals: ApprovalRepository,
        evidence: Evidence,
        failures: TurnFailures,
    ) -> None:
        self._approvals = approvals
        self._leases = leases
        self._ledger = ledger
        self._conversations = conversations
        self._tasks = tasks
        self._turns = turns
        self._traces = traces
        self._evidence = evidence
        self._failures = failures
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()

    async def take(self, conversation_id: str, *, new: bool) -> Session:
        """Return the session of a conversation, taking its lease first.

        Raises LeaseHeldError when another process has it, NotFoundError when it does not exist.
        """
        async with self._opening:
            if (session := self._sessions.get(conversation_id)) is not None:
                return session
            lease = await asyncio.to_thread(self._leases.take, conversation_id)
            try:
                await self._ledger.adopt(conversation_id)
                session = Session(conversation_id, lease)
                if not new:
                    await self._load(session)
            except BaseException:
                lease.release()
                raise
            self._sessions[conversation_id] = session
            return session

    async def enter(self, conversation_id: str, *, new: bool = False, turn: bool = False) -> Session:
        """Return the session of a conversation for the caller alone, until its `exit`. `turn`: for a turn, which
        waits for those before it; anything else is not made to wait for one.

        Raises as `take`, and UsageError for anything but a turn while one runs or waits.
        """
        while True:
            try:
                session = await uninterrupted(self.take(conversation_id, new=new))
            except asyncio.CancelledError:
                if new:  # nobody else will ever ask for it
                    await uninterrupted(self.release(conversation_id))
                raise
            if session.turns and not turn:
                raise UsageError("a turn runs in this conversation", hint="Stop it, or wait for its end.")
            session.leaving = False
            await session.enter(turn=turn)
            if self.holds(session):
                return session
            # It was given back while the caller waited for it: what it knows may be old by now.
            session.exit(turn=turn)

    async def hold(self, conversation_id: str) -> None:
        """Take a conversation and keep it, also one that is just being left. Waits for no turn. Raises as `take`."""
        while True:
            session = await uninterrupted(self.take(conversation_id, new=False))
            session.leaving = False
            async with session.choosing:
                if self.holds(session):
                    return

    async def _load(self, session: Session) -> None:
        identity = session.conversation_id
        stored = await self._conversations.get(identity)
        session.conversation, session.thinking = stored.record, stored.thinking
        session.permission = stored.permission
        session.pending = next(iter(await self._approvals.pending(identity)), None)
        turns = await self._turns.turns(identity)
        session.interrupted = bool(turns) and turns[-1].stop_reason is StopReason.INTERRUPTED
        lost = {turn.id for turn in turns if unanswerable(turn)}
        messages = await self._conversations.messages(identity)
        answered = {message.turn_id for message in messages if message.role == "assistant"}
        session.history = [each for each in messages if each.turn_id not in lost - answered]
        session.archived = frozenset(await self._conversations.archived_ids(identity))
        session.task = await self._tasks.get_active(identity)
        session.model = session.conversation.model
        if session.conversation.prefix is not None:
            session.frozen = await self._frozen(session.conversation.prefix)
        try:
            session.last_messages = await self._last_messages(session)
        except RuneError as error:
            # Only the measure of reuse suffers: the prompt itself is built from records, not from this.
            self._failures.background("context_reuse", error)

    async def _frozen(self, prefix: str) -> FrozenPrefix | None:
        try:
            return decode_prefix(await asyncio.to_thread(self._evidence.get, prefix))
        except (NotFoundError, EvidenceTamperedError, InvalidRecordError) as error:
            # It is collected anew, and that it had to be is journaled as a break.
            self._failures.degraded("prefix", error)
            return None

    async def _last_messages(self, session: Session) -> bytes:
        trace = await self._traces.latest_turn(session.conversation_id)
        if trace is None or not trace.requests:
            return b""
        recipe = trace.requests[-1]
        blobs: dict[str, bytes] = {}
        for blob in recipe.blobs:
            blobs[blob] = await asyncio.to_thread(self._evidence.get, blob)
        rebuilt = rebuild_messages(recipe, blobs, {message.id: message for message in session.history})
        if not rebuilt.matches:
            raise NotFoundError(f"the last prompt cannot be rebuilt: {'; '.join(rebuilt.problems)}")
        return rebuilt.messages

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions that are held now."""
        return tuple(self._sessions.values())

    def find(self, conversation_id: str) -> Session | None:
        """Return the session of a conversation that is held, else None."""
        return self._sessions.get(conversation_id)

    def holds(self, session: Session) -> bool:
        """Say whether a session is still the one of its conversation, and its lease ours."""
        return self._sessions.get(session.conversation_id) is session

    async def release(self, conversation_id: str, *, if_left: bool = False) -> None:
        """Give a conversation back, after what is being chosen for it; one that is not held is no error.

        `if_left`: not when somebody came for it meanwhile.
        """
        async with self._opening:
            session = self._sessions.get(conversation_id)
            if session is None:
                return
            async with session.choosing:
                if if_left and not session.leaving:
                    return
                del self._sessions[conversation_id]
                await self._ledger.release(conversation_id)
                session.lease.release()
                if session.place is not None:
                    session.place.files.close()

    async def close(self) -> None:
        """Give everything back."""
        for conversation_id in tuple(self._sessions):
            await self.release(conversation_id)
