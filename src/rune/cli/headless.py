"""`rune -p`: one message or one slash command, without the app."""

import asyncio
import signal
from contextlib import aclosing
from typing import Literal

import msgspec

from rune.cli.exit_codes import ExitCode, of_error, of_turn
from rune.cli.output import Output
from rune.errors import RuneError
from rune.records.messages import Channel, Provenance
from rune.surface.commands.command import CommandCall
from rune.surface.stream_json import error_line, error_object, event_line, result_object
from rune.surface.surface import Surface
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
    max_steps: int | None = None
    channel: Channel = "task"


async def run_headless(surface: Surface, request: HeadlessRequest, output: Output) -> ExitCode:
    """Answer one message on stdout; everything else goes to stderr. Returns the exit code."""
    try:
        conversation_id = await _conversation(surface, request, output)
        if surface.commands.is_command(request.text) and request.provenance == "owner":
            return await _run_command(surface, request, conversation_id, output)
        return await _run_turn(surface, request, conversation_id, output)
    except RuneError as error:
        match request.output_format:
            case "text":
                output.problem(error.message, error.hint)
            case "json":
                output.line(error_object(error))
            case "stream-json":
                output.line(error_line(error))
        return of_error(error)


async def _conversation(surface: Surface, request: HeadlessRequest, output: Output) -> str | None:
    if request.resume is not None:
        return await surface.views.resolve(request.resume)
    if not request.carry_on:
        return None
    found, passed = await surface.views.latest_free(request.folder, request.channel)
    for holder in passed:
        output.note(f"rune: a newer conversation is open in process {holder.pid}; it is left alone")
    if found is None:
        output.note("rune: there is nothing to continue in this folder; this starts a conversation")
    return found


async def _run_command(
    surface: Surface, request: HeadlessRequest, conversation_id: str | None, output: Output
) -> ExitCode:
    call = CommandCall(argument="", folder=request.folder, channel=request.channel, conversation_id=conversation_id)
    result = await surface.commands.run(request.text, call)
    output.line(result.text if request.output_format == "text" else _command_json(result.data))
    return ExitCode.DONE if result.ok else ExitCode.FAILED


def _command_json(data: dict[str, object]) -> str:
    import json

    return json.dumps({"version": 1, **data}, ensure_ascii=True)


async def _run_turn(
    surface: Surface, request: HeadlessRequest, conversation_id: str | None, output: Output
) -> ExitCode:
    turn = TurnRequest(
        text=request.text,
        folder=request.folder,
        channel=request.channel,
        conversation_id=conversation_id,
        model=request.model,
        provenance=request.provenance,
        max_steps=request.max_steps,
    )
    interrupt = _Interrupt(surface)
    closed: TurnClosed | None = None
    show = _Show(request.output_format, output)
    with interrupt:
        async with aclosing(surface.operator.send_task(turn)) as events:
            async for event in events:
                interrupt.seen()
                if show.broken is None:
                    show.event(event)
                if show.broken is not None:
                    surface.operator.cancel()
                if isinstance(event, TurnClosed):
                    closed = event
    if show.broken is not None:
        raise show.broken
    if closed is None:
        raise RuntimeError("a turn ended without TurnClosed")
    return of_turn(closed.stop_reason, closed.error_type)


class _Interrupt:
    """Turns Ctrl-C and SIGTERM into a cancel. A signal before the turn has begun is remembered."""

    def __init__(self, surface: Surface) -> None:
        self._operator = surface.operator
        self._asked = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self._asked = True
        self._operator.cancel()

    def seen(self) -> None:
        """Cancel again what began after the signal."""
        if self._asked:
            self._operator.cancel()


class _Show:
    """Writes a turn's events in one of the three formats. `broken` once the reader of stdout went away."""

    def __init__(self, output_format: OutputFormat, output: Output) -> None:
        self._format: OutputFormat = output_format
        self._output = output
        self._phase = ""
        self.broken: BrokenPipeError | None = None

    def event(self, event: TurnEvent) -> None:
        """Show one event."""
        try:
            match self._format:
                case "stream-json":
                    self._output.line(event_line(event))
                case "json":
                    if isinstance(event, TurnClosed):
                        self._output.line(result_object(event))
                case "text":
                    self._text(event)
        except BrokenPipeError as error:
            self.broken = error
        if self._format != "stream-json":
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
            kept = " What came is kept." if closed.answer and not closed.complete else ""
            self._output.problem(closed.error + kept, closed.hint)
        elif closed.stop_reason != "answered":
            self._output.problem(_STOPPED.get(closed.stop_reason.value, closed.stop_reason.value))


_STOPPED = {
    "cancelled": "interrupted; what came is kept, `rune -c -p ...` goes on from here",
    "length": 'the answer reached its length limit; `rune -c -p "go on"` continues it',
    "step_limit": 'the step limit was reached; `rune -c -p "go on"` continues',
}
