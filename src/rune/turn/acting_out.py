"""Carries out one call and makes its receipt: journaled before it acts, watched meanwhile, stored with what came."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from rune.errors import RuneError
from rune.host.clock import Clock
from rune.host.paths import real_path
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import Outcome, PreparedCall, ToolCall, ToolResult
from rune.text.safe_text import SafeText
from rune.text.storable import storable
from rune.tools.executor import Done, Plan, Tool, Watch
from rune.tools.policy import Verdict
from rune.tools.workplace import Workplace
from rune.turn import events as shown
from rune.turn.excerpts import excerpt, fits
from rune.turn.flight import Flight, uninterrupted
from rune.turn.guarded import openly_named
from rune.turn.loop_watch import Circling, Nudge
from rune.turn.rounds import RoundRecorder
from rune.turn.session import Session
from rune.turn.workplaces import note_seen

CONFINEMENT: Final = "none"
"""Under what a command is held: there is no sandbox yet, and each receipt says so."""

UNKNOWN: Final = "It may have run: a defect of Rune stopped it ({kind}). Look what is there before you do it again."
_SUMMARY: Final = 300


class Scene(msgspec.Struct, frozen=True):
    """What all calls of a round share. `room` is how many tokens of one result the model is given."""

    flight: Flight
    session: Session
    place: Workplace
    room: int


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A call that can be carried out, and what was decided about it."""

    tool: Tool
    plan: Plan
    prepared: PreparedCall
    verdict: Verdict


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to, before it is stored. `failed`: the call itself failed, not the command that it ran."""

    receipt: ToolResult
    text: str
    failed: bool
    allowed_by: str | None = None
    checklist: tuple[shown.ChecklistItem, ...] | None = None


class Acting:
    """Runs calls and stores what came of them."""

    def __init__(self, rounds: RoundRecorder, clock: Clock, estimate: Callable[[str], int]) -> None:
        self._estimate = estimate
        self._rounds = rounds
        self._clock = clock

    async def change(self, scene: Scene, ready: Ready) -> ConversationMessageRecord:
        """Carry out what may change something: its intent is on disk before it begins. Raises StorageError."""
        with suppress(asyncio.CancelledError):
            # It is stored all the same, and what is stored as begun is brought to an end: the tool is told to stop.
            await uninterrupted(self._rounds.intent(scene.session, ready.prepared, ready.verdict.by))
        try:
            result = await self.run(scene, ready)
        except Exception as error:
            # A defect of the tool ends the turn. What it had begun is not known, and an intent must not stay without
            # an end: neither the person nor the model would ever hear of it.
            said = UNKNOWN.format(kind=type(error).__name__)
            await self.store(
                scene, ready.prepared.call, self._undone(scene.flight, ready.prepared, "unknown", said, said, None)
            )
            raise
        return await self.store(scene, ready.prepared.call, result)

    async def run(self, scene: Scene, ready: Ready) -> Result:
        """Carry out a call. When the turn is cancelled it is told to end, and what came of it is returned."""
        flight, place, prepared = scene.flight, scene.place, ready.prepared
        turn_id, call_id, name = flight.turn_id, prepared.id, prepared.call.name
        flight.emit(shown.ToolStarted(turn_id=turn_id, call_id=call_id, name=name))

        def show(text: SafeText) -> None:
            flight.emit(shown.ToolOutput(turn_id=turn_id, call_id=call_id, text=text))

        watch = Watch(stop=asyncio.Event(), show=show)
        if flight.cancel.cancelled:
            watch.stop.set()
        started = self._clock.monotonic()
        work = asyncio.ensure_future(self._executed(scene, ready, watch))
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                watch.stop.set()  # `Flight.cancel` knows it too; the round ends once this is stored
        done, text, output = work.result()
        milliseconds = round((self._clock.monotonic() - started) * 1000)
        failed = done.outcome == "failed" and done.exit_code is None
        receipt = _receipt(prepared, done, place, output, milliseconds)
        items = None
        if done.checklist is not None:
            items = tuple(
                shown.ChecklistItem(text=place.masker.mask(storable(text)), state=state)
                for text, state in done.checklist
            )
        return Result(receipt=receipt, text=text, failed=failed, allowed_by=ready.verdict.by, checklist=items)

    async def _executed(self, scene: Scene, ready: Ready, watch: Watch) -> tuple[Done, str, str | None]:
        """Do it, and return what came of it with what the model is given: what was done is not lost while that is kept,
        so all of it is one piece that a cancellation does not tear.
        """
        try:
            done = await ready.tool.execute(ready.plan, scene.place, watch)
        except RuneError as error:
            said = f"{error.message} {error.hint}".strip()
            done = Done(text=said, summary=error.message, outcome="failed")
        text, output = await self._shortened(scene, done)
        return done, text, output

    async def _shortened(self, scene: Scene, done: Done) -> tuple[str, str | None]:
        """Return what the model is given, and the id of all of it where that is more."""
        place, room = scene.place, scene.room
        text = place.masker.mask(storable(done.text))
        if fits(text, room, self._estimate):
            return text, done.output
        output = done.output or await place.keep(text.encode(), "tool output")
        return excerpt(text, room, self._estimate, output), output

    async def store(self, scene: Scene, call: ToolCall, result: Result) -> ConversationMessageRecord:
        """Store what a call came to, show it, and note what it means for the turn. Raises StorageError."""
        flight, receipt = scene.flight, result.receipt
        note_seen(scene.place, receipt.files)
        changed = any(touch.changed for touch in receipt.files)
        flight.acted = True
        text = result.text
        match flight.watch.note(call, receipt.outcome, text, failed=result.failed, changed=changed):
            case Nudge(text=word):
                text = f"{text}\n{word}"
            case Circling(text=word):
                flight.circling = word
            case None:
                pass
        writing = self._rounds.result(flight, scene.session, call, receipt, text, result.allowed_by)
        try:
            return await uninterrupted(writing)
        finally:
            flight.emit(
                shown.ToolFinished(
                    turn_id=flight.turn_id,
                    call_id=receipt.id,
                    name=call.name,
                    outcome=receipt.outcome,
                    milliseconds=receipt.milliseconds,
                    summary=receipt.summary,
                    text=text,
                    output=receipt.output,
                    exit_code=receipt.exit_code,
                    allowed_by=result.allowed_by,
                )
            )
            if result.checklist is not None:
                flight.emit(shown.ChecklistChanged(turn_id=flight.turn_id, items=result.checklist))

    def plain(self, flight: Flight, call: ToolCall, outcome: Outcome, text: str, summary: str) -> Result:
        """Return the result of a call that was never prepared."""
        receipt = ToolResult(
            id=self._rounds.new_call_id(),
            turn_id=flight.turn_id,
            tool=call.name,
            digest="",
            outcome=outcome,
            summary=_line(summary),
            output=None,
            milliseconds=None,
            confinement=CONFINEMENT,
            exit_code=None,
            files=(),
        )
        return Result(receipt=receipt, text=text, failed=outcome != "ok")

    def denied(self, flight: Flight, prepared: PreparedCall, said: str, by: str | None) -> Result:
        """Return the result of a call that was refused, by rule or (`by`) by the person."""
        return self._undone(flight, prepared, "denied", said, "not allowed", by)

    def failed(self, flight: Flight, prepared: PreparedCall, said: str, summary: str) -> Result:
        """Return the result of a call that could not be carried out as it was prepared."""
        return self._undone(flight, prepared, "failed", said, summary, None)

    def put_aside(self, turn_id: str, call: ToolCall, prepared: PreparedCall | None) -> ToolResult:
        """Return the receipt of a call that waited for an answer and never gets one."""
        return ToolResult(
            id=prepared.id if prepared is not None else self._rounds.new_call_id(),
            turn_id=turn_id,
            tool=call.name,
            digest=prepared.digest if prepared is not None else "",
            outcome="denied",
            summary="not allowed",
            output=None,
            milliseconds=None,
            confinement=CONFINEMENT,
            exit_code=None,
            files=(),
        )

    def _undone(
        self, flight: Flight, prepared: PreparedCall, outcome: Outcome, said: str, summary: str, by: str | None
    ) -> Result:
        receipt = ToolResult(
            id=prepared.id,
            turn_id=flight.turn_id,
            tool=prepared.call.name,
            digest=prepared.digest,
            outcome=outcome,
            summary=_line(summary),
            output=None,
            milliseconds=None,
            confinement=prepared.confinement,
            exit_code=None,
            files=(),
        )
        return Result(receipt=receipt, text=said, failed=True, allowed_by=by)


def _receipt(prepared: PreparedCall, done: Done, place: Workplace, output: str | None, milliseconds: int) -> ToolResult:
    return ToolResult(
        id=prepared.id,
        turn_id=prepared.turn_id,
        tool=prepared.call.name,
        digest=prepared.digest,
        outcome=done.outcome,
        summary=_line(place.masker.mask(storable(done.summary))),
        output=output,
        milliseconds=milliseconds,
        confinement=prepared.confinement,
        exit_code=done.exit_code,
        # Of a file that was only read nothing is lost: it cannot be named in a change either.
        files=tuple(each for each in done.files if each.changed or openly_named(real_path(each.path), place)),
    )


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY else f"{line[: _SUMMARY - 1]}…"
