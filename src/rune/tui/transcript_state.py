"""What a conversation looks like, as a value: a pure reducer over the events of its turns.

Knows neither Textual nor Rich. Texts are kept as they came (copying gives them back); whoever draws them
makes them safe.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, assert_never

import msgspec

from rune.errors import RuneError
from rune.records.messages import ConversationMessageRecord
from rune.records.turns import StopReason
from rune.surface.rows import TurnEnd
from rune.tui import tool_entries as tools
from rune.tui.entries import (
    Answer,
    CardState,
    Checklist,
    CommandOutput,
    Ending,
    Entry,
    Said,
    Thought,
    Told,
    ToolCard,
)
from rune.tui.hints import in_the_app
from rune.tui.tool_entries import Asked, Calls
from rune.turn import events as shown
from rune.turn.events import TurnEvent

__all__ = (
    "Answer",
    "Asked",
    "CardState",
    "Checklist",
    "CommandOutput",
    "Ending",
    "Entry",
    "Pace",
    "Phase",
    "Said",
    "Thought",
    "Told",
    "ToolCard",
    "Transcript",
)

Phase = Literal["sending", "loading", "reading", "waiting", "thinking", "answering", "running", "cancelling"]
_RECENT: Final = 50
ToolEvent = (
    shown.ToolPrepared
    | shown.ToolStarted
    | shown.ToolOutput
    | shown.ToolFinished
    | shown.ApprovalAsked
    | shown.ChecklistChanged
)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How far the running turn is. Times in seconds of a monotonic clock; `done` and `total` in tokens (None:
    not known); `pieces` are the tokens streamed so far in this model call, `first_at` when the first of them came.
    `step` counts the turn's model calls, of at most `steps` (0: not known); `doing` names the tool that runs.
    """

    turn_id: str = ""
    phase: Phase = "sending"
    since: float
    done: int = 0
    total: int | None = None
    pieces: int = 0
    first_at: float | None = None
    last_at: float | None = None
    step: int = 0
    steps: int = 0
    doing: str = ""

    @property
    def rate(self) -> float | None:
        """Tokens a second since the first one; None while that says nothing."""
        if self.first_at is None or self.last_at is None or self.pieces <= 1 or self.last_at <= self.first_at:
            return None
        return (self.pieces - 1) / (self.last_at - self.first_at)


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is shown of a conversation. `live` are the entries of the running turn: what streams
    touches them alone, so that a delta costs the same with one message as with ten thousand. `asked` waits for the
    person; while a turn runs they have just answered it.
    """

    settled: tuple[Entry, ...] = ()
    live: tuple[Entry, ...] = ()
    pace: Pace | None = None
    asked: Asked | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, in order."""
        return self.settled + self.live


def restored(
    messages: Sequence[ConversationMessageRecord],
    ends: Mapping[str, TurnEnd],
    calls: Calls | None = None,
    asked: Asked | None = None,
) -> Transcript:
    """Return a stored conversation: what was said, what tools did, and how each turn ended that was not simply
    answered. `calls` are what is known of its calls, `asked` the question that waits in it.
    """
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
            entries += tools.stored_cards(message, calls or {}, asked)
        following = messages[position + 1].turn_id if position + 1 < len(messages) else ""
        end = ends.get(message.turn_id)
        # Of a turn that paused the card says so, as long as that is so.
        passed = end is not None and end.reason is StopReason.PAUSED
        if following != message.turn_id and end is not None and not passed:
            ending = _ending(message.turn_id, end, kept=message.role == "assistant" and bool(message.content))
            entries += [ending] if ending is not None else []
    return Transcript(settled=tuple(entries), asked=asked)


def followed(before: Transcript, stored: Transcript) -> Transcript:
    """Return what is shown of a conversation that was read once more: what was told meanwhile keeps its place."""
    known, there = {entry.key for entry in before.settled}, {entry.key for entry in stored.settled}
    gone = [entry for entry in before.settled if entry.key not in there and not _is_of_here(entry)]
    cards = {entry.key: entry for entry in stored.settled if isinstance(entry, ToolCard)}
    if gone:
        return stored
    fresh = tuple(entry for entry in stored.settled if entry.key not in known)
    kept = tuple(cards.get(entry.key, entry) for entry in before.settled)
    return msgspec.structs.replace(before, settled=(*kept, *fresh), asked=stored.asked)


def _is_of_here(entry: Entry) -> bool:
    """Say whether an entry is never stored with a conversation."""
    return isinstance(entry, Told | CommandOutput) or (isinstance(entry, ToolCard) and entry.own)


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
    return msgspec.structs.replace(back, settled=(*back.settled, told))


def unsaid(transcript: Transcript) -> Transcript:
    """Take back what was on its way, without a word: it is said elsewhere why."""
    told = (entry for entry in transcript.live if not isinstance(entry, Said))
    return Transcript(settled=(*transcript.settled, *told), asked=transcript.asked)


def answering(transcript: Transcript, now: float) -> Transcript:
    """Show that what was asked is answered; nothing of that is stored yet."""
    return msgspec.structs.replace(transcript, pace=Pace(since=now))


def closed_question(transcript: Transcript) -> Transcript:
    """Ask no longer: it is of no use any more."""
    return msgspec.structs.replace(transcript, asked=None)


def ticked(transcript: Transcript, now: float) -> Transcript:
    """Return the transcript as it looks by now; the same object where that is no different."""
    live, recent = tools.with_time(transcript.live, now), transcript.settled[-_RECENT:]
    fresh = tools.with_time(recent, now)  # where the person runs something of their own
    if live is transcript.live and fresh is recent:
        return transcript
    settled = transcript.settled if fresh is recent else (*transcript.settled[: -len(recent)], *fresh)
    return msgspec.structs.replace(transcript, live=live, settled=settled)


def own_changed(transcript: Transcript, key: str, fields: Mapping[str, object]) -> Transcript:
    """Show what became of a command that the person runs themselves."""
    return _carded(transcript, key, fields)


def told(transcript: Transcript, entry: Told | CommandOutput | ToolCard) -> Transcript:
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
        case shown.StepTaken():
            return _stepped(transcript, event)
        case shown.Notice():
            key = _key(transcript, event.turn_id or "")
            return told(transcript, Told(key=key, text=event.text, hint=in_the_app(event.hint), tier=event.tier))
        case shown.TurnClosed():
            return _closed(transcript, event)
        case _:
            return _with_tools(transcript, event, now)


def _with_tools(transcript: Transcript, event: ToolEvent, now: float) -> Transcript:
    match event:
        case shown.ToolPrepared():
            return _with_card(transcript, event, {"effect": event.effect, "detail": event.detail, "state": "prepared"})
        case shown.ToolStarted():
            doing = _paced(transcript, "running", doing=event.name)
            return _with_card(doing, event, tools.started(now))
        case shown.ToolOutput():
            return _carded(transcript, event.call_id, {"output": event.text})
        case shown.ToolFinished():
            return _with_card(_paced(transcript, "waiting"), event, tools.finished(event))
        case shown.ApprovalAsked():
            for call in event.calls:
                waits = {"effect": call.effect, "detail": call.detail, "state": "waiting"}
                transcript = _with_card(transcript, call, waits, turn_id=event.turn_id)
            return msgspec.structs.replace(transcript, asked=Asked(approval_id=event.approval_id, calls=event.calls))
        case shown.ChecklistChanged():
            key = _key(transcript, event.turn_id)
            found, settled = tools.unlisted(transcript.settled)
            if found is None or any(isinstance(entry, Checklist) for entry in transcript.live):
                settled = transcript.settled
            else:
                key = found.key
            listed = tools.listed(transcript.live, key, event)
            return msgspec.structs.replace(transcript, settled=settled, live=listed)
        case _:
            assert_never(event)


def _carded(transcript: Transcript, call_id: str, fields: Mapping[str, object]) -> Transcript:
    """Return the transcript with other fields in the card of a call; the same object where it has none."""
    if (place := tools.find(transcript.live, call_id)) is not None:
        return msgspec.structs.replace(transcript, live=tools.changed(transcript.live, place, fields))
    if (place := tools.find(transcript.settled, call_id)) is not None:
        return msgspec.structs.replace(transcript, settled=tools.changed(transcript.settled, place, fields))
    return transcript


def _with_card(
    transcript: Transcript,
    event: shown.ToolPrepared | shown.ToolStarted | shown.ToolFinished | shown.AskedCall,
    fields: Mapping[str, object],
    *,
    turn_id: str = "",
) -> Transcript:
    """Return the transcript with other fields in the card of a call; where it has none it gets one, as the newest."""
    changed = _carded(transcript, event.call_id, fields)
    if changed is not transcript:
        return changed
    key = _key(transcript, event.turn_id if not isinstance(event, shown.AskedCall) else turn_id)
    card = msgspec.structs.replace(ToolCard(key=key, call_id=event.call_id, name=event.name), **fields)
    return msgspec.structs.replace(transcript, live=(*_quiet(transcript.live), card))


def _opened(transcript: Transcript, event: shown.TurnOpened, now: float) -> Transcript:
    since = transcript.pace.since if transcript.pace is not None else now
    phase: Phase = "cancelling" if transcript.pace is not None and transcript.pace.phase == "cancelling" else "waiting"
    pace = Pace(turn_id=event.turn_id, phase=phase, since=since)
    settled, live = transcript.settled, transcript.live
    if event.resumes is not None:
        settled, again = tools.resumed(settled, f"{event.resumes}/end")
        live = (*again, *live)
    elif transcript.asked is not None:
        settled = tools.unanswered(settled)
    return Transcript(settled=settled, live=live, pace=pace)


def _stepped(transcript: Transcript, event: shown.StepTaken) -> Transcript:
    """Count a model call; the figures of a stream are those of one call."""
    pace = transcript.pace
    if pace is None:
        return transcript
    phase: Phase = "cancelling" if pace.phase == "cancelling" else "waiting"
    fresh = Pace(turn_id=pace.turn_id, phase=phase, since=pace.since, step=event.used, steps=event.budget)
    return msgspec.structs.replace(transcript, pace=fresh)


def _paced(
    transcript: Transcript, phase: Phase, *, done: int = 0, total: int | None = None, doing: str = ""
) -> Transcript:
    pace = transcript.pace
    if pace is None or pace.phase == "cancelling":
        return transcript
    pace = msgspec.structs.replace(pace, phase=phase, done=done, total=total, doing=doing)
    return msgspec.structs.replace(transcript, pace=pace)


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


def _closed(transcript: Transcript, event: shown.TurnClosed) -> Transcript:
    live = [
        msgspec.structs.replace(entry, running=False, complete=event.complete)
        if isinstance(entry, Answer) and entry.running
        else entry
        for entry in transcript.live
    ]
    end = TurnEnd(reason=event.stop_reason, error=event.error, hint=in_the_app(event.hint, event.error_type))
    kept = any(isinstance(entry, Answer) and entry.text for entry in live)
    paused = event.stop_reason is StopReason.PAUSED
    told = paused and transcript.asked is not None  # which says so
    if not told and (ending := _ending(event.turn_id, end, kept=kept)) is not None:
        live.append(ending)
    settled = (*transcript.settled, *_quiet(tuple(live)))
    return Transcript(settled=tools.ended(settled, paused=paused), asked=transcript.asked if paused else None)


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
