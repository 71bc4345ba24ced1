"""`rune -p`: one message or one slash command, without the app."""

import msgspec

from rune.cli.exit_codes import ExitCode
from rune.cli.interrupts import Interrupts
from rune.cli.models import run_work
from rune.cli.output import Output
from rune.cli.turn_output import OutputFormat, refused, show_turn
from rune.errors import LeaseHeldError, RuneError
from rune.records.messages import Channel, Provenance
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.surface.commands.command import CommandCall
from rune.surface.reading_mode import not_sent, notice
from rune.surface.surface import Surface
from rune.turn.request import TurnRequest


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
    permission: PermissionMode | None = None


async def run_headless(surface: Surface, request: HeadlessRequest, output: Output, interrupts: Interrupts) -> ExitCode:
    """Answer one message on stdout; everything else goes to stderr. Returns the exit code.

    Raises StdoutLostError when stdout takes nothing any more; the turn was stopped and is stored then.
    """
    try:
        if surface.commands.is_command(request.text) and request.provenance == "owner":
            return await _run_command(surface, request, output)
        return await _answer(surface, request, output, interrupts)
    except RuneError as error:
        return refused(error, request.output_format, output)


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
        permission=request.permission,
    )
    result = await surface.commands.run(request.text, call)
    if result.runs is not None:
        return await run_work(surface, result.runs, output, request.output_format)
    if result.model is not None and conversation_id is None:
        output.note("rune: there is no conversation here that could keep it; begin one with `-m`")
    if result.thinking is not None and conversation_id is None:
        output.note("rune: there is no conversation here that could keep it; begin one with `--think`")
    if result.permission is not None and conversation_id is None:
        output.note("rune: there is no conversation here that could keep it; begin one with `--permission`")
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
        permission=request.permission,
    )
    operator = surface.operator
    return await show_turn(operator.send_task(turn), operator.cancel, request.output_format, output, interrupts)
