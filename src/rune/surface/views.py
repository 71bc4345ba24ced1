"""What a surface may read: plain values, no store behind them."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from rune.context.reconstruct import Reconstruction, rebuild_messages
from rune.errors import EvidenceTamperedError, ModelError, NotFoundError, StorageError, StorageUnavailableError
from rune.models.router import Router
from rune.models.transport import ModelInfo
from rune.observability.health import SubsystemHealth, SubsystemHealthRegistry
from rune.records.envelope import EventEnvelope
from rune.records.events import BodyErased
from rune.records.messages import Channel, ConversationMessageRecord
from rune.records.session import LeaseHolder
from rune.records.traces import InferenceTraceRecord
from rune.store.approvals import ApprovalRepository
from rune.store.codec import decode_body
from rune.store.conversations import Conversation, ConversationStateRepository
from rune.store.evidence_store import Evidence
from rune.store.intents import IntentRepository
from rune.store.journal_tail import JournalTail
from rune.store.leases import LeaseBook
from rune.store.ledger import once
from rune.store.order import Located
from rune.store.rows import MOST_ROWS
from rune.store.traces import TraceRepository
from rune.store.turns import TurnRepository
from rune.surface.context_text import use_of
from rune.surface.export import WholeConversation
from rune.surface.rows import ContextUse, ConversationRow, MessageHit, TurnEnd
from rune.surface.tool_views import ToolViews

# How long what was just appended may wait to be shown, and how many events are held at a time.
_LOOK_SECONDS: Final = 0.25
_PIECE: Final = 200


class Views(ToolViews):
    """Reads for screens and commands."""

    def __init__(
        self,
        *,
        conversations: ConversationStateRepository,
        turns: TurnRepository,
        intents: IntentRepository,
        approvals: ApprovalRepository,
        traces: TraceRepository,
        evidence: Evidence,
        leases: LeaseBook,
        held_here: Callable[[str], bool],
        health: SubsystemHealthRegistry,
        router: Router,
        recent_events: Callable[[Sequence[str], int], Iterator[EventEnvelope]],
        tail: Callable[[], JournalTail],
        caught_up: Callable[[], Awaitable[object]],
        gone: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(conversations=conversations, intents=intents, approvals=approvals)
        self._turns = turns
        self._traces = traces
        self._evidence = evidence
        self._leases = leases
        self._held_here = held_here
        self._health = health
        self._router = router
        self._recent_events = recent_events
        self._tail = tail
        self._caught_up = caught_up
        self._gone = gone

    async def conversations(
        self,
        *,
        folder: str | None = None,
        channel: Channel | None = None,
        limit: int = 50,
        with_hidden: bool = False,
        with_empty: bool = False,
    ) -> Sequence[Conversation]:
        """List conversations, the one with the newest message first; those without any only where they are wanted."""
        return await self._conversations.conversations(
            folder=folder, channel=channel, limit=limit, with_hidden=with_hidden, with_empty=with_empty
        )

    async def rows(
        self, folder: str | None = None, channel: Channel | None = None, limit: int = 50
    ) -> Sequence[ConversationRow]:
        """List conversations with a message, as screens show them, the newest message first. Raises StorageError."""
        found = await self._conversations.conversations(folder=folder, channel=channel, limit=limit, with_empty=False)
        if not found:
            await self._refuse_what_is_gone()
        waiting = await self.waiting_conversations() if found else frozenset[str]()
        return await asyncio.to_thread(lambda: [self._row(each, waiting) for each in found])

    async def conversation(self, conversation_id: str) -> ConversationRow:
        """Return one conversation. Raises NotFoundError."""
        found = await self._conversations.get(conversation_id)
        return await asyncio.to_thread(self._row, found, await self.waiting_conversations())

    async def whole(self, conversation_id: str) -> WholeConversation:
        """Return all that is known of a conversation, its messages and turns oldest first. Raises NotFoundError."""
        conversation = await self._conversations.get(conversation_id)
        messages = await self._conversations.messages(conversation_id)
        turns = await self._turns.turns(conversation_id)
        ends = await self.ends(conversation_id)
        # Damage may have taken the very beginning of a turn.
        lost = {message.turn_id: message.conversation_id for message in messages if message.turn_id not in ends}
        left = await asyncio.to_thread(self._left, set(lost.values()))
        ends |= {turn_id: TurnEnd(reason=None, cut_off=where in left) for turn_id, where in lost.items()}
        calls = await self.tool_results(conversation_id)
        return WholeConversation(
            conversation=conversation, messages=tuple(messages), turns=tuple(turns), ends=ends, calls=tuple(calls)
        )

    async def holder(self, conversation_id: str) -> LeaseHolder | None:
        """Return the other process that has a conversation open; None: nobody has, or this one."""
        return await asyncio.to_thread(self._other_holder, conversation_id)

    def _row(self, found: Conversation, waiting: Collection[str]) -> ConversationRow:
        record, holder = found.record, self._other_holder(found.record.id)
        return ConversationRow(
            id=record.id,
            title=record.title,
            channel=record.channel,
            folder=record.folder,
            last_active=found.last_active,
            messages=found.messages,
            held_by=holder.pid if holder is not None else None,
            private=record.private,
            model=record.model,
            forked_from=record.forked_from,
            hidden=found.hidden,
            thinking=found.thinking,
            waits=record.id in waiting,
        )

    def _other_holder(self, conversation_id: str) -> LeaseHolder | None:
        return None if self._held_here(conversation_id) else self._leases.holder(conversation_id)

    def _left(self, conversation_ids: Collection[str]) -> set[str]:
        """Return those of them that nobody has open, this process neither."""
        return {each for each in conversation_ids if not self._held_here(each) and self._leases.holder(each) is None}

    async def latest_free(
        self, folder: str, channel: Channel, *, exclude: Collection[str] = ()
    ) -> tuple[str | None, tuple[LeaseHolder, ...]]:
        """Return the newest conversation of a folder that no other process has open, and who holds the
        newer ones that were passed over; those of `exclude` count as not there.

        It may be taken by the time it is wanted: only taking it decides.
        """
        passed: list[LeaseHolder] = []
        found = await self._conversations.conversations(
            folder=folder, channel=channel, limit=50, exclude=exclude, with_empty=False
        )
        for summary in found:
            holder = await asyncio.to_thread(self._other_holder, summary.record.id)
            if holder is None:
                return summary.record.id, tuple(passed)
            passed.append(holder)
        return None, tuple(passed)

    async def resolve(self, text: str) -> str:
        """Return the id of the conversation that a person means. Raises NotFoundError."""
        return await self._conversations.resolve(text)

    async def resolve_message(self, text: str) -> str:
        """Return the id of the message that a person means. Raises NotFoundError."""
        return await self._conversations.resolve_message(text)

    async def search(
        self, text: str, *, folder: str | None = None, limit: int = 20, of_each: int | None = None
    ) -> Sequence[MessageHit]:
        """Find messages in all conversations, the best match first: all words occur in each, "quoted words" together,
        the last word perhaps only begun; of each conversation at most `of_each`. Nothing is found for a text without
        words. Raises StorageError.
        """
        hits = await self._conversations.search(text, folder=folder, limit=limit, of_each=of_each)
        if not hits:
            await self._refuse_what_is_gone()
        return hits

    async def _refuse_what_is_gone(self) -> None:
        """Raise StorageUnavailableError where the journal went away under this process: views made anew are empty."""
        if await asyncio.to_thread(self._gone):
            raise StorageUnavailableError(
                "what was stored is no longer where it was: the folder of the journal is gone",
                hint="If it was moved, move it back; then leave and start Rune again.",
            )

    async def transcript(self, conversation_id: str) -> Sequence[ConversationMessageRecord]:
        """Return all messages of a conversation, oldest first."""
        return await self._conversations.messages(conversation_id)

    async def ends(self, conversation_id: str) -> dict[str, TurnEnd]:
        """Return how each turn of a conversation ended, by turn id, what was said of those that failed, and what
        may have run in them.
        """
        failures = await self._turns.failures(conversation_id)
        turns = await self._turns.turns(conversation_id)
        where = {conversation_id, *(turn.conversation_id for turn in turns)}
        calls = [call for each in sorted(where) for call in await self._intents.of_unknown_outcome(each)]
        left = await asyncio.to_thread(self._left, {turn.conversation_id for turn in turns if not turn.stop_reason})
        ends: dict[str, TurnEnd] = {}
        for turn in turns:
            failure = failures.get(turn.id)
            ends[turn.id] = TurnEnd(
                reason=turn.stop_reason,
                error=failure.message if failure else "",
                hint=failure.hint if failure else "",
                cut_off=turn.stop_reason is None and turn.conversation_id in left,
                may_have_run=tuple(call.effect for call in calls if call.turn_id == turn.id),
            )
        return ends

    async def context_use(self, conversation_id: str) -> ContextUse | None:
        """Return how full the newest prompt of a conversation was; None when there was none, or it is not kept."""
        try:
            newest = await self._traces.latest_turn(conversation_id)
        except NotFoundError:  # erased or lost: what it would say is only for the eye
            return None
        return None if newest is None else use_of(newest)

    async def traces(self, *, conversation_id: str | None = None, limit: int = 20) -> Sequence[InferenceTraceRecord]:
        """Return the newest traces first."""
        return await self._traces.newest(conversation_id, limit=limit)

    async def trace(self, trace_id: str | None, *, conversation_id: str | None = None) -> InferenceTraceRecord:
        """Return one trace; when no id is given the newest, of a conversation the newest that is no side call. Raises
        NotFoundError.
        """
        if trace_id is not None:
            return await self._traces.get(await self._traces.resolve(trace_id))
        newest = await (self._traces.latest() if conversation_id is None else self._traces.latest_turn(conversation_id))
        if newest is None:
            raise NotFoundError("no model call was traced yet", hint="Send a message first.")
        return newest

    async def prompts(self, trace: InferenceTraceRecord) -> tuple[Reconstruction, ...]:
        """Rebuild each request of a run from its recipe and hold it against the hash it was sent with."""
        messages: dict[str, ConversationMessageRecord] = {}
        if trace.conversation_id is not None and any(recipe.history for recipe in trace.requests):
            messages = {message.id: message for message in await self.transcript(trace.conversation_id)}
        rebuilt: list[Reconstruction] = []
        for recipe in trace.requests:
            blobs = await asyncio.to_thread(self._blobs, sorted(recipe.blobs))
            said = [entry.message_id for entry in recipe.history]
            lacking = [name for name in (*recipe.blobs, *said) if name not in blobs and name not in messages]
            erased = await asyncio.to_thread(self._erased, lacking) if lacking else frozenset[str]()
            rebuilt.append(rebuild_messages(recipe, blobs, messages, erased))
        return tuple(rebuilt)

    def _erased(self, names: Sequence[str]) -> frozenset[str]:
        """Return which of these blobs and messages the owner erased."""
        gone: set[str] = set()
        for envelope in self._recent_events(("body.erased",), MOST_ROWS):
            with contextlib.suppress(StorageError):  # its list was lost: then nobody can say
                body = decode_body(envelope, self._evidence)
                if isinstance(body, BodyErased):
                    gone.update(body.gone, body.event_ids)
        return frozenset(name for name in names if name in gone or once(name) in gone)

    def _blobs(self, names: Sequence[str]) -> dict[str, bytes]:
        """Read what is there; what is missing or no longer what it was is the reconstruction's to say."""
        found: dict[str, bytes] = {}
        for name in names:
            with contextlib.suppress(NotFoundError, EvidenceTamperedError):
                found[name] = self._evidence.get(name)
        return found

    async def evidence(self, digest: str) -> bytes:
        """Return what is kept under an id, whole. Raises NotFoundError, EvidenceTamperedError, StorageError."""
        return await asyncio.to_thread(self._evidence.get, digest)

    def events(self, *, types: Sequence[str] = (), limit: int = 100) -> Iterator[EventEnvelope]:
        """Iterate over the newest events in order, the newest last."""
        return self._recent_events(types, limit)

    async def follow(
        self, *, types: Sequence[str] = (), limit: int = 100
    ) -> AsyncGenerator[Sequence[EventEnvelope], None]:
        """Give what `events` does, then without end what any process appends, in order and in pieces; an empty piece
        says that nothing came in the last quarter of a second. Raises StorageError.
        """
        tail = self._tail()
        begun = await asyncio.to_thread(tail.begin)
        await self._caught_up()  # no event may lie between what the views know and where the following begins
        newest = await asyncio.to_thread(lambda: [*self._recent_events(types, limit)])
        yield [each for each in newest if each.writer in begun and each.seq <= begun[each.writer].seq]
        while True:
            fresh = tail.fresh()
            while piece := await asyncio.to_thread(_taken, fresh):
                yield [each for _, each in piece if not types or each.event_type in types]
            yield ()
            await asyncio.sleep(_LOOK_SECONDS)

    def health(self) -> tuple[SubsystemHealth, ...]:
        """Return what failed in this process."""
        return self._health.snapshot()

    async def models(self) -> tuple[Sequence[ModelInfo], Sequence[ModelError]]:
        """List the models that could be used now, and what kept others from being seen."""
        catalog = await self._router.survey()
        return tuple(offer.info for offer in catalog.offers), catalog.failures


def _taken(events: Iterator[Located]) -> list[Located]:
    return [*islice(events, _PIECE)]
