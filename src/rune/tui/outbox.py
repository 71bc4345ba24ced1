"""What a person said and is not stored yet: it waits here and is sent, one message after the other."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from rune.errors import AlreadyDecidedError, LeaseHeldError, NotFoundError, RuneError, UsageError
from rune.records.approvals import Decision
from rune.records.turns import StopReason
from rune.tui.deltas import joined
from rune.tui.flushes import Flushes
from rune.tui.talk import Talk
from rune.tui.transcript_state import answering, cancelling, closed_question, reduce, refused, sent, unsaid
from rune.turn.events import Notice, TextDelta, ThinkingDelta, TurnClosed, TurnEvent, TurnOpened
from rune.turn.flight import CancelToken
from rune.turn.operator import RuneOperator
from rune.turn.request import TurnRequest

# After these the next waiting message is sent by itself. After any other end the person decides.
GOES_ON: Final = frozenset({StopReason.ANSWERED, StopReason.LENGTH})


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not sent yet. `pasted`: none of it was typed."""

    text: str
    pasted: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """How the person answers a question. `reason` is their word to the model; `always`: do not ask for this again."""

    approval_id: str
    decision: Decision
    reason: str = ""
    always: bool = False


class Outbox:
    """Sends to the conversation that `talk` shows, and has it show what comes of that.

    `ended` is called on the event loop when a turn has, or could not begin. Times are those of the running event loop.
    """

    def __init__(
        self, talk: Talk, operator: RuneOperator, *, ended: Callable[[Talk], None], max_steps: int | None = None
    ) -> None:
        self.waiting: tuple[Waiting, ...] = ()
        self.held = False
        self._reply: Reply | None = None
        self._talk = talk
        self._operator = operator
        self._ended = ended
        self._max_steps = max_steps
        self._stop = CancelToken()
        self._sending: asyncio.Task[None] | None = None
        self._on_its_way: Waiting | None = None
        self._knows_stand_in = False  # that the small model answers stood on the screen when the message was sent
        self._flushes: Flushes[TurnEvent] = Flushes(self._take)

    @property
    def unsent(self) -> tuple[str, ...]:
        """Everything that was said and is not stored yet: what is on its way, and what waits."""
        on_its_way = (self._on_its_way,) if self._on_its_way is not None else ()
        return tuple(message.text for message in (*on_its_way, *self.waiting))

    def say(self, text: str, *, pasted: bool = False) -> None:
        """Send a message; while a turn runs it waits for its end. Also sends on what was held."""
        self.waiting = (*self.waiting, Waiting(text=text, pasted=pasted))
        self.go_on()

    def keep(self, text: str, *, pasted: bool = False) -> None:
        """Have a message wait until the person goes on."""
        self.waiting, self.held = (*self.waiting, Waiting(text=text, pasted=pasted)), True

    def answer(self, reply: Reply) -> None:
        """Answer the question that waits; what waits to be sent stays behind the turn that goes on then."""
        if self._reply is None and not self._talk.busy:
            self._reply = reply
            self._go()

    def go_on(self) -> None:
        """Send what waits, also what was held back."""
        self.held = False
        self._go()

    def _go(self) -> None:
        if self._sending is None or self._sending.done():
            # It shows what it does: that a message waited which is sent at once would only flash up.
            self._sending = asyncio.create_task(self._send_waiting(), name=f"outbox {self._talk.channel}")
        else:
            self._talk.changed()

    def take_back(self) -> str | None:
        """Return the newest message that waits, which waits no longer; None when there is none."""
        if not self.waiting:
            return None
        *rest, last = self.waiting
        self.waiting = tuple(rest)
        self.held = self.held and bool(rest)
        self._talk.changed()
        return last.text

    def cancel(self) -> bool:
        """Stop the running turn; False when none runs. What was said so far is kept."""
        talk = self._talk
        if not talk.busy:
            return False
        self._stop.cancel()
        talk.transcript = cancelling(talk.transcript)
        talk.changed()
        return True

    async def close(self) -> None:
        """Stop sending; what was on its way and is not stored is unsent again. The operator ends the turn itself."""
        if self._sending is not None:
            self._sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sending

    async def _send_waiting(self) -> None:
        while self._reply is not None or (self.waiting and not self.held):
            async with self._talk.turnstile:
                reply, self._reply = self._reply, None
                if reply is not None:
                    reason = await self._answer(reply)
                elif self.waiting and not self.held:
                    first, *rest = self.waiting
                    self.waiting, self._on_its_way = tuple(rest), first
                    reason = await self._send(first)
                    self.waiting = (*self._come_back(), *self.waiting)
                else:
                    break  # it was taken back meanwhile
                self.held = bool(self.waiting) and reason not in GOES_ON
            self._talk.changed()
            self._ended(self._talk)

    def _come_back(self) -> tuple[Waiting, ...]:
        """Return what was on its way and did not become a turn: it is still the person's."""
        message, self._on_its_way = self._on_its_way, None
        return (message,) if message is not None else ()

    async def _send(self, message: Waiting) -> StopReason | None:
        """Run one turn; returns how it ended, None when there was no turn."""
        talk = self._talk
        key = talk.new_key()
        self._knows_stand_in = talk.model is not None and talk.model.stand_in
        if talk.held_elsewhere and talk.conversation_id is not None:
            await self._look_again(talk.conversation_id)
        talk.transcript = sent(talk.transcript, key, message.text, asyncio.get_running_loop().time())
        request = TurnRequest(
            text=message.text,
            folder=talk.folder,
            channel=talk.channel,
            conversation_id=talk.conversation_id,
            model=talk.requested_model,
            thinking=talk.requested_thinking,
            permission=talk.requested_permission,
            max_steps=self._max_steps,
        )

        async def refuse(error: RuneError) -> None:
            self._refused(error, key)

        return await self._fly(partial(self._operator.send_task, request), request, refuse)

    async def _answer(self, reply: Reply) -> StopReason | None:
        """Run the turn that goes on with an answer; returns how it ended, None when there was none."""
        talk = self._talk
        talk.transcript = answering(talk.transcript, asyncio.get_running_loop().time())
        request = TurnRequest(text="", folder=talk.folder, conversation_id=talk.conversation_id)
        begin = partial(
            self._operator.answer, reply.approval_id, reply.decision, reason=reply.reason, always=reply.always
        )
        return await self._fly(begin, request, self._unanswered)

    async def _fly(
        self,
        begin: Callable[..., AsyncGenerator[TurnEvent, None]],
        request: TurnRequest,
        failed: Callable[[RuneError], Awaitable[None]],
    ) -> StopReason | None:
        """Run a turn; `failed` is called when it could not begin."""
        talk, reason = self._talk, None
        self._stop = stop = CancelToken()
        talk.changed()
        try:
            async with contextlib.aclosing(begin(token=stop)) as events:
                async for event in events:
                    reason = self._heed(event, request) or reason
                    self._pass_on(event)
                    if isinstance(event, TurnOpened) and not talk.title:
                        await talk.measure()
                        talk.changed()
        except RuneError as error:
            await failed(error)
        except Exception as error:
            logging.getLogger(__name__).exception("a turn could not begin")
            await failed(RuneError(f"a fault of Rune's own: {type(error).__name__}: {error}"))
        else:
            self._flushes.flush()
        return reason

    async def _unanswered(self, error: RuneError) -> None:
        """Say why an answer did not count. Where the question may be of no use any more, show what became of it."""
        talk = self._talk
        decided = isinstance(error, AlreadyDecidedError)
        if not decided and not isinstance(error, NotFoundError | UsageError):
            self._refused(error, talk.new_key())
            return
        self._flushes.flush()
        talk.transcript = closed_question(unsaid(talk.transcript))
        if talk.conversation_id is not None:
            await self._look_again(talk.conversation_id)
        said = f"your answer was not needed: {error.message}" if decided else error.message
        talk.tell(said, error.hint, tier=None if decided else 1)

    async def _look_again(self, conversation_id: str) -> None:
        """Read anew what another Rune had open: it may be free by now, and more may have been said."""
        try:
            await self._talk.open(conversation_id)
        except RuneError as error:
            self._talk.tell(error.message, error.hint, tier=1)

    def _refused(self, error: RuneError, key: str) -> None:
        self._flushes.flush()
        talk = self._talk
        if isinstance(error, LeaseHeldError) and error.conversation_id == talk.conversation_id:
            talk.transcript = unsaid(talk.transcript)  # the row above the prompt says why
            talk.held_by(error)
        else:
            talk.transcript = refused(talk.transcript, error, key)

    def _heed(self, event: TurnEvent, request: TurnRequest) -> StopReason | None:
        """Act on what an event says about the turn itself; returns how it ended, once it has."""
        if isinstance(event, TurnOpened):
            self._on_its_way = None
            self._talk.begun(event, request)
        if not isinstance(event, TurnClosed):
            return None
        self._talk.failed(event.error_type)
        return event.stop_reason

    def _pass_on(self, event: TurnEvent) -> None:
        """Have an event shown: what comes in bursts gathered, anything else at once."""
        if isinstance(event, Notice) and event.about == "trust":
            return  # a row above the prompt says so
        if isinstance(event, Notice) and event.about == "stand_in" and self._knows_stand_in:
            return  # the greeting said so, and the header still does
        if isinstance(event, TextDelta | ThinkingDelta):
            self._flushes.put(event)
        else:
            self._flushes.at_once(event)

    def _take(self, events: list[TurnEvent]) -> None:
        now = asyncio.get_running_loop().time()
        for event in joined(events):
            self._talk.transcript = reduce(self._talk.transcript, event, now)
        self._talk.changed()
