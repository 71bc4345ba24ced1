"""Both channels of one app, and what is unsent in them. Knows the surface and no widget."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rune.errors import RuneError, UsageError
from rune.records.approvals import Decision
from rune.records.messages import Channel
from rune.surface.commands.completion import Candidates
from rune.surface.drafts import DraftFile, LeftDraft
from rune.surface.prompt_history import Sent
from rune.surface.reading_mode import notice
from rune.surface.results import CommandResult
from rune.surface.surface import Surface
from rune.tui.app_start import CHANNELS, AppStart
from rune.tui.arrivals import ArrivalWatch
from rune.tui.errands import ModelErrands
from rune.tui.folder_trust import FolderTrust
from rune.tui.hints import as_typed
from rune.tui.listing import Listing
from rune.tui.outbox import Outbox, Reply
from rune.tui.own_runs import OwnRuns
from rune.tui.talk import Talk, refuse_while_busy
from rune.tui.talk_commands import call_in, cycle_permission, run_command, show_failure
from rune.tui.transcript_state import ticked

_QUESTIONS = 3
WAITS = "waits for your answer"


class Desk:
    """What the person works at: a talk for each channel, one of them in front, and what was said there and is not sent.
    `listing` has what to choose from.

    `changed` is that of `Talk`, `ended` that of `Outbox`, called for either of them.
    """

    def __init__(
        self, surface: Surface, start: AppStart, *, changed: Callable[[Talk], None], ended: Callable[[Talk], None]
    ) -> None:
        self.surface = surface
        self.listing = Listing(surface, start.folder)
        self.folder = start.folder
        self.channel: Channel = start.channel
        self.offered: tuple[str, ...] = ()
        self._start = start
        self._draft: DraftFile | None = None
        self._saving = asyncio.Lock()
        self._unkept = False
        self._unremembered = False
        self._forking = False
        self.talks: dict[Channel, Talk] = {
            channel: Talk(
                surface,
                channel=channel,
                folder=start.folder,
                changed=changed,
                freed=self._sends_on,
                requested_model=start.model,
                requested_thinking=start.thinking,
                requested_permission=start.permission,
            )
            for channel in CHANNELS
        }
        self.outboxes: dict[Channel, Outbox] = {
            channel: Outbox(talk, surface.operator, ended=ended, max_steps=start.max_steps)
            for channel, talk in self.talks.items()
        }
        self.trust = FolderTrust(surface, start.folder, lambda: self.talk)
        self.errands = ModelErrands(surface.models, changed=changed)
        self.own = OwnRuns(surface, start.folder, changed=changed)
        self._arrivals = ArrivalWatch(surface.models, tuple(self.talks.values()), lambda: self.talk)

    @property
    def notice(self) -> str:
        """Why nothing can be written, with what to do about it; "" where all is well."""
        why = self.surface.refusal()
        return "" if why is None else as_typed(notice(why))

    @property
    def talk(self) -> Talk:
        """The one in front."""
        return self.talks[self.channel]

    @property
    def outbox(self) -> Outbox:
        """What waits for the conversation in front."""
        return self.outboxes[self.channel]

    @property
    def other(self) -> Talk:
        """The one behind."""
        return next(talk for channel, talk in self.talks.items() if channel != self.channel)

    async def begin(self) -> None:
        """Open what the command line asked for. Raises NotFoundError for an id that is none; what else goes
        wrong is told in the transcript: a person can work without it.
        """
        await self._open_asked()
        for row in self.surface.views.health():
            for fact in row.recovered:
                self.talk.tell(f"recovered ({row.subsystem}): {fact.what}", "/health shows it again.")
        await self._tell_questions()
        try:
            self._draft = await asyncio.to_thread(self.surface.drafts.open, self.folder)
            await self._take_over(await asyncio.to_thread(self.surface.drafts.left_behind, self.folder))
        except RuneError as error:
            if not self.notice:  # which says as much
                self.talk.tell(f"what you type is not kept over a crash: {error.message}", error.hint, tier=1)

    async def _tell_questions(self) -> None:
        """Say which conversations of this folder, other than those that are open, wait for an answer."""
        here = {talk.conversation_id for talk in self.talks.values()}
        waiting = [row for row in await self.surface.views.pending_approvals() if row.folder == self.folder]
        for row in [row for row in waiting if row.conversation_id not in here][:_QUESTIONS]:
            effect = row.calls[0].effect if row.calls else ""
            self.talk.tell(f"“{row.title}” waits for your answer: {effect}", f"/resume {row.conversation_id} opens it.")

    async def _open_asked(self) -> None:
        start, views = self._start, self.surface.views
        if start.resume is not None:
            await self._open(await views.resolve(start.resume))
        elif start.carry_on:
            for talk in self.talks.values():
                identity, passed = await views.latest_free(self.folder, talk.channel)
                if identity is None and passed:  # all are open elsewhere: the newest can be read, or forked
                    identity, passed = (await views.rows(self.folder, talk.channel, limit=1))[0].id, ()
                if identity is not None:
                    async with talk.still():
                        await talk.open(identity)
                for holder in passed:
                    talk.tell(f"a newer conversation is open in process {holder.pid}; it is left alone")
                if identity is None and talk is self.talk:
                    talk.tell("there is nothing to continue in this folder; this starts a conversation")

    def say(self, text: str, *, pasted: bool = False, channel: Channel | None = None) -> None:
        """Send what was typed, in the channel in front or in another. In the chat, `>` at the beginning speaks to the
        task (terminal.md, Screen).
        """
        channel = channel or self.channel
        if channel == "chat" and text.startswith(">") and text[1:].strip():
            self.outboxes["task"].say(text[1:].strip(), pasted=pasted)
            self.talks[channel].tell(f"passed on to the task: {text[1:].strip()}")
        else:
            self.outboxes[channel].say(text, pasted=pasted)

    def answer(self, decision: Decision, *, reason: str = "", always: bool = False) -> None:
        """Answer the question that waits in the channel in front, and go on with its turn."""
        if (asked := self.talk.asked) is not None:
            reply = Reply(approval_id=asked.approval_id, decision=decision, reason=reason, always=always)
            self.outbox.answer(reply)

    def tick(self, now: float) -> None:
        """Have what runs be as old as it is by now, in seconds of the event loop's clock."""
        for talk in self.talks.values():
            if (aged := ticked(talk.transcript, now)) is not talk.transcript:
                talk.transcript = aged
                talk.changed()

    async def cycle_permission(self) -> None:
        """Go to the next permission mode in the channel in front."""
        await cycle_permission(self.surface.operator, self.talk)

    def refuses(self, text: str, *, command: bool) -> bool:
        """Say whether this cannot be sent, as nothing can be written; commands can still be given."""
        return bool(self.notice) and not (command and (is_shell(text) or self.surface.commands.is_command(text)))

    async def command(self, line: str, *, quiet: bool = False) -> CommandResult | None:
        """Run a slash command in the channel in front, and go where it leads: a conversation opens in its channel.

        `quiet`: it was a key, and what it says stands elsewhere than in the transcript.
        """
        talk = self.talk
        asked, identity = talk.asked, talk.conversation_id
        result = await self._command(talk, line, quiet=quiet)
        await talk.look_at_question(asked, identity)  # which a command may have ended
        return result

    async def _command(self, talk: Talk, line: str, *, quiet: bool) -> CommandResult | None:
        name = line.split(maxsplit=1)[0] if line.strip() else ""
        if name not in ("/new", "/resume", "/fork", "/hide"):
            result = await run_command(self.surface.commands, talk, line, quiet=quiet)
            return result if result is None or result.runs is None else self._runs(talk, line, result)
        was_held = talk.held_elsewhere
        try:
            async with talk.still():
                if line.strip() == "/new" and (talk.conversation_id is None or talk.held_elsewhere or self.notice):
                    # There is no task of this process to end.
                    await talk.begin_anew()
                    return CommandResult(text="", data={})
                result = await run_command(self.surface.commands, talk, line, quiet=quiet)
                if result is not None and result.opens is not None:
                    await self._open(result.opens, within=talk)
                    if name in ("/fork", "/hide"):
                        self.talk.tell(result.text)
        except RuneError as error:
            show_failure(talk, line, error)
            return None
        if name == "/fork" and result is not None and was_held and self.outboxes[talk.channel].waiting:
            self.outboxes[talk.channel].go_on()  # it waited because the original could not take it
        return result

    def _runs(self, talk: Talk, line: str, result: CommandResult) -> CommandResult | None:
        """Begin what a command leaves to the surface; None when it cannot be done now, which is shown."""
        try:
            if result.runs is not None:
                if result.runs.kind == "probe":
                    self._refuse_to_measure(talk)
                self.errands.start(talk, result.runs)
        except RuneError as error:
            show_failure(talk, line, error)
            return None
        return result

    def _refuse_to_measure(self, talk: Talk) -> None:
        """Raise UsageError while a turn runs in either channel: a server has one slot, and both would be measured.
        Raises StorageError where what is measured could not be kept, before it takes its minutes.
        """
        refuse_while_busy(talk)
        if (busy := next((each for each in self.talks.values() if each.busy), None)) is not None:
            raise UsageError(
                f"a turn runs in the {busy.channel}, and would be measured with it", hint="Measure once it has ended."
            )
        if (why := self.surface.refusal()) is not None:
            raise why

    def _sends_on(self, talk: Talk) -> bool:
        """Send what waits for just this one, which is free by now; False where nothing does."""
        outbox = self.outboxes[talk.channel]
        waits = bool(outbox.waiting)
        if waits:
            outbox.go_on()
        return waits

    async def fork_held(self) -> None:
        """Go on in a fork of what another Rune has open: in one, however often this is asked for meanwhile."""
        if self._forking or not self.talk.held_elsewhere:
            return
        self._forking = True
        try:
            await self.command("/fork")
        finally:
            self._forking = False

    async def _open(self, identity: str, *, within: Talk | None = None) -> None:
        """Open a conversation in its channel; `within`: the talk that is held still already."""
        talk = self.talks[(await self.surface.views.conversation(identity)).channel]
        async with contextlib.nullcontext() if talk is within else talk.still():
            await talk.open(identity)
        self.channel = talk.channel
        await talk.look_for_model()

    async def candidates(self, line: str) -> Candidates:
        """Return how a command could go on."""
        return await self.surface.commands.candidates(line, call_in(self.talk))

    async def history(self) -> tuple[Sent, ...]:
        """Return what was sent in this folder before, oldest first; what cannot be read is told."""
        try:
            remembered = await asyncio.to_thread(self.surface.history.load, self.folder)
        except RuneError as error:
            self.talk.tell(f"earlier messages cannot be offered: {error.message}", error.hint, tier=1)
            return ()
        if remembered.damaged:
            self.talk.tell(f"{remembered.damaged} lines of the history of messages cannot be read; they are kept")
        return remembered.entries

    async def remember(self, text: str, *, command: bool) -> None:
        """Add what was sent to the history; that it was not possible is told once. Of private conversations nothing is
        kept, and where nothing can be.
        """
        if self.talk.private or self.notice:
            return
        try:
            await asyncio.to_thread(partial(self.surface.history.add, self.folder, text, command=command))
        except RuneError as error:
            if not self._unremembered:
                self._unremembered = True
                self.talk.tell(f"what you send is not kept in the history: {error.message}", error.hint, tier=1)

    async def save_draft(self, prompts: Mapping[Channel, str]) -> bool:
        """Keep what is unsent, so that a crash does not take it; False when that was not possible, which is told
        once and tried again with the next change. Of private conversations nothing is kept.
        """
        async with self._saving:
            if self._draft is None:
                return False
            kept = [talk for talk in self.talks.values() if not talk.private]
            texts: dict[Channel, str] = {talk.channel: prompts.get(talk.channel, "") for talk in kept}
            unsent: dict[Channel, tuple[str, ...]] = {talk.channel: self.outboxes[talk.channel].unsent for talk in kept}
            unsent["task"] = (*self.offered, *unsent.get("task", ()))
            try:
                await asyncio.to_thread(self._draft.save, texts, unsent)
            except RuneError as error:
                if not self._unkept and not self.notice:
                    self._unkept = True
                    self.talk.tell(f"what you type is not kept over a crash: {error.message}", error.hint, tier=1)
                return False
            self._unkept = False
            return True

    async def _take_over(self, left: Sequence[LeftDraft]) -> None:
        """Offer what ended Runes left unsent in this folder, the oldest first. Kept as ours before theirs goes: a
        kill in between loses nothing.
        """
        taken = [draft for draft in left if await asyncio.to_thread(draft.take)]
        texts = [text for draft in taken for channel in CHANNELS for text in _texts(draft, channel)]
        # A command that was not sent was meant for then.
        self.offered = tuple(text for text in texts if text.strip() and not self.surface.commands.is_command(text))
        if await self.save_draft({}):
            for draft in taken:
                await asyncio.to_thread(draft.discard)

    def take_offered(self) -> str:
        """Return the first of what is offered; it is offered no longer."""
        first, *rest = self.offered
        self.offered = tuple(rest)
        return first

    async def look_for_model(self) -> None:
        """Find out which model will answer in each channel, so that it can be shown before it is asked; from then on
        also models that come and go are seen.
        """
        for talk in self.talks.values():
            await talk.look_for_model()
        self._arrivals.begin()

    async def close(self, prompts: Mapping[Channel, str]) -> tuple[str, ...]:
        """Stop sending; what is unsent is offered again next time. Returns what of it could not be kept."""
        await self._arrivals.close()
        await self.errands.close()
        await self.own.close()
        for talk in self.talks.values():
            await talk.close()
            await self.outboxes[talk.channel].close()
        saved = await self.save_draft(prompts)
        async with self._saving:
            draft, self._draft = self._draft, None
            try:
                if draft is not None:
                    await asyncio.to_thread(draft.close)
            except RuneError as error:
                logging.getLogger(__name__).warning("%s", error.message)
        if saved:
            return ()
        unsent = [text for each, box in self.outboxes.items() for text in (*box.unsent, prompts.get(each, ""))]
        return tuple(text for text in (*self.offered, *unsent) if text.strip())

    def goodbye(self) -> tuple[str, ...]:
        """Return how each conversation is resumed, a line each; where there are two, with what each was, and which of
        them waits for an answer.
        """
        talks = [talk for talk in self.talks.values() if talk.conversation_id and talk.transcript.entries]

        def noted(talk: Talk) -> str:
            which = [f"the {talk.channel}"] if len(talks) > 1 else []
            waits = [WAITS] if talk.asked is not None else []
            return f"   # {', '.join([*which, *waits])}" if which or waits else ""

        return tuple(f"rune -r {talk.conversation_id}{noted(talk)}" for talk in talks)


def is_shell(text: str) -> bool:
    """Say whether what was typed as a command is one for a shell."""
    return text.startswith("!")


def _texts(draft: LeftDraft, channel: Channel) -> tuple[str, ...]:
    return (*draft.waiting.get(channel, ()), draft.prompts.get(channel, ""))
