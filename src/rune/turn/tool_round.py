"""One round of tools: the calls of one answer, prepared, judged, run or asked about, and their results.

Reads that stand side by side run up to four at once; everything else one after another, in the order asked. From the
first call that has to be asked about on, nothing runs until the person has answered: later calls may build on it. Edits
of other files that ask as well are asked together (tools.md, The loop).
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import InvalidArgumentsError, ToolError, UnknownToolError
from rune.orchestration.permissions import Permissions
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import PreparedCall, ToolCall
from rune.text.storable import storable
from rune.tools.policy import Verdict
from rune.tools.prepare import digest_of, key_of
from rune.tools.registry import Toolbox
from rune.tools.workplace import Workplace
from rune.turn import events as shown
from rune.turn.acting_out import CONFINEMENT, Acting, Ready, Result, Scene
from rune.turn.flight import Flight
from rune.turn.guarded import UNNAMEABLE, UNSHOWABLE, hides_what_it_does, openly_named, refusal
from rune.turn.rounds import RoundRecorder, behind
from rune.turn.session import Session

AT_ONCE: Final = 4

NOT_ALLOWED: Final = "Not done: the person did not allow it. Do not try it again; go on without it, or ask what to do."
SAID_NO: Final = 'Not done: the person did not allow it, and said: "{word}".'
CHANGED: Final = (
    "Not done: what was approved is not what would happen now, because something changed in between. Look at how it is "
    "now, and ask again."
)
TWICE: Final = "This is the same call as {first} above in this answer; it was made once, and its result holds for both."


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What the person decided about calls that were asked about, by the call's id in its message."""

    approval_id: str
    allowed: bool
    reason: str
    calls: Mapping[str, PreparedCall]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a round. `asks` are the calls for which the turn pauses; the round is not whole then."""

    results: tuple[ConversationMessageRecord, ...]
    asks: tuple[PreparedCall, ...] = ()


class ToolRound:
    """Plays rounds."""

    def __init__(self, *, toolbox: Toolbox, permissions: Permissions, rounds: RoundRecorder, acting: Acting) -> None:
        self._toolbox = toolbox
        self._permissions = permissions
        self._rounds = rounds
        self._acting = acting

    async def play(
        self,
        flight: Flight,
        session: Session,
        message: ConversationMessageRecord,
        place: Workplace,
        *,
        room: int,
        answered: Answered | None = None,
    ) -> Played:
        """Carry out the calls of `message` that have no result yet. `room` is how many tokens of a result the model is
        given. Raises StorageError, and CancelledError once what was running has ended and is stored.
        """
        there = {each.tool_call_id: each for each in behind(session, message)}
        results = dict(there)
        asks: list[Ready] = []
        firsts: dict[str, ToolCall] = {}
        due = [call for call in message.tool_calls if call.id not in there]
        scene = Scene(flight, session, place, room)
        for call in message.tool_calls:
            firsts.setdefault(key_of(call), call)
        for reading, calls in groupby(due, lambda call: self._kind(call) == "read"):
            if asks and reading:
                break
            if reading:
                results.update(await self._reads(scene, list(calls), firsts))
            elif not await self._changes(scene, list(calls), firsts, results, asks, answered):
                break
        ordered = tuple(results[call.id] for call in message.tool_calls if call.id in results)
        return Played(results=ordered, asks=tuple(ready.prepared for ready in asks))

    def _kind(self, call: ToolCall) -> str:
        try:
            return self._toolbox.find(call.name).kind
        except UnknownToolError:
            return "read"

    async def _reads(
        self, scene: Scene, calls: Sequence[ToolCall], firsts: Mapping[str, ToolCall]
    ) -> dict[str, ConversationMessageRecord]:
        """Run reads, so many at once, and store what came of them in the order asked."""
        found: dict[str, ConversationMessageRecord] = {}
        for start in range(0, len(calls), AT_ONCE):
            batch = calls[start : start + AT_ONCE]
            work = [asyncio.ensure_future(self._read(scene, call, firsts)) for call in batch]
            while not all(each.done() for each in work):
                try:
                    await asyncio.wait(work)
                except asyncio.CancelledError:
                    continue  # `Flight.cancel` knows it; they are short, and what they found is kept
            for call, each in zip(batch, work, strict=True):
                found[call.id] = await self._acting.store(scene, call, each.result())
            _go_on(scene)
        return found

    async def _changes(
        self,
        scene: Scene,
        calls: Sequence[ToolCall],
        firsts: Mapping[str, ToolCall],
        results: dict[str, ConversationMessageRecord],
        asks: list[Ready],
        answered: Answered | None,
    ) -> bool:
        """Take calls that may change something one after another; False: the round waits from one of them on."""
        for call in calls:
            if not await self._one(scene, call, firsts, results, asks, answered):
                return False
            _go_on(scene)
        return True

    async def _read(self, scene: Scene, call: ToolCall, firsts: Mapping[str, ToolCall]) -> Result:
        first = firsts[key_of(call)]
        if first.id != call.id:
            return self._acting.plain(
                scene.flight, call, "ok", TWICE.format(first=first.name), "the same call as above"
            )
        ready = await self._prepared(scene, call)
        if isinstance(ready, Result):
            return ready
        return await self._acting.run(scene, ready)

    async def _one(
        self,
        scene: Scene,
        call: ToolCall,
        firsts: Mapping[str, ToolCall],
        results: dict[str, ConversationMessageRecord],
        asks: list[Ready],
        answered: Answered | None,
    ) -> bool:
        """Take the next call that may change something; False: the round waits from here on."""
        if (first := firsts[key_of(call)]).id != call.id:
            ready = self._twice(scene, call, first)
            waits = first.id not in results
        else:
            ready = await self._decided(scene, call, answered)
            waits = bool(asks)
        if isinstance(ready, Ready):
            return await self._judged(scene, ready, results, asks)
        if not waits:
            results[call.id] = await self._acting.store(scene, call, ready)
        return not waits

    def _twice(self, scene: Scene, call: ToolCall, first: ToolCall) -> Result:
        return self._acting.plain(scene.flight, call, "ok", TWICE.format(first=first.name), "the same call as above")

    async def _decided(self, scene: Scene, call: ToolCall, answered: Answered | None) -> Ready | Result:
        """Prepare a call; where the person has decided about it, that holds for exactly what they were shown."""
        decided = answered.calls.get(call.id) if answered is not None else None
        if answered is None or decided is None:
            return await self._prepared(scene, call)
        by = f"approval:{answered.approval_id}"
        if not answered.allowed:
            self._show(scene, decided)
            said = SAID_NO.format(word=answered.reason) if answered.reason else NOT_ALLOWED
            return self._acting.denied(scene.flight, decided, said, by)
        ready = await self._prepared(scene, call, decided)
        if isinstance(ready, Result):
            return self._acting.failed(scene.flight, decided, ready.text, ready.receipt.summary)
        if ready.prepared.digest != decided.digest:
            return self._acting.failed(scene.flight, decided, CHANGED, "it is not any more what was approved")
        return msgspec.structs.replace(ready, verdict=Verdict(decision="allow", by=by))

    async def _judged(
        self, scene: Scene, ready: Ready, results: dict[str, ConversationMessageRecord], asks: list[Ready]
    ) -> bool:
        call = ready.prepared.call
        match ready.verdict.decision:
            case "ask":
                if asks and not _asked_together(ready, asks):
                    return False
                asks.append(ready)
                return True
            case "deny" if not asks:
                no = self._acting.denied(scene.flight, ready.prepared, ready.verdict.reason, None)
                results[call.id] = await self._acting.store(scene, call, no)
                return True
            case "allow" if not asks:
                results[call.id] = await self._acting.change(scene, ready)
                return True
            case _:
                return False  # it comes after one that waits for the person

    async def _prepared(self, scene: Scene, call: ToolCall, decided: PreparedCall | None = None) -> Ready | Result:
        """Check a call and judge it; returns the result at once where it cannot be carried out."""
        flight, place = scene.flight, scene.place
        masked = place.masker.mask
        if (unusable := flight.unusable.get(call.id)) is not None:
            unusable = masked(storable(unusable))
            return self._acting.plain(flight, call, "failed", unusable, unusable)
        try:
            tool = self._toolbox.find(call.name)
            if why := refusal(call, tool.kind, secret=call.id in flight.secretive):
                return self._acting.plain(scene.flight, call, "denied", why, "it holds a secret")
            plan = await tool.prepare(call.arguments, place)
        except ToolError as error:
            # An error may quote a file: the lines around what an edit looked for, the place that a link names.
            said, message = masked(storable(self._explained(call, error))), masked(storable(error.message))
            return self._acting.plain(scene.flight, call, "failed", said, message)
        if not all(openly_named(path, place) for path in plan.touches):
            return self._acting.plain(flight, call, "denied", UNNAMEABLE, "a file's name holds a secret")
        detail = masked(storable(plan.detail))
        if hides_what_it_does(tool.kind, storable(plan.detail), detail):
            return self._acting.plain(flight, call, "denied", UNSHOWABLE, "what it would do could not be shown whole")
        repaired = call.source == "repaired"
        verdict = await self._permissions.judge(
            tool.kind, plan, mode=scene.session.permission, folder=place.folder, repaired=repaired
        )
        prepared = PreparedCall(
            id=decided.id if decided is not None else self._rounds.new_call_id(),
            turn_id=flight.turn_id,
            call=call,
            effect=masked(storable(plan.effect)),
            detail=detail,
            # The digest is over what they really are; what is kept of them is for people.
            preconditions={name: masked(storable(value)) for name, value in plan.preconditions.items()},
            digest=digest_of(call, plan.preconditions),
            confinement=CONFINEMENT,
            why=masked(verdict.reason) if verdict.decision == "ask" else "",
            rule=plan.rule if verdict.decision == "ask" and not plan.asks and not repaired else "",
        )
        self._show(scene, prepared)
        return Ready(tool=tool, plan=plan, prepared=prepared, verdict=verdict)

    def _show(self, scene: Scene, prepared: PreparedCall) -> None:
        scene.flight.emit(
            shown.ToolPrepared(
                turn_id=scene.flight.turn_id,
                call_id=prepared.id,
                name=prepared.call.name,
                effect=prepared.effect,
                detail=prepared.detail,
            )
        )

    def _explained(self, call: ToolCall, error: ToolError) -> str:
        """Return what a model needs to do better: what is wrong and, where its arguments have another form, how they
        look. One that is held to a schema cannot have got the form wrong.
        """
        said = f"{error.message} {error.hint}".strip()
        unformed = isinstance(error, InvalidArgumentsError) and error.message.startswith(f"{call.name}: ")
        if not unformed or call.source == "constrained":
            return said
        schema = msgspec.json.encode(self._toolbox.find(call.name).schema.parameters).decode()
        return f"{said}\nThe arguments of {call.name}: {schema}"


def _go_on(scene: Scene) -> None:
    """Raise CancelledError when the person stopped the turn: what ran has ended and is stored."""
    if scene.flight.cancel.cancelled:
        raise asyncio.CancelledError


def _asked_together(ready: Ready, asks: Sequence[Ready]) -> bool:
    """Say whether a call may be asked with those that ask already: edits of other files. A command may do anything, and
    is looked at alone.
    """
    if any(each.tool.kind != "edit" for each in (ready, *asks)):
        return False
    touched = [path for earlier in asks for path in earlier.plan.touches]
    return not any(_meet(path, other) for path in ready.plan.touches for other in touched)


def _meet(path: Path, other: Path) -> bool:
    return path == other or path.is_relative_to(other) or other.is_relative_to(path)
