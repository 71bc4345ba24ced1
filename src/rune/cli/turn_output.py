"""A turn on stdout and stderr, in one of the three formats: what `rune -p` and `rune approve` share."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, Literal

from rune.cli.exit_codes import ExitCode, of_error, of_turn
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output, StdoutLostError
from rune.errors import RuneError
from rune.surface.stream_json import CallsSeen, error_line, error_object, event_line, result_object
from rune.surface.tool_text import asked_lines, call_line, rules_of
from rune.turn.bounds import UNSAVED
from rune.turn.events import (
    ApprovalAsked,
    AskedCall,
    Notice,
    Progress,
    StepTaken,
    TextDelta,
    ToolFinished,
    ToolPrepared,
    ToolStarted,
    TurnClosed,
    TurnEvent,
    TurnOpened,
)

OutputFormat = Literal["text", "json", "stream-json"]

# So many lines of what a call would do stand on stderr; `rune approve ID --show` has all of them.
MOST_LINES: Final = 80
_INDENT: Final = "      "


async def show_turn(
    turn: AsyncGenerator[TurnEvent, None],
    stop: Callable[[], object],
    output_format: OutputFormat,
    output: Output,
    interrupts: Interrupts,
    *,
    answered: Sequence[AskedCall] = (),
) -> ExitCode:
    """Show a turn as it happens; returns the exit code of its end. `stop` stops it; `answered` are the calls of the
    question with which it goes on.

    Raises what stood in the way of opening it, and StdoutLostError when stdout takes nothing any more; the turn was
    stopped and is stored then.
    """
    closed: TurnClosed | None = None
    show = TurnOutput(output_format, output, answered)
    with interrupts.turn(stop) as seen, output.when_lost(_from_thread(stop)):
        async with contextlib.aclosing(turn) as events:
            async for event in events:
                seen()
                try:
                    show.event(event)
                except StdoutLostError:
                    stop()  # and is raised again below, when the turn is stored
                if isinstance(event, TurnClosed):
                    closed = event
    output.check()
    if closed is None:
        raise RuntimeError("a turn ended without TurnClosed")
    return of_turn(closed.stop_reason, closed.error_type)


def refused(error: RuneError, output_format: OutputFormat, output: Output) -> ExitCode:
    """Say why a turn could not begin; returns the exit code."""
    match output_format:
        case "text":
            output.problem(error.message, error.hint)
        case "json":
            output.line(error_object(error))
        case "stream-json":
            output.line(error_line(error))
    return of_error(error)


def _from_thread(call: Callable[[], object]) -> Callable[[], None]:
    """Return a function that has `call` made on this event loop, for other threads."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed in this very moment: nothing runs on it
            loop.call_soon_threadsafe(call)

    return ask


class TurnOutput:
    """Writes a turn's events in one of the three formats. What tools say never goes to stdout."""

    def __init__(self, output_format: OutputFormat, output: Output, answered: Sequence[AskedCall] = ()) -> None:
        self._format: OutputFormat = output_format
        self._output = output
        self._phase = ""
        self._seen = CallsSeen(answered)
        self._effects = {call.call_id: call.effect for call in answered}
        self._acted = False
        self._asked: ApprovalAsked | None = None

    def event(self, event: TurnEvent) -> None:
        """Show one event. Raises StdoutLostError."""
        self._output.check()
        match self._format:
            case "stream-json":
                self._output.line(event_line(event))
                return
            case "json":
                self._seen.note(event)
                if isinstance(event, TurnClosed):
                    self._output.line(result_object(event, self._seen))
            case "text":
                self._text(event)
        self._aside(event)

    def _text(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._output.answer(text)
            case StepTaken(used=used, budget=budget):
                self._step(used, budget)
            case ToolPrepared(call_id=call_id, effect=effect):
                self._output.end_answer()  # what was said before the call stands in lines of its own
                self._effects[call_id] = effect
            case ToolStarted(name=name):
                if name.isascii() and name.isprintable():
                    self._output.status(f"rune: {name} runs ..."[: self._output.err_columns - 1])
            case ToolFinished():
                self._output.end_answer()
                self._finished(event)
            case Notice() if self._output.out_is_terminal:
                self._output.end_answer()  # both streams are one screen there; in a file an answer stays as it came
            case ApprovalAsked():
                self._asked = event
            case TurnClosed():
                self._output.end_answer()
            case _:
                pass  # shown on stderr, or not at all

    def _aside(self, event: TurnEvent) -> None:
        match event:
            case Notice(text=text, hint=hint):
                self._output.problem(text, hint)
            case Progress(phase=phase, total=total):
                self._progress(phase, total)
            case TurnOpened(remote=True, model=model):
                self._output.note(f"rune: {model} is remote: what you send leaves this machine")
            case TurnClosed() if self._format == "text":
                self._closing(event)
            case _:
                pass  # the answer itself

    def _progress(self, phase: str, total: int | None) -> None:
        if not self._output.err_is_terminal or phase == self._phase:
            return
        self._phase = phase
        amount = f" {total:,} tokens" if phase == "reading" and total else " the model" if phase == "loading" else ""
        self._output.note(f"rune: {phase}{amount} ...")

    def _step(self, used: int, budget: int) -> None:
        """Say how far the turn is, on a terminal; a plain answer is one step, of which nothing is said."""
        if used > 1:
            self._output.end_answer()
            self._output.status(f"rune: step {used}/{budget}")

    def _finished(self, event: ToolFinished) -> None:
        self._acted = True
        effect = self._effects.pop(event.call_id, "")
        line = call_line(event.name, effect, event.outcome, summary=event.summary, milliseconds=event.milliseconds)
        self._output.note(f"rune: {line}")

    def _closing(self, closed: TurnClosed) -> None:
        self._output.status("")
        if closed.pending_approval is not None:
            self._waiting(closed.pending_approval)
        elif closed.error:
            became = _what_became(closed)
            self._output.problem(f"{closed.error.removesuffix('.')}. {became}" if became else closed.error, closed.hint)
        elif closed.stop_reason == "cancelled" and not closed.answer and not self._acted:
            self._output.problem("interrupted before the answer began; your message is kept")
        elif closed.stop_reason != "answered":
            self._output.problem(_STOPPED.get(closed.stop_reason.value, closed.stop_reason.value))

    def _waiting(self, approval_id: str) -> None:
        """Say what the turn wants to do, why it asks, and the lines that resume it."""
        calls = self._asked.calls if self._asked is not None else ()
        self._output.note("rune: this waits for you; nothing of it was done:")
        for call in calls:
            for line in asked_lines(call, most=MOST_LINES):
                self._output.foreign_line(line, _INDENT)
        them = "it" if len(calls) == 1 else "them"
        self._output.note(f"rune: `rune approve {approval_id}` allows {them}")
        self._output.note(f"{_INDENT}`rune approve {approval_id} --no` refuses (--because TEXT says why)")
        if rules := rules_of(calls):
            self._output.note(f"{_INDENT}`rune approve {approval_id} --always` allows from now on, in this folder:")
            for rule in rules:
                self._output.foreign_line(rule, _INDENT + "  ")


def _what_became(closed: TurnClosed) -> str:
    """Say what became of an answer that failed; "" where there was none, or it is whole."""
    if closed.error.startswith(UNSAVED):
        shown = "What is shown above of the answer is not stored." if closed.answer else ""
        return f"{shown} Your message is kept.".strip()
    return "What came is kept." if closed.answer and not closed.complete else ""


_STOPPED = {
    "cancelled": "interrupted; what came is kept, `rune -c -p ...` goes on from here",
    "length": 'the answer reached its length limit; `rune -c -p "go on"` continues it',
    "step_limit": 'the step limit was reached; `rune -c -p "go on"` continues',
    "loop": "the model went in circles and was stopped; say in other words what it shall do: `rune -c -p ...`",
}
