"""The loop of a turn: ask the broker, ask the model, act, record; readable on one screen (tools.md, The loop)."""

from collections.abc import Sequence
from typing import Final

from rune.context.blocks import Capsule, FrozenPrefix
from rune.errors import ModelError, UnusableCallError
from rune.models.text_tools.second_try import deserves_second_try
from rune.models.transport import CompletionReason
from rune.records.messages import ConversationMessageRecord
from rune.records.turns import StopReason
from rune.turn import events as shown
from rune.turn.asking import Asking, Offer
from rune.turn.excerpts import room_for
from rune.turn.flight import Answer, Ended, Flight, ModelRun, uninterrupted
from rune.turn.limits import Stop, decide
from rune.turn.moves import MoveBook
from rune.turn.prompting import Prompts
from rune.turn.questions import Questions
from rune.turn.rounds import RoundRecorder
from rune.turn.session import Session
from rune.turn.tool_round import Answered, ToolRound
from rune.turn.workplaces import Workplaces

_GO_ON: Final = "Say what it should do differently, or send the message again."
_ESSAY: Final = "the model described what to do and did nothing; it was asked once more, to act"


class LocalToolRuntime:
    """Runs a turn's model calls and tools within its limits."""

    def __init__(
        self,
        *,
        prompts: Prompts,
        asking: Asking,
        moves: MoveBook,
        tool_round: ToolRound,
        rounds: RoundRecorder,
        questions: Questions,
        workplaces: Workplaces,
    ) -> None:
        self._prompts = prompts
        self._asking = asking
        self._moves = moves
        self._round = tool_round
        self._rounds = rounds
        self._questions = questions
        self._workplaces = workplaces

    def first_prefix(self, flight: Flight, session: Session, message: ConversationMessageRecord) -> FrozenPrefix:
        """Return the prefix with which a conversation starts. Raises as the broker does."""
        return self._prompts.first_prefix(flight, session, message)

    async def run(self, flight: Flight, session: Session, run: ModelRun) -> Ended:
        """Run a turn to its end; returns how it ended, raises what made it fail."""
        if isinstance(stop := decide(flight.counters), Stop):
            return Ended(reason=stop.reason)
        return await self._loop(flight, session, run, await self._prompts.assembled(flight, session, run))

    async def resume(self, flight: Flight, session: Session, run: ModelRun) -> Ended:
        """Go on with a paused turn whose question is answered: first what was decided, then the loop."""
        if flight.protocol == "constrained":
            run.protocol = "constrained"  # what the turn fell back to holds on; else each model asks in its own way
        message, answered = self._questions.answered(flight, session)
        used, budget = flight.counters.iterations_used, flight.counters.iteration_budget
        flight.emit(shown.StepTaken(turn_id=flight.turn_id, used=used, budget=budget))
        capsule = flight.capsule
        ended = await self._played(flight, session, run, message, answered)
        if ended is not None:
            return ended
        if isinstance(stop := decide(flight.counters), Stop):
            return Ended(reason=stop.reason)
        if capsule is None or capsule.trace.recipe.dialect != self._prompts.dialect(run) or self._moved(capsule, run):
            return await self._loop(flight, session, run, await self._prompts.assembled(flight, session, run))
        round_ = [message, *self._results(session, message)]
        return await self._loop(flight, session, run, await self._prompts.extended(flight, session, capsule, round_))

    async def _loop(self, flight: Flight, session: Session, run: ModelRun, capsule: Capsule) -> Ended:
        while True:
            reason = await self._answer(flight, session, run, capsule)
            capsule = flight.capsule or capsule  # a second try builds its own
            answer = flight.answer
            if answer is None or not answer.calls or not answer.complete:
                if answer is not None and self._moves.is_essay(flight, run, answer, self._prompts.offered(run)):
                    capsule = await self._again(flight, session, run)
                    continue
                return Ended(reason=StopReason.LENGTH if reason == "length" else StopReason.ANSWERED)
            if (said := self._moves.gives_up(answer)) is not None:
                return self._gave_up(flight, answer, said)
            message = await self._rounds.answered(flight, session)
            if (ended := await self._played(flight, session, run, message)) is not None:
                return ended
            if isinstance(stop := decide(flight.counters), Stop):
                return Ended(reason=stop.reason)
            round_ = [message, *self._results(session, message)]
            capsule = await self._prompts.extended(flight, session, capsule, round_)

    async def _played(
        self,
        flight: Flight,
        session: Session,
        run: ModelRun,
        message: ConversationMessageRecord,
        answered: Answered | None = None,
    ) -> Ended | None:
        """Play a round; returns how the turn ends with it, None where it goes on."""
        place = await self._workplaces.of(session)
        played = await self._round.play(flight, session, message, place, room=room_for(run.num_ctx), answered=answered)
        if played.asks:
            await self._questions.ask(flight, session, message, played.asks, self._prompts.protocol(run))
            return Ended(reason=StopReason.PAUSED)
        return Ended(reason=StopReason.LOOP, text=flight.circling, hint=_GO_ON) if flight.circling else None

    def _results(self, session: Session, message: ConversationMessageRecord) -> Sequence[ConversationMessageRecord]:
        at = next(index for index in range(len(session.history) - 1, -1, -1) if session.history[index].id == message.id)
        return session.history[at + 1 :]

    async def _answer(self, flight: Flight, session: Session, run: ModelRun, capsule: Capsule) -> CompletionReason:
        """Have one answer; a call that was lost on the way is asked for once more, constrained, once a turn. One that
        cannot be used then is told the model as a result.
        """
        try:
            return await self._asking.ask(flight, session, run, capsule, await self._offer(flight, session, run))
        except ModelError as error:
            if self._deserves_second_try(flight, run, error):
                run.protocol = "constrained"
                capsule = await self._prompts.assembled(flight, session, run)
                return await self._asking.ask(flight, session, run, capsule, await self._offer(flight, session, run))
            if isinstance(error, UnusableCallError) and error.tool and flight.answer is not None:
                self._asking.unusable(flight, flight.answer, error)
                return "tool_calls"
            raise

    async def _offer(self, flight: Flight, session: Session, run: ModelRun) -> Offer:
        offered, protocol = self._prompts.offered(run), self._prompts.protocol(run)
        if protocol != "constrained":
            return Offer(tools=offered, protocol=protocol)
        moves = await self._moves.legal(flight, session, offered, await self._workplaces.of(session))
        return Offer(tools=moves.schemas, protocol=protocol, answer=moves.answer, temperature=moves.temperature or None)

    def _deserves_second_try(self, flight: Flight, run: ModelRun, error: ModelError) -> bool:
        """Say whether to ask once more, constrained; that is the turn's protocol then, so it happens once."""
        if isinstance(decide(flight.counters), Stop):
            return False
        return deserves_second_try(
            error,
            protocol=self._prompts.protocol(run),
            tools_offered=bool(self._prompts.offered(run)),
            shown=flight.answer is not None and bool(flight.answer.text),
            tried=False,
        )

    async def _again(self, flight: Flight, session: Session, run: ModelRun) -> Capsule:
        """Ask once more after an essay: it stays in the journal and in what a person sees, and is not sent again."""
        message = await self._rounds.answered(flight, session)
        await uninterrupted(self._rounds.leave_out(flight, session, message, "described instead of acting"))
        flight.emit(shown.Notice(turn_id=flight.turn_id, text=_ESSAY))
        run.protocol = "constrained"
        return await self._prompts.assembled(flight, session, run)

    def _gave_up(self, flight: Flight, answer: Answer, said: str) -> Ended:
        """End a turn in which the model says in a field of its own that it does nothing more: shown as that."""
        answer.calls.clear()
        answer.text.append(said)
        flight.emit(shown.TextDelta(turn_id=flight.turn_id, text=said))
        return Ended(reason=StopReason.ANSWERED)

    def _moved(self, capsule: Capsule, run: ModelRun) -> bool:
        """Say whether another window holds by now: what was decided for the old one does not."""
        return capsule.trace.window != run.num_ctx
