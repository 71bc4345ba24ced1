"""One channel's conversation, as the person has it in front of them. Knows the surface and no widget."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from rune.errors import LeaseHeldError, RuneError, UsageError
from rune.records.messages import Channel
from rune.records.turns import StopReason
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.surface.rows import ContextUse
from rune.surface.surface import Surface
from rune.tui.deltas import joined
from rune.tui.flushes import Flushes
from rune.tui.onlooking import Onlooker
from rune.tui.stored_talk import StoredTalk, read_stored
from rune.tui.transcript_state import (
    CommandOutput,
    Told,
    Transcript,
    cancelling,
    followed,
    reduce,
    refused,
    sent,
    told,
    unsaid,
)
from rune.turn.events import Notice, TextDelta, ThinkingDelta, TurnClosed, TurnEvent, TurnOpened
from rune.turn.flight import CancelToken
from rune.turn.request import TurnRequest

EMBEDDED: Final = "embedded"  # the provider's name, as turns tell it
# After these the next waiting message is sent by itself. After any other end the person decides.
GOES_ON: Final = frozenset({StopReason.ANSWERED, StopReason.LENGTH})


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not sent yet. `pasted`: none of it was typed."""

    text: str
    pasted: bool = False


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What answers: `name` "" when nothing can. `stand_in`: the small embedded model, for want of another."""

    name: str = ""
    remote: bool = False
    stand_in: bool = False


class Talk:
    """Sends what is said, one message after the other, and keeps what is to be shown of it.

    `changed` is called on the event loop whenever anything of it looks different; `ended` when a turn has.
    Times are those of the running event loop.
    """

    def __init__(
        self,
        surface: Surface,
        *,
        channel: Channel,
        folder: str,
        changed: Callable[["Talk"], None],
        ended: Callable[["Talk"], None] = lambda _: None,
        requested_model: str | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.channel: Channel = channel
        self.folder = folder
        self.conversation_id: str | None = None
        self.title = ""
        self.begun_in = folder  # where the conversation belongs; `folder` is where the person is
        self.private = False
        self.holder: LeaseHeldError | None = None
        self.offers_fork = False
        self.transcript = Transcript()
        self.waiting: tuple[Waiting, ...] = ()
        self.held = False
        self.requested_model = requested_model
        self.model: Model | None = None
        self.no_model: RuneError | None = None
        self.context: ContextUse | None = None
        self._surface = surface
        self._changed = changed
        self._ended = ended
        self._max_steps = max_steps
        self._stop = CancelToken()
        self._sending: asyncio.Task[None] | None = None
        self._onlooker = Onlooker(
            surface.views, wanted=self._follows, reread=self._reread, freed=self._freed, failed=self._unfollowed
        )
        self._on_its_way: Waiting | None = None
        self._turnstile = asyncio.Lock()
        self._flushes: Flushes[TurnEvent] = Flushes(self._take)
        self._keys = 0

    @property
    def held_elsewhere(self) -> bool:
        """Whether another Rune has this conversation open, as far as is known; `holder` says who."""
        return self.holder is not None

    def read_on(self) -> bool:
        """Offer no fork any more, until something is to be sent; False when none was offered."""
        offered, self.offers_fork = self.offers_fork, False
        if offered:
            self._changed(self)
        return offered

    @property
    def busy(self) -> bool:
        """Whether a turn of this conversation runs."""
        return self.transcript.pace is not None

    def say(self, text: str, *, pasted: bool = False) -> None:
        """Send a message; while a turn runs it waits for its end. Also sends on what was held."""
        self.waiting = (*self.waiting, Waiting(text=text, pasted=pasted))
        self.go_on()

    def keep(self, text: str, *, pasted: bool = False) -> None:
        """Have a message wait until the person goes on."""
        self.waiting, self.held = (*self.waiting, Waiting(text=text, pasted=pasted)), True

    @property
    def unsent(self) -> tuple[str, ...]:
        """Everything that was said and is not stored yet: what is on its way, and what waits."""
        on_its_way = (self._on_its_way,) if self._on_its_way is not None else ()
        return tuple(message.text for message in (*on_its_way, *self.waiting))

    def go_on(self) -> None:
        """Send what waits, also what was held back."""
        self.held = False
        if self._sending is None or self._sending.done():
            # It shows what it does: that a message waited which is sent at once would only flash up.
            self._sending = asyncio.create_task(self._send_waiting(), name=f"talk {self.channel}")
        else:
            self._changed(self)

    def take_back(self) -> str | None:
        """Return the newest message that waits, which waits no longer; None when there is none."""
        if not self.waiting:
            return None
        *rest, last = self.waiting
        self.waiting = tuple(rest)
        self.held = self.held and bool(rest)
        self._changed(self)
        return last.text

    def cancel(self) -> bool:
        """Stop the running turn; False when none runs. What was said so far is kept."""
        if not self.busy:
            return False
        self._stop.cancel()
        self.transcript = cancelling(self.transcript)
        self._changed(self)
        return True

    @asynccontextmanager
    async def still(self) -> AsyncGenerator[None]:
        """Hold the talk still for a change of conversation: what is said meanwhile waits, and goes to the new one.

        Raises UsageError while a turn runs.
        """
        self._refuse_while_busy()
        async with self._turnstile:
            yield

    async def open(self, conversation_id: str) -> None:
        """Show a stored conversation and go on with it; within `still`. Raises NotFoundError."""
        holder = await self._hold(conversation_id)
        stored = await read_stored(self._surface.views, conversation_id)
        await self._leave(conversation_id)
        self._show(stored)
        self.holder, self.offers_fork = holder, holder is not None
        if holder is not None:
            self._onlooker.follow(conversation_id)
        self._changed(self)

    def _show(self, stored: StoredTalk) -> None:
        again = stored.row.id == self.conversation_id
        self.conversation_id, self.private, self.context = stored.row.id, stored.row.private, stored.context
        self.title, self.begun_in = stored.row.title, stored.row.folder
        self.transcript = followed(self.transcript, stored.transcript) if again else stored.transcript

    def _follows(self, identity: str) -> bool:
        return self.held_elsewhere and self.conversation_id == identity

    async def _reread(self, identity: str) -> None:
        async with self._turnstile:
            stored = await read_stored(self._surface.views, identity)
            if self._follows(identity):
                self._show(stored)
        self._changed(self)

    async def _freed(self, identity: str) -> None:
        """Take over what nobody else has open any more; what waited for just that is sent."""
        if self.waiting:
            self.go_on()
            return
        async with self._turnstile:
            if self._follows(identity):
                await self.open(identity)

    def _unfollowed(self, error: RuneError) -> None:
        self.tell(f"what is said there cannot be followed: {error.message}", error.hint, tier=1)

    async def _hold(self, conversation_id: str) -> LeaseHeldError | None:
        """Take a conversation for this process, so that it is open in one place; returns who has it otherwise."""
        if self._surface.reading_only is not None:
            return None  # it is only read here, whoever writes it
        try:
            await self._surface.operator.hold(conversation_id)
        except LeaseHeldError as error:
            return error
        return None

    async def _leave(self, for_id: str | None) -> None:
        if self.conversation_id is not None and self.conversation_id != for_id:
            await self._surface.operator.leave(self.conversation_id)

    async def command(self, line: str, *, quiet: bool = False) -> CommandResult | None:
        """Run a slash command and show what it says, unless `quiet`; None when it could not be run, which is shown."""
        name = line.split(maxsplit=1)[0] if line.strip() else line
        call = CommandCall(argument="", folder=self.folder, channel=self.channel, conversation_id=self.conversation_id)
        try:
            if name == "/done":
                self._refuse_while_busy()
            result = await self._surface.commands.run(line, call)
        except RuneError as error:
            self.failed(line, error)
            return None
        if result.opens is None and not quiet:
            self._output(line, result.text, ok=result.ok)
        if name == "/rename":
            await self.measure()
        if result.model is not None:
            self.requested_model = result.model
            await self.look_for_model()
        return result

    def failed(self, line: str, error: RuneError) -> None:
        """Show that a command could not be run, and why."""
        hint = error.hint
        if isinstance(error, LeaseHeldError) and error.conversation_id:
            hint = "Close it there, or go on in a fork: f6 while it is open here."
        self._output(line, f"{error.message}\n{hint}" if hint else error.message, ok=False)

    async def begin_anew(self) -> None:
        """Leave this conversation; the next message begins another one. Within `still`."""
        await self._leave(None)
        self.conversation_id, self.private, self.context = None, False, None
        self.title, self.begun_in = "", self.folder
        self.holder, self.offers_fork = None, False
        self.transcript = Transcript()
        self._changed(self)

    def tell(self, text: str, hint: str = "", *, tier: int | None = None) -> None:
        """Show news that is nobody's speech."""
        self.transcript = told(self.transcript, Told(key=self._key(), text=text, hint=hint, tier=tier))
        self._changed(self)

    async def measure(self) -> None:
        """Find out anew how full the window is and what the title is; what cannot be known is not shown."""
        if (identity := self.conversation_id) is not None:
            try:
                row = await self._surface.views.conversation(identity)
                context = await self._surface.views.context_use(identity)
                if self.conversation_id == identity:
                    self.title, self.begun_in, self.context = row.title, row.folder, context or self.context
            except RuneError as error:
                self.tell(f"how full the window is cannot be read: {error.message}", error.hint, tier=1)

    async def look_for_model(self) -> None:
        """Find out which model will answer next; that there is none is said when one is asked."""
        try:
            row = await self._surface.operator.next_model(self.conversation_id, self.requested_model)
        except RuneError as error:
            self.model, self.no_model = Model(), error
        else:
            self.no_model = None
            self.model = Model(name=row.name, remote=row.remote, stand_in=row.provider == EMBEDDED)
        self._changed(self)

    async def close(self) -> None:
        """Stop sending; what was on its way and is not stored is unsent again. The operator ends the turn itself."""
        await self._onlooker.close()
        if self._sending is not None:
            self._sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sending

    def _output(self, line: str, text: str, *, ok: bool) -> None:
        if text:
            entry = CommandOutput(key=self._key(), command=line, text=text, ok=ok)
            self.transcript = told(self.transcript, entry)
            self._changed(self)

    def _refuse_while_busy(self) -> None:
        if self.busy:
            raise UsageError("a turn runs in this conversation", hint="Wait for its end, or stop it with Esc.")

    async def _send_waiting(self) -> None:
        while self.waiting and not self.held:
            async with self._turnstile:
                if not self.waiting or self.held:
                    break  # it was taken back meanwhile
                first, *rest = self.waiting
                self.waiting, self._on_its_way = tuple(rest), first
                reason = await self._send(first)
                self.waiting = (*self._come_back(), *self.waiting)
                self.held = bool(self.waiting) and reason not in GOES_ON
            self._changed(self)
            self._ended(self)

    def _come_back(self) -> tuple[Waiting, ...]:
        """Return what was on its way and did not become a turn: it is still the person's."""
        message, self._on_its_way = self._on_its_way, None
        return (message,) if message is not None else ()

    async def _send(self, message: Waiting) -> StopReason | None:
        """Run one turn; returns how it ended, None when there was no turn."""
        loop, key, reason = asyncio.get_running_loop(), self._key(), None
        stop = self._stop = CancelToken()
        if self.held_elsewhere and self.conversation_id is not None:
            await self._look_again(self.conversation_id)
        self.transcript = sent(self.transcript, key, message.text, loop.time())
        self._changed(self)
        request = TurnRequest(
            text=message.text,
            folder=self.folder,
            channel=self.channel,
            conversation_id=self.conversation_id,
            model=self.requested_model,
            max_steps=self._max_steps,
        )
        try:
            async with contextlib.aclosing(self._surface.operator.send_task(request, stop)) as events:
                async for event in events:
                    reason = self._heed(event) or reason
                    if isinstance(event, Notice) and event.about == "trust":
                        continue  # a row above the prompt says so
                    if isinstance(event, TextDelta | ThinkingDelta):
                        self._flushes.put(event)
                    else:
                        self._flushes.at_once(event)
                    if isinstance(event, TurnOpened) and not self.title:
                        await self.measure()
                        self._changed(self)
        except RuneError as error:
            self._refused(error, key)
        except Exception as error:
            logging.getLogger(__name__).exception("a message could not be sent")
            self._refused(RuneError(f"a fault of Rune's own: {type(error).__name__}: {error}"), key)
        else:
            self._flushes.flush()
        return reason

    def _refused(self, error: RuneError, key: str) -> None:
        self._flushes.flush()
        if isinstance(error, LeaseHeldError) and error.conversation_id == self.conversation_id:
            self.holder, self.offers_fork = error, True
            self.transcript = unsaid(self.transcript)  # the row above the prompt says why
            self._onlooker.follow(error.conversation_id)
        else:
            self.transcript = refused(self.transcript, error, key)

    async def _look_again(self, conversation_id: str) -> None:
        """Read anew what another Rune had open: it may be free by now, and more may have been said."""
        try:
            await self.open(conversation_id)
        except RuneError as error:
            self.tell(error.message, error.hint, tier=1)

    def _heed(self, event: TurnEvent) -> StopReason | None:
        """Act on what an event says about the turn itself; returns how it ended, once it has."""
        if isinstance(event, TurnOpened):
            self.conversation_id, self.holder, self.offers_fork = event.conversation_id, None, False
            self._on_its_way = None
            if event.model:
                self.model = Model(name=event.model, remote=event.remote, stand_in=event.provider == EMBEDDED)
                self.requested_model = None  # the conversation knows it from now on
        return event.stop_reason if isinstance(event, TurnClosed) else None

    def _take(self, events: list[TurnEvent]) -> None:
        now = asyncio.get_running_loop().time()
        for event in joined(events):
            self.transcript = reduce(self.transcript, event, now)
        self._changed(self)

    def _key(self) -> str:
        self._keys += 1
        return f"{self.channel}/{self._keys}"
