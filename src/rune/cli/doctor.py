"""`rune doctor`: looks at everything, and with `--mend` mends first what can be mended."""

import asyncio
import json
from collections.abc import Callable, Sequence

import msgspec

from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output
from rune.surface.doctor import Check, examine, report

Say = Callable[[str], None]


def run_doctor(
    checks: Callable[[Say], Sequence[Check]],
    mend: Callable[[Say], Sequence[msgspec.Struct]] | None,
    output: Output,
    *,
    as_json: bool,
) -> ExitCode:
    """Mend when `mend` is given, run the checks, and show what they found; exit code 1 when anything is broken.

    Both are given what shows a line to a person: what is done, and on a terminal how far a long look is.
    """
    mended = mend(lambda text: output.note(f"rune: {text}")) if mend is not None else None
    if mended is not None and not mended and not as_json:
        output.note("rune: there is nothing that could be mended")

    def told(text: str) -> None:
        if output.err_is_terminal:
            output.note(f"rune: {text} ...")

    result = report(asyncio.run(examine(checks(told))))
    if as_json:
        more = {} if mended is None else {"mended": [msgspec.to_builtins(each) for each in mended]}
        output.line(json.dumps(result.data | more))
    else:
        output.own_line(result.text)
    return ExitCode.DONE if result.ok else ExitCode.FAILED
