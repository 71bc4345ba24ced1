"""One channel's conversation, as the person has it in front of them. Knows the surface and no widget."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from rune.errors import LeaseHeldError, RuneError, UsageError
from rune.records.messages import Channel
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.surface.rows import ContextUse
from rune.surface.surface import Surface
from rune.tui.hints import GONE, in_the_app
from rune.tui.onlooking import Onlooker
from rune.tui.stored_talk import StoredTalk, read_stored
from rune.tui.transcript_state import Answer, Asked, CommandOutput, Told, Transcript, followed, told
from rune.turn.events import TurnOpened
from rune.turn.request import TurnRequest

STAND_IN: Final = ("embedded", "smollm2-135m-instruct")  # provider and name of the small model, as turns tell them

ANSWERED_ELSEWHERE: Final = "what waited for your answer was answered elsewhere"
NOT_DONE: Final = "what waited for your answer is not done: it waits no longer"


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What answers: `name` "" when nothing can. `stand_in`: the small embedded model, for want of another."""

    name: str = ""
    remote: bool = False
    stand_in: bool = False


class Talk:
    """Shows one conversation at a time, and follows it where another Rune has it open.

    `changed` is called on the event loop whenever anything of it looks different. `freed` is asked when nobody else has
    it open any more: True says that a message is sent now, which takes it over.
    """

    def __init__(
        self,
        surface: Surface,
        *,
        channel: Channel,
        folder: str,
        changed: Callable[["Talk"], None],
        freed: Callable[["Talk"], bool] = lambda _: False,
        requested_model: str | None = None,
        requested_thinking: Thinking | None = None,
        requested_permission: PermissionMode | None = None,
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
        self.turnstile = asyncio.Lock()  # held by whoever sends to the conversation, or changes which one it is
        self.requested_model = requested_model
        self.requested_thinking: Thinking | None = requested_thinking
        self.kept_thinking: Thinking = "auto"  # what the conversation has
        self.requested_permission: PermissionMode | None = requested_permission
        self.kept_permission: PermissionMode = surface.settings.permissions.mode  # what the conversation has
        self.stale_model = False
        self.model: Model | None = None
        self.no_model: RuneError | None = None
        self.context: ContextUse | None = None
        self._surface = surface
        self._changed = changed
        self._asks_freed = freed
        self._onlooker = Onlooker(
            surface.views, wanted=self._follows, reread=self._reread, freed=self._freed, failed=self._unfollowed
        )
        self._keys = 0
        self._told_remote: tuple[str, ...] = ()

    @property
    def held_elsewhere(self) -> bool:
        """Whether another Rune has this conversation open, as far as is known; `holder` says who."""
        return self.holder is not None

    def changed(self) -> None:
        """Tell that something of it looks different."""
        self._changed(self)

    def read_on(self) -> bool:
        """Offer no fork any more, until something is to be sent; False when none was offered."""
        offered, self.offers_fork = self.offers_fork, False
        if offered:
            self.changed()
        return offered

    @property
    def thinking(self) -> Thinking:
        """How much the model thinks in the next turn."""
        return self.requested_thinking or self.kept_thinking

    @property
    def permission(self) -> PermissionMode:
        """What tools may do without asking, from the next call on."""
        return self.requested_permission or self.kept_permission

    @property
    def asked(self) -> Asked | None:
        """The question that waits for the person; None also while the turn begins that goes on with its answer."""
        return None if self.busy else self.transcript.asked

    @property
    def busy(self) -> bool:
        """Whether a turn of this conversation runs."""
        return self.transcript.pace is not None

    @asynccontextmanager
    async def still(self) -> AsyncGenerator[None]:
        """Hold the talk still for a change of conversation: what is said meanwhile waits, and goes to the new one.

        Raises UsageError while a turn runs.
        """
        refuse_while_busy(self)
        async with self.turnstile:
            yield

    async def open(self, conversation_id: str) -> None:
        """Show a stored conversation and go on with it; within `still`. Raises NotFoundError."""
        holder = await self._hold(conversation_id)
        stored = await read_stored(self._surface, conversation_id)
        await self._leave(conversation_id)
        self._show(stored)
        self.holder, self.offers_fork = None, False
        if holder is not None:
            self.held_by(holder)
        self.changed()

    def held_by(self, holder: LeaseHeldError) -> None:
        """Follow the conversation shown, which another Rune has open, and offer a fork of it."""
        self.holder, self.offers_fork = holder, True
        self._onlooker.follow(holder.conversation_id)

    def begun(self, event: TurnOpened, request: TurnRequest) -> None:
        """Take over what the turn of a request tells of its conversation and its model. What was chosen since it was
        sent goes with the next message.
        """
        self.conversation_id, self.holder, self.offers_fork = event.conversation_id, None, False
        self.kept_thinking = event.thinking
        if self.requested_thinking == request.thinking:
            self.requested_thinking = None
        self.kept_permission = event.permission
        if self.requested_permission == request.permission:
            self.requested_permission = None
        if event.remote and not any(isinstance(e, Answer) and e.model == event.model for e in self.transcript.entries):
            self._tell_remote(event.model)
        if event.model:
            self.model = Model(
                name=event.model, remote=event.remote, stand_in=(event.provider, event.model) == STAND_IN
            )
            if self.requested_model == request.model:
                self.requested_model = None  # the conversation knows it from now on

    def failed(self, error_type: str) -> None:
        """Have it seen soon whether the model or its server is gone, where that is how the turn ended."""
        if error_type in GONE:
            self._surface.models.look_soon()

    def _tell_remote(self, model: str) -> None:
        """Say it once a conversation, before the first word is there; the header says it all the time."""
        if model not in self._told_remote:
            self._told_remote = (*self._told_remote, model)
            self.tell(f"{model} is remote: what you write in this conversation leaves this machine")

    def _show(self, stored: StoredTalk) -> None:
        again = stored.row.id == self.conversation_id
        self.conversation_id, self.private, self.context = stored.row.id, stored.row.private, stored.context
        self.title, self.begun_in = stored.row.title, stored.row.folder
        self.kept_thinking, self.kept_permission = stored.row.thinking, stored.permission
        self._told_remote = self._told_remote if again else ()
        self.transcript = followed(self.transcript, stored.transcript) if again else stored.transcript

    def _follows(self, identity: str) -> bool:
        return self.held_elsewhere and self.conversation_id == identity

    async def _reread(self, identity: str) -> None:
        async with self.turnstile:
            stored = await read_stored(self._surface, identity)
            if self._follows(identity):
                self._show(stored)
        self.changed()

    async def _freed(self, identity: str) -> None:
        """Take over what nobody else has open any more; what waited for just that is sent."""
        if self._asks_freed(self):
            return
        async with self.turnstile:
            if self._follows(identity):
                await self.open(identity)

    def _unfollowed(self, error: RuneError) -> None:
        self.tell(f"what is said there cannot be followed: {error.message}", error.hint, tier=1)

    async def _hold(self, conversation_id: str) -> LeaseHeldError | None:
        """Take a conversation for this process, so that it is open in one place; returns who has it otherwise."""
        if self._surface.refusal() is not None:
            return None  # it is only read here, whoever writes it
        try:
            await self._surface.operator.hold(conversation_id)
        except LeaseHeldError as error:
            return error
        return None

    async def _leave(self, for_id: str | None) -> None:
        if self.conversation_id is not None and self.conversation_id != for_id:
            await self._surface.operator.leave(self.conversation_id)

    async def begin_anew(self) -> None:
        """Leave this conversation; the next message begins another one. Within `still`."""
        await self._leave(None)
        self.conversation_id, self.private, self.context = None, False, None
        self.title, self.begun_in = "", self.folder
        self.kept_thinking, self._told_remote = "auto", ()
        self.kept_permission = self._surface.settings.permissions.mode
        self.holder, self.offers_fork = None, False
        self.transcript = Transcript()
        self.changed()

    def tell(self, text: str, hint: str = "", *, tier: int | None = None) -> None:
        """Show news that is nobody's speech."""
        self.transcript = told(self.transcript, Told(key=self.new_key(), text=text, hint=in_the_app(hint), tier=tier))
        self.changed()

    async def look_at_question(self, asked: Asked | None, conversation_id: str | None) -> None:
        """See whether a question of this conversation still waits. Where it does not, that is told, and what became of
        it is shown. Not within `still`.
        """
        if asked is None or conversation_id is None or self.busy:
            return
        views = self._surface.views
        try:
            if any(row.id == asked.approval_id for row in await views.pending_approvals(conversation_id)):
                return
            allowed = (await views.approval(asked.approval_id)).decision == "allow"
            async with self.turnstile:
                stored = await read_stored(self._surface, conversation_id)
                if self.conversation_id == conversation_id and not self.busy:
                    self._show(stored)
                    self.transcript = msgspec.structs.replace(self.transcript, asked=stored.transcript.asked)
        except RuneError as error:
            self.tell(f"whether the question still waits cannot be read: {error.message}", error.hint, tier=1)
        else:
            self.tell(ANSWERED_ELSEWHERE if allowed else NOT_DONE)

    async def measure(self) -> None:
        """Find out anew how full the window is and what the title is; what cannot be known is not shown."""
        if (identity := self.conversation_id) is not None:
            try:
                row = await self._surface.views.conversation(identity)
                context = await self._surface.views.context_use(identity)
                if self.conversation_id == identity:
                    self.title, self.begun_in, self.context = row.title, row.folder, context or self.context
                    self.kept_thinking = row.thinking
                if self.stale_model:
                    await self.look_for_model()
            except RuneError as error:
                self.tell(f"how full the window is cannot be read: {error.message}", error.hint, tier=1)

    async def look_for_model(self) -> None:
        """Find out which model will answer next; that there is none is said when one is asked."""
        self.stale_model = False
        try:
            row = await self._surface.operator.next_model(self.conversation_id, self.requested_model)
        except RuneError as error:
            self.model, self.no_model = Model(), error
        else:
            self.no_model = None
            self.model = Model(name=row.name, remote=row.remote, stand_in=(row.provider, row.name) == STAND_IN)
        self.changed()

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._onlooker.close()

    def output(self, line: str, text: str, *, ok: bool) -> None:
        """Show what a command said, if it said anything."""
        if text:
            entry = CommandOutput(key=self.new_key(), command=line, text=text, ok=ok)
            self.transcript = told(self.transcript, entry)
            self.changed()

    def new_key(self) -> str:
        """Return the name of one more entry of the transcript."""
        self._keys += 1
        return f"{self.channel}/{self._keys}"


def refuse_while_busy(talk: Talk) -> None:
    """Raise UsageError while a turn of this conversation runs."""
    if talk.busy:
        raise UsageError("a turn runs in this conversation", hint="Wait for its end, or stop it with Esc.")
