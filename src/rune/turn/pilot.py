"""Flies one turn, from its opening to its end: chooses the model, opens, runs, closes. Its conversation is held."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from rune.context.blocks import FrozenPrefix
from rune.errors import CancelledEarlyError, ModelError, RuneError, StorageError
from rune.records.messages import ConversationMessageRecord
from rune.records.turns import StopReason
from rune.turn.bounds import closed, opened, unsaved
from rune.turn.events import Notice, TurnClosed
from rune.turn.failures import TurnFailures
from rune.turn.flight import Ended, Flight, uninterrupted
from rune.turn.outcome import Outcome, land
from rune.turn.questions import ENDED, Questions
from rune.turn.recorder import TurnRecorder
from rune.turn.runtime import LocalToolRuntime
from rune.turn.selection import ModelSelection
from rune.turn.session import Session
from rune.turn.thinking import check_thinking, not_thinking, think_level

EARLY = "interrupted before the message was stored"


class Pilot:
    """Runs turns, each in a session that is locked for it."""

    def __init__(
        self,
        *,
        selection: ModelSelection,
        recorder: TurnRecorder,
        runtime: LocalToolRuntime,
        questions: Questions,
        unread: Callable[[str, bool], str],
        failures: TurnFailures,
        mask: Callable[[str], str],
    ) -> None:
        self._selection = selection
        self._recorder = recorder
        self._runtime = runtime
        self._questions = questions
        self._unread = unread
        self._failures = failures
        self._mask = mask

    async def put_aside(self, session: Session) -> None:
        """Refuse the question that waits in a conversation, because the person ends its task. Raises StorageError."""
        await uninterrupted(self._questions.put_aside(session, ENDED))

    async def fly(self, flight: Flight, session: Session) -> TurnClosed:
        """Run a turn to its end, however that is, and return what it shows last.

        Raises what stood in the way of opening it; nothing of it is stored then.
        """
        work = asyncio.create_task(self._work(flight, session), name=f"work {flight.turn_id}")
        flight.cancel.bind(work)
        outcome = await land(work, flight)
        # An error may quote what it was about; of one that nobody foresaw it is not known what.
        outcome = replace(outcome, error=self._mask(outcome.error), hint=self._mask(outcome.hint))
        self._selection.landed(flight, outcome)
        if not flight.opened:
            raise outcome.exception or CancelledEarlyError(EARLY)
        return await uninterrupted(self._close(flight, session, outcome))

    async def _work(self, flight: Flight, session: Session) -> Ended:
        first = session.conversation is None
        if flight.resumption is not None:
            return await self._resume(flight, session)
        async with session.choosing:
            problem = await self._open(flight, session)
        flight.emit(opened(flight))
        if unread := self._unread(flight.request.folder, first):
            flight.emit(Notice(turn_id=flight.turn_id, text=unread, about="trust"))
        for text in self._worth_knowing(flight, session):
            stand_in = flight.model is not None and flight.model.stand_in and text == flight.model.notice
            flight.emit(Notice(turn_id=flight.turn_id, text=text, about="stand_in" if stand_in else ""))
        if problem is not None or flight.model is None:
            raise problem or RuntimeError("no model was chosen, for no reason")
        return await self._runtime.run(flight, session, flight.model)

    async def _resume(self, flight: Flight, session: Session) -> Ended:
        """Go on with a turn whose question is answered. Raises ModelError, with nothing decided, while there is no
        model to go on with.
        """
        async with session.choosing:
            problem = await self._choose(flight, session)
            if problem is not None or flight.model is None:
                raise problem or RuntimeError("no model was chosen, for no reason")
            await uninterrupted(self._questions.reopen(flight, session))
        flight.emit(opened(flight))
        if flight.model.notice:
            flight.emit(Notice(turn_id=flight.turn_id, text=flight.model.notice))
        return await self._runtime.resume(flight, session, flight.model)

    async def _open(self, flight: Flight, session: Session) -> RuneError | None:
        """Choose the model and make the turn durable; returns what stands in the way of an answer."""
        problem = await self._choose(flight, session)
        if problem is not None and flight.request.model is not None:
            raise problem  # a name that was mistyped is no message yet
        if (waited := session.pending) is not None:
            await uninterrupted(self._questions.put_aside(session))
            flight.put_aside = ", ".join(f"{call.call.name} {call.effect}" for call in waited.calls)

        def first_prefix(message: ConversationMessageRecord) -> FrozenPrefix | None:
            nonlocal problem
            if flight.model is None:
                return None
            try:
                return self._runtime.first_prefix(flight, session, message)
            except RuneError as error:
                problem = problem or error
                return None

        await uninterrupted(self._recorder.open(flight, session, first_prefix))
        return problem

    def _worth_knowing(self, flight: Flight, session: Session) -> list[str]:
        """Return what the person could not know and the answer will not say, a sentence each."""
        told = [flight.model.notice if flight.model else ""]
        if flight.put_aside:
            told.append(f"refused, since you wrote a message instead of allowing it: {flight.put_aside}")
        if flight.masked:
            told.append("what looks like a secret in this message was masked before it was stored or sent")
        if session.interrupted:
            session.interrupted = False
            told.append("the answer before this one was lost when its process was ended; the message to it is kept")
        if flight.model and (unable := not_thinking(flight.thinking, flight.model)) and session.unthinking != unable:
            session.unthinking = unable
            told.append(f"{unable} cannot think: `/thinking {flight.thinking}` waits for a model that can")
        return [text for text in told if text]

    async def _choose(self, flight: Flight, session: Session) -> RuneError | None:
        """Choose the model before the turn is stored, so that its facts name it; what stands in the way is
        raised once the person's message is safe. Raises CapabilityMissingError for thinking that this very request
        asks for.
        """
        flight.thinking = flight.request.thinking or session.thinking
        begun = session.permission if session.conversation is not None else flight.settings.permissions.mode
        flight.permission = flight.request.permission or begun
        try:
            model = await self._selection.choose(
                requested=flight.request.model, conversation_model=session.model, settings=flight.settings
            )
        except ModelError as error:
            return error
        if flight.request.thinking is not None:
            check_thinking(flight.request.thinking, model.info)
        model.think = think_level(flight.thinking, model.info)
        flight.model = model
        return None

    async def _close(self, flight: Flight, session: Session, outcome: Outcome) -> TurnClosed:
        if outcome.exception is not None and outcome.reason is StopReason.BUG:
            self._failures.answer("turn", outcome.exception, flight.turn_id)
        try:
            trace_id = await self._recorder.close(flight, session, outcome)
        except StorageError as error:
            # The person must know that what they read is not kept; recovery ends the turn at the next start.
            self._failures.answer("journal", error, flight.turn_id)
            outcome, trace_id = unsaved(error), None
        # Only now, when the answer is safe: a server that is slow to tell must not cost it.
        lowered = await self._selection.afterwards(flight)
        for text in filter(None, [*self._failures.untold(), lowered]):
            flight.emit(Notice(turn_id=flight.turn_id, text=text, tier=1))
        return closed(flight, outcome, conversation_id=session.conversation_id, trace_id=trace_id)
