"""`rune -p`: one message or one slash command, without the app."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Literal

import msgspec

from rune.cli.exit_codes import ExitCode, of_error, of_turn
from rune.cli.interrupts import Interrupts
from rune.cli.models import run_work
from rune.cli.output import Output, StdoutLostError
from rune.errors import LeaseHeldError, RuneError
from rune.records.messages import Channel, Provenance
from rune.records.models import Thinking
from rune.surface.commands.command import CommandCall
from rune.surface.reading_mode import not_sent, notice
from rune.surface.stream_json import error_line, error_object, event_line, result_object
from rune.surface.surface import Surface
from rune.turn.bounds import UNSAVED
from rune.turn.events import Notice, Progress, TextDelta, TurnClosed, TurnEvent, TurnOpened
from rune.turn.request import TurnRequest

OutputFormat = Literal["text", "json", "stream-json"]


class HeadlessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked on the command line. `resume` is an id or part of one; `carry_on` is `-c`."""

    text: str
    folder: str
    provenance: Provenance
    output_format: OutputFormat = "text"
    resume: str | None = None
    carry_on: bool = False
    model: str | None = None
    thinking: Thinking | None = None
    max_steps: int | None = None
    channel: Channel = "task"


async def run_headless(surface: Surface, request: HeadlessRequest, output: Output, interrupts: Interrupts) -> ExitCode:
    """Answer one message on stdout; everything else goes to stderr. Returns the exit code.

    Raises StdoutLostError when stdout takes nothing any more; the turn was stopped and is stored then.
    """
    try:
        if surface.commands.is_command(request.text) and request.provenance == "owner":
            return await _run_command(surface, request, output)
        return await _answer(surface, request, output, interrupts)
    except RuneError as error:
        match request.output_format:
            case "text":
                output.problem(error.message, error.hint)
            case "json":
                output.line(error_object(error))
            case "stream-json":
                output.line(error_line(error))
        return of_error(error)


class _Continued:
    """Finds the conversation that `-c` or `-r` mean, and the next one when that was taken in the meantime."""

    def __init__(self, surface: Surface, request: HeadlessRequest, output: Output) -> None:
        self._views = surface.views
        self._request = request
        self._output = output
        self._refused: set[str] = set()
        self._named: set[int] = set()

    async def find(self) -> str | None:
        """Return an id, None for a new conversation. Raises NotFoundError."""
        request = self._request
        if request.resume is not None:
            return await self._views.resolve(request.resume)
        if not request.carry_on:
            return None
        found, passed = await self._views.latest_free(request.folder, request.channel, exclude=self._refused)
        for holder in passed:
            if holder.pid not in self._named:
                self._named.add(holder.pid)
                self._output.note(f"rune: a newer conversation is open in process {holder.pid}; it is left alone")
        if found is None:
            what = "more to continue" if self._refused or passed else "to continue"
            self._output.note(f"rune: there is nothing {what} in this folder; this starts a conversation")
        return found

    def was_taken(self, conversation_id: str, error: LeaseHeldError) -> bool:
        """Say whether another one may be tried: with `-c` any will do, one that was named is meant."""
        if not self._request.carry_on:
            return False
        self._refused.add(conversation_id)
        self._output.note(f"rune: {conversation_id} is left alone: {error.message}")
        return True


async def _run_command(surface: Surface, request: HeadlessRequest, output: Output) -> ExitCode:
    if (why := surface.refusal()) is not None:
        output.note(f"rune: {notice(why)}")
    conversation_id = await _Continued(surface, request, output).find()
    if conversation_id is None:  # a command is about what is there: the newest conversation here
        conversation_id, _ = await surface.views.latest_free(request.folder, request.channel)
    call = CommandCall(
        argument="",
        folder=request.folder,
        channel=request.channel,
        conversation_id=conversation_id,
        model=request.model,
        thinking=request.thinking,
    )
    result = await surface.commands.run(request.text, call)
    if result.runs is not None:
        return await run_work(surface, result.runs, output, request.output_format)
    if result.model is not None and conversation_id is None:
        output.note("rune: there is no conversation here that could keep it; begin one with `-m`")
    if result.thinking is not None and conversation_id is None:
        output.note("rune: there is no conversation here that could keep it; begin one with `--think`")
    output.line(result.text if request.output_format == "text" else _command_json(result.data))
    if result.opens is not None:
        output.note(f"rune: go on with it by `rune -r {result.opens}`")
    return ExitCode.DONE if result.ok else ExitCode.FAILED


def _command_json(data: dict[str, object]) -> str:
    import json

    return json.dumps({"version": 1, **data}, ensure_ascii=True)


async def _answer(surface: Surface, request: HeadlessRequest, output: Output, interrupts: Interrupts) -> ExitCode:
    if (why := surface.refusal()) is not None:
        raise not_sent(why)
    continued = _Continued(surface, request, output)
    while True:
        conversation_id = await continued.find()
        try:
            return await _run_turn(surface, request, conversation_id, output, interrupts)
        except LeaseHeldError as error:
            # Raised only before the turn is opened: nothing was stored and nothing was shown.
            if conversation_id is None or not continued.was_taken(conversation_id, error):
                raise


async def _run_turn(
    surface: Surface, request: HeadlessRequest, conversation_id: str | None, output: Output, interrupts: Interrupts
) -> ExitCode:
    turn = TurnRequest(
        text=request.text,
        folder=request.folder,
        channel=request.channel,
        conversation_id=conversation_id,
        model=request.model,
        thinking=request.thinking,
        provenance=request.provenance,
        max_steps=request.max_steps,
    )
    closed: TurnClosed | None = None
    show = _Show(request.output_format, output)
    with interrupts.turn(surface.operator.cancel) as seen, output.when_lost(_from_thread(surface.operator.cancel)):
        async with contextlib.aclosing(surface.operator.send_task(turn)) as events:
            async for event in events:
                seen()
                try:
                    show.event(event)
                except StdoutLostError:
                    surface.operator.cancel()  # and is raised again below, when the turn is stored
                if isinstance(event, TurnClosed):
                    closed = event
    output.check()
    if closed is None:
        raise RuntimeError("a turn ended without TurnClosed")
    return of_turn(closed.stop_reason, closed.error_type)


def _from_thread(call: Callable[[], object]) -> Callable[[], None]:
    """Return a function that has `call` made on this event loop, for other threads."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed in this very moment: nothing runs on it
            loop.call_soon_threadsafe(call)

    return ask


class _Show:
    """Writes a turn's events in one of the three formats."""

    def __init__(self, output_format: OutputFormat, output: Output) -> None:
        self._format: OutputFormat = output_format
        self._output = output
        self._phase = ""

    def event(self, event: TurnEvent) -> None:
        """Show one event. Raises StdoutLostError."""
        self._output.check()
        match self._format:
            case "stream-json":
                self._output.line(event_line(event))
                return
            case "json":
                if isinstance(event, TurnClosed):
                    self._output.line(result_object(event))
            case "text":
                self._text(event)
        self._aside(event)

    def _text(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._output.answer(text)
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

    def _closing(self, closed: TurnClosed) -> None:
        if closed.error:
            became = _what_became(closed)
            self._output.problem(f"{closed.error.removesuffix('.')}. {became}" if became else closed.error, closed.hint)
        elif closed.stop_reason == "cancelled" and not closed.answer:
            self._output.problem("interrupted before the answer began; your message is kept")
        elif closed.stop_reason != "answered":
            self._output.problem(_STOPPED.get(closed.stop_reason.value, closed.stop_reason.value))


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
}
