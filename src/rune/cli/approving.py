"""`rune approve`: what waits for the person's answer, and answering it from wherever they are."""

import argparse
import json

import msgspec

from rune.cli.exit_codes import ExitCode
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output
from rune.cli.turn_output import refused, show_turn
from rune.errors import LeaseHeldError, ModelError, RuneError, UsageError
from rune.records.times import rfc3339
from rune.surface.surface import Surface
from rune.surface.tool_text import approval_lines, rules_of, waiting_lines

_NOTHING = "nothing waits for an answer"


def check(options: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    answers = [name for name in ("no", "always", "because") if getattr(options, name)]
    if options.id is None and (answers or options.show):
        raise UsageError("which one? `rune approve` lists what waits", hint="Give the end of its id.")
    if options.show and answers:
        raise UsageError(f"--show answers nothing, so --{answers[0]} cannot stand beside it")
    if options.always and options.no:
        raise UsageError("--always and --no cannot be used together")
    if options.because is not None and not options.no:
        raise UsageError("--because goes with --no: it tells the model why it may not")
    if options.output_format == "stream-json" and not answering(options):
        raise UsageError("stream-json is for an answer; --json lists and shows")


def answering(options: argparse.Namespace) -> bool:
    """Say whether something is answered, and not only looked at."""
    return options.id is not None and not options.show


async def look(surface: Surface, options: argparse.Namespace, output: Output, now_ms: int) -> ExitCode:
    """List what waits, or show all of one question. Raises NotFoundError, StorageError."""
    if options.show:
        row = await surface.views.approval(await surface.views.resolve_approval(options.id))
        if options.output_format == "json":
            output.line(_json({"version": 1, **msgspec.to_builtins(row)}))
        else:
            output.line("\n".join(approval_lines(row, now_ms)))
            if row.standing == "open":
                output.note(f"rune: `rune approve {row.id}` allows it, `--no` refuses it")
        return ExitCode.DONE
    now = rfc3339(now_ms)
    rows = [row for row in await surface.views.pending_approvals() if row.expires_at > now]
    if options.output_format == "json":
        output.line(_json([msgspec.to_builtins(row) for row in rows]))
    elif not rows:
        output.line(_NOTHING)
    else:
        output.line("\n".join(waiting_lines(rows, now_ms)))
        output.note("rune: `rune approve ID` allows, `--no` refuses, `--show` shows all of it")
    return ExitCode.DONE


async def answer(surface: Surface, options: argparse.Namespace, output: Output, interrupts: Interrupts) -> ExitCode:
    """Answer a question and show the turn that goes on. Returns its exit code, or that of what stood in the way.

    Raises StdoutLostError when stdout takes nothing any more; the turn was stopped and is stored then.
    """
    try:
        if (why := surface.refusal()) is not None:
            raise why
        row = await surface.views.approval(await surface.views.resolve_approval(options.id))
        if options.always and not rules_of(row.calls):
            raise UsageError(
                f"{row.id}: there is no rule that would allow this from now on",
                hint=f"`rune approve {row.id}` allows it this time.",
            )
        turn = surface.operator.answer(
            row.id, "deny" if options.no else "allow", reason=options.because or "", always=options.always
        )
        if options.always and options.output_format == "text" and row.standing == "open":
            for rule in rules_of(row.calls):
                output.foreign_line(rule, "rune: asks no more in that folder: ")
        return await show_turn(
            turn, surface.operator.cancel, options.output_format, output, interrupts, answered=row.calls
        )
    except LeaseHeldError as error:
        # What helps with a conversation to be read elsewhere does not help here: a fork has no questions.
        error.hint = "Answer it there, or leave that conversation there and try again."
        return refused(error, options.output_format, output)
    except ModelError as error:
        # Raised before anything was decided.
        code = refused(error, options.output_format, output)
        output.note("rune: nothing was decided: it still waits for you")
        return code
    except RuneError as error:
        return refused(error, options.output_format, output)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
