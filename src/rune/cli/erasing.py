"""`rune erase`: shows what will go, asks, and tells each place that was looked at."""

import argparse
import json
import os
import textwrap

from rune.cli.descriptors import STDIN, wait_for
from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output
from rune.cli.stdin import is_terminal
from rune.errors import UsageError
from rune.surface.erasure import Erasure, plan_result, report_result
from rune.text.cells import cell_len

_LONGEST_ANSWER = 100


def erase(erasure: Erasure, options: argparse.Namespace, output: Output) -> ExitCode:
    """Erase what `options.id` names; exit code 1 where the text is left somewhere.

    Raises UsageError where nobody can be asked, and what Erasure.prepared and Erasure.erase raise.
    """
    with erasure.prepared(options.id) as plan:
        planned = plan_result(plan, named=not options.yes)
        if plan.nothing:
            output.line(json.dumps(planned.data | {"already": True}) if options.json else planned.text)
            return ExitCode.DONE
        if not options.yes and not is_terminal():
            raise UsageError(
                "nobody can be asked: stdin is no terminal",
                hint="With --yes it is erased without a question, for good.",
            )
        for line in wrapped(planned.text, output.err_columns if output.err_is_terminal else None):
            output.note(line)
        if not options.yes and not _agreed(output):
            output.note("nothing was changed")
            return ExitCode.INTERRUPTED
        try:
            report = erasure.erase(plan)
        except BaseException:
            output.note("rune: this is not finished: the same command again goes on with it")
            raise
    result = report_result(plan, report)
    if options.json:
        output.line(json.dumps(result.data))
    else:
        output.line("\n".join(wrapped(result.text, output.out_columns)))
    return ExitCode.DONE if result.ok else ExitCode.FAILED


def wrapped(text: str, columns: int | None) -> list[str]:
    """Return the lines of a text, each that is wider than a terminal of so many cells broken between words; None: as
    they are.
    """
    if columns is None:
        return text.splitlines()
    found: list[str] = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        broken = textwrap.wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        found += broken if cell_len(line) > columns else [line]
    return found


def _agreed(output: Output) -> bool:
    output.note("erase for good? [y/N]")
    typed = b""
    while b"\n" not in typed and len(typed) < _LONGEST_ANSWER:
        wait_for(STDIN)
        piece = os.read(STDIN, _LONGEST_ANSWER)
        if not piece:
            break
        typed += piece
    return typed.strip().lower() in {b"y", b"yes"}
