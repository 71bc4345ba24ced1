"""What a conversation looks like, as a value: a pure reducer over the events of its turns.

Knows neither Textual nor Rich. Texts are kept as they came (copying gives them back); whoever draws them
makes them safe.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

import msgspec

from rune.errors import RuneError
from rune.records.messages import ConversationMessageRecord, Provenance
from rune.records.turns import StopReason
from rune.surface.rows import TurnEnd
from rune.tui.hints import in_the_app
from rune.turn import events as shown
from rune.turn.events import TurnEvent

Phase = Literal["sending", "loading", "reading", "waiting", "thinking", "answering", "cancelling"]
CardState = Literal["prepared", "waiting", "running", "done", "failed"]
ToolEvent = shown.ToolPrepared | shown.ToolStarted | shown.ToolOutput | shown.ToolFinished | shown.ApprovalAsked


class Said(msgspec.Struct, frozen=True, kw_only=True, tag="said"):
    """What the person said."""

    key: str
    text: str
    provenance: Provenance = "owner"


class Thought(msgspec.Struct, frozen=True, kw_only=True, tag="thought"):
    """The model's thinking: folded to a line unless the person opens it. `running`: more may come."""

    key: str
    text: str
    running: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What the model said, as Markdown. `running`: more may come; `complete` False: it broke off."""

    key: str
    text: str
    model: str = ""
    running: bool = False
    complete: bool = True


class ToolCard(msgspec.Struct, frozen=True, kw_only=True, tag="tool"):
    """One tool call: what it would do, how far it is, what it printed."""

    key: str
    call_id: str
    name: str
    effect: str = ""
    state: CardState = "prepared"
    milliseconds: int | None = None
    output: str = ""


class Told(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """News that is nobody's speech. `tier` as in `Notice`; None: nothing failed."""

    key: str
    text: str
    hint: str = ""
    tier: int | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True, tag="ending"):
    """That a turn ended otherwise than answered, and why. `kept`: some of an answer had come, and is there.
    `may_have_run`: what calls were about to do of which nobody knows whether they ran.
    """

    key: str
    reason: StopReason
    text: str = ""
    hint: str = ""
    kept: bool = True
    may_have_run: tuple[str, ...] = ()


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True, tag="command"):
    """What a slash command answered: plain text, laid out by the command."""

    key: str
    command: str
    text: str
    ok: bool = True


Entry = Said | Thought | Answer | ToolCard | Told | Ending | CommandOutput


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How far the running turn is. Times in seconds of a monotonic clock; `done` and `total` in tokens (None:
    not known); `pieces` are the tokens streamed so far, `first_at` when the first of them came.
    """

    turn_id: str = ""
    phase: Phase = "sending"
    since: float
    done: int = 0
    total: int | None = None
    pieces: int = 0
    first_at: float | None = None
    last_at: float | None = None

    @property
    def rate(self) -> float | None:
        """Tokens a second since the first one; None while that says nothing."""
        if self.first_at is None or self.last_at is None or self.pieces <= 1 or self.last_at <= self.first_at:
            return None
        return (self.pieces - 1) / (self.last_at - self.first_at)


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is shown of a conversation. `live` are the entries of the running turn: what streams
    touches them alone, so that a delta costs the same with one message as with ten thousand.
    """

    settled: tuple[Entry, ...] = ()
    live: tuple[Entry, ...] = ()
    pace: Pace | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, in order."""
        return self.settled + self.live


def restored(messages: Sequence[ConversationMessageRecord], ends: Mapping[str, TurnEnd]) -> Transcript:
    """Return a stored conversation: what was said, and how each turn ended that was not simply answered."""
    entries: list[Entry] = []
    for position, message in enumerate(messages):
        if message.role == "user":
            entries.append(Said(key=message.id, text=message.content, provenance=message.provenance))
        elif message.role == "assistant":
            if message.thinking:
                entries.append(Thought(key=f"{message.id}/thinking", text=message.thinking))
            if message.content:
                answer = Answer(key=message.id, text=message.content, model=message.model, complete=message.complete)
                entries.append(answer)
        following = messages[position + 1].turn_id if position + 1 < len(messages) else ""
        end = ends.get(message.turn_id)
        if following != message.turn_id and end is not None:
            ending = _ending(message.turn_id, end, kept=message.role == "assistant" and bool(message.content))
            entries += [ending] if ending is not None else []
    return Transcript(settled=tuple(entries))


def followed(before: Transcript, stored: Transcript) -> Transcript:
    """Return what is shown of a conversation that was read once more: what was told meanwhile keeps its place."""
    known, there = {entry.key for entry in before.settled}, {entry.key for entry in stored.settled}
    gone = [entry for entry in before.settled if entry.key not in there and not isinstance(entry, Told | CommandOutput)]
    if gone:
        return stored
    fresh = tuple(entry for entry in stored.settled if entry.key not in known)
    return msgspec.structs.replace(before, settled=(*before.settled, *fresh))


def newest_answer(transcript: Transcript) -> str | None:
    """Return the newest answer as it was written, None when there is none."""
    return next((entry.text for entry in reversed(transcript.entries) if isinstance(entry, Answer)), None)


def sent(transcript: Transcript, key: str, text: str, now: float) -> Transcript:
    """Show a message that is on its way; nothing of it is stored yet."""
    live = (*transcript.live, Said(key=key, text=text))
    return msgspec.structs.replace(transcript, live=live, pace=Pace(since=now))


def refused(transcript: Transcript, error: RuneError, key: str) -> Transcript:
    """Take back what was on its way: it never became a turn. The text itself is the caller's to keep."""
    told = Told(key=key, text=error.message, hint=in_the_app(error.hint), tier=1)
    back = unsaid(transcript)
    return Transcript(settled=(*back.settled, told))


def unsaid(transcript: Transcript) -> Transcript:
    """Take back what was on its way, without a word: it is said elsewhere why."""
    return Transcript(
        settled=(*transcript.settled, *(entry for entry in transcript.live if not isinstance(entry, Said)))
    )


def told(transcript: Transcript, entry: Told | CommandOutput) -> Transcript:
    """Add what is nobody's speech: while a turn runs, below what it has shown so far."""
    if transcript.pace is not None:
        return msgspec.structs.replace(transcript, live=(*transcript.live, entry))
    return msgspec.structs.replace(transcript, settled=(*transcript.settled, entry))


def cancelling(transcript: Transcript) -> Transcript:
    """Show that the person asked the turn to stop."""
    if transcript.pace is None:
        return transcript
    return msgspec.structs.replace(transcript, pace=msgspec.structs.replace(transcript.pace, phase="cancelling"))


def reduce(transcript: Transcript, event: TurnEvent, now: float) -> Transcript:  # noqa: PLR0911  # one a variant
    """Return the transcript after one event; `now` in seconds of a monotonic clock."""
    match event:
        case shown.TurnOpened():
            return _opened(transcript, event, now)
        case shown.Progress():
            phase: Phase = "loading" if event.phase == "loading" else "reading"
            return _paced(transcript, phase, done=event.done, total=event.total)
        case shown.TextDelta():
            return _streamed(transcript, event, "answering", now)
        case shown.ThinkingDelta():
            return _streamed(transcript, event, "thinking", now)
        case shown.Notice():
            key = _key(transcript, event.turn_id or "")
            return told(transcript, Told(key=key, text=event.text, hint=in_the_app(event.hint), tier=event.tier))
        case shown.TurnClosed():
            return _closed(transcript, event)
        case _:
            return _with_tools(transcript, event)


def _with_tools(transcript: Transcript, event: ToolEvent) -> Transcript:
    match event:
        case shown.ToolPrepared():
            card = ToolCard(
                key=_key(transcript, event.turn_id), call_id=event.call_id, name=event.name, effect=event.effect
            )
            return msgspec.structs.replace(transcript, live=(*_quiet(transcript.live), card))
        case shown.ToolStarted():
            return _carded(transcript, event.call_id, state="running")
        case shown.ToolOutput():
            return _carded(transcript, event.call_id, more=event.text)
        case shown.ToolFinished():
            state: CardState = "done" if event.outcome == "ok" else "failed"
            return _carded(transcript, event.call_id, state=state, milliseconds=event.milliseconds)
        case shown.ApprovalAsked():
            key = _key(transcript, event.turn_id)
            return told(transcript, Told(key=key, text=f"waiting for you: {event.summary}"))
        case _:
            assert_never(event)


def _opened(transcript: Transcript, event: shown.TurnOpened, now: float) -> Transcript:
    since = transcript.pace.since if transcript.pace is not None else now
    phase: Phase = "cancelling" if transcript.pace is not None and transcript.pace.phase == "cancelling" else "waiting"
    return msgspec.structs.replace(transcript, pace=Pace(turn_id=event.turn_id, phase=phase, since=since))


def _paced(transcript: Transcript, phase: Phase, *, done: int, total: int | None) -> Transcript:
    pace = transcript.pace
    if pace is None or pace.phase == "cancelling":
        return transcript
    return msgspec.structs.replace(transcript, pace=msgspec.structs.replace(pace, phase=phase, done=done, total=total))


def _streamed(
    transcript: Transcript, event: shown.TextDelta | shown.ThinkingDelta, phase: Phase, now: float
) -> Transcript:
    wanted = Answer if isinstance(event, shown.TextDelta) else Thought
    live = list(transcript.live)
    for position in range(len(live) - 1, -1, -1):
        entry = live[position]
        if isinstance(entry, wanted) and entry.running:
            live[position] = msgspec.structs.replace(entry, text=entry.text + event.text)
            break
    else:
        live = [*_quiet(transcript.live), wanted(key=_key(transcript, event.turn_id), text=event.text, running=True)]
    pace = transcript.pace
    if pace is not None:
        pace = msgspec.structs.replace(
            pace,
            phase=pace.phase if pace.phase == "cancelling" else phase,
            pieces=pace.pieces + event.pieces,
            first_at=now if pace.first_at is None else pace.first_at,
            last_at=now,
        )
    return msgspec.structs.replace(transcript, live=tuple(live), pace=pace)


def _carded(
    transcript: Transcript,
    call_id: str,
    *,
    state: CardState | None = None,
    milliseconds: int | None = None,
    more: str = "",
) -> Transcript:
    def changed(entry: Entry) -> Entry:
        if not isinstance(entry, ToolCard) or entry.call_id != call_id:
            return entry
        took = entry.milliseconds if milliseconds is None else milliseconds
        return msgspec.structs.replace(entry, state=state or entry.state, milliseconds=took, output=entry.output + more)

    return msgspec.structs.replace(transcript, live=tuple(changed(entry) for entry in transcript.live))


def _closed(transcript: Transcript, event: shown.TurnClosed) -> Transcript:
    live = [
        msgspec.structs.replace(entry, running=False, complete=event.complete)
        if isinstance(entry, Answer) and entry.running
        else entry
        for entry in transcript.live
    ]
    end = TurnEnd(reason=event.stop_reason, error=event.error, hint=in_the_app(event.hint, event.error_type))
    kept = any(isinstance(entry, Answer) and entry.text for entry in live)
    if (ending := _ending(event.turn_id, end, kept=kept)) is not None:
        live.append(ending)
    return Transcript(settled=(*transcript.settled, *_quiet(tuple(live))))


def _ending(turn_id: str, end: TurnEnd, *, kept: bool) -> Ending | None:
    if end.reason is None or end.reason is StopReason.ANSWERED:
        return None
    return Ending(
        key=f"{turn_id}/end",
        reason=end.reason,
        text=end.error,
        hint=in_the_app(end.hint),
        kept=kept,
        may_have_run=end.may_have_run,
    )


def _quiet(live: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Nothing more comes to what was being said so far."""
    return tuple(
        msgspec.structs.replace(entry, running=False)
        if isinstance(entry, Answer | Thought) and entry.running
        else entry
        for entry in live
    )


def _key(transcript: Transcript, turn_id: str) -> str:
    """Return a key that no other entry has: a turn's entries only ever become more."""
    return f"{turn_id}/{len(transcript.settled)}/{len(transcript.live)}"
