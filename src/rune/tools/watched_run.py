"""Runs a program for a tool or a person: what it writes is shown as it comes, and kept masked and within bounds."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Final

import msgspec

from rune.host.process_group import Ended, Stream, run
from rune.records.tools import Outcome
from rune.text.masking import Masker
from rune.text.safe_text import SafeText, safe_text
from rune.tools.executor import Watch
from rune.tools.output import CommandOutput, KeptOutput

LINES_SHOWN: Final = 15
"""How many of the last lines whoever watches is given."""

SOURCE: Final = "tool output"
"""What evidence of a program's output is called."""

_PAUSE_SECONDS: Final = 0.1  # between two looks: nobody reads faster
_DIGITS: Final = 12  # of an evidence id, by which a model knows it


_UNBEGUN: Final = Ended(
    exit_code=None, signal=None, timed_out=False, cancelled=True, milliseconds=0, swept=0, survivors=False
)


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended and what it wrote. `output` is the evidence id of all of it (up to the cap of the spool) when
    `kept` has only part; None when `kept` has all, or it could not be kept.
    """

    ended: Ended
    kept: KeptOutput
    output: str | None

    @property
    def outcome(self) -> Outcome:
        """Say whether it did what it was to do: a program that fails is a result, too."""
        if self.ended.cancelled:
            return "cancelled"
        return "ok" if self.ended.exit_code == 0 and not self.ended.timed_out else "failed"

    @property
    def verdict(self) -> str:
        """How it ended, in a few words: `exit code 1 (0.8 s)`."""
        seconds = f"{self.ended.milliseconds / 1000:.1f} s"
        if self.ended.cancelled:
            return f"stopped by the person {f'after {seconds}' if self.ended.milliseconds else 'before it began'}"
        if self.ended.timed_out:
            return f"timed out: it was ended after {seconds}"
        if self.ended.signal is not None:
            return f"ended by {_signal(self.ended.signal)} ({seconds})"
        return f"exit code {self.ended.exit_code} ({seconds})"

    @property
    def notes(self) -> tuple[str, ...]:
        """What else there is to say, a sentence each."""
        said: list[str] = []
        if self.ended.swept:
            count = "1 process" if self.ended.swept == 1 else f"{self.ended.swept} processes"
            said.append(f"{count} it left running {'was' if self.ended.swept == 1 else 'were'} ended.")
        if self.ended.survivors:
            said.append("Something that it started could not be ended and may still run.")
        if self.output is not None and not self.kept.spool_is_whole:
            said.append("Of this much output only the beginning is kept.")
        return tuple(said)

    def text(self, *said: str) -> str:
        """Return what a model is given: how it ended first, then `said` and what else there is to say, then output."""
        output = self.kept.text.strip("\n")
        head = self.verdict if output else f"{self.verdict}, no output"
        more = ""
        if self.output is not None:
            digits = self.output.removeprefix("sha256:")[:_DIGITS]
            more = f"Not all of the output is here; read_artifact {digits} shows it."
        return "\n".join(part for part in (head, *said, *self.notes, more, output) if part)


async def watched_run(
    argv: Sequence[str],
    *,
    folder: int | Path,
    environment: Mapping[str, str],
    seconds: float | None,
    masker: Masker,
    keep: Callable[[bytes, str], Awaitable[str]] | None,
    watch: Watch,
    always: bool = False,
) -> Ran:
    """Run a program to its end, or until `seconds` (None: no limit) are over or `watch.stop` is set; it is
    not begun when that is set already.

    `folder` is one, or a descriptor of one. `keep` (None: nothing is kept) is called with the whole masked output where
    the text given has only part of it; `always`: whenever there is any.

    Raises CommandNotStartedError, and what `keep` raises.
    """
    spool = io.BytesIO()
    output = CommandOutput(masker, spool=spool)
    if watch.stop.is_set():
        return Ran(ended=_UNBEGUN, kept=output.finish(), output=None)
    shown = _Shown(output, watch.show)

    def take(stream: Stream, data: bytes) -> None:
        output.feed(stream, data)
        shown.changed()

    try:
        ended = await run(argv, cwd=folder, environment=environment, timeout=seconds, on_output=take, stop=watch.stop)
    finally:
        shown.close()
    kept = output.finish()
    whole = spool.getvalue()
    wanted = keep is not None and whole and (always or _is_part(kept, whole))
    return Ran(ended=ended, kept=kept, output=await keep(whole, SOURCE) if keep and wanted else None)


class _Shown:
    """Gives the last lines to whoever watches: at once, then after a pause at most, and once more at the end."""

    def __init__(self, output: CommandOutput, show: Callable[[SafeText], None]) -> None:
        self._output = output
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None
        self._last = float("-inf")

    def changed(self) -> None:
        if self._due is None:
            wait = self._last + _PAUSE_SECONDS - self._loop.time()
            if wait <= 0:
                self._now()
            else:
                self._due = self._loop.call_later(wait, self._now)

    def close(self) -> None:
        if self._due is not None:
            self._now()

    def _now(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due, self._last = None, self._loop.time()
        if text := self._output.latest(LINES_SHOWN):
            self._show(text)


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({Signals(number).name})"
    except ValueError:  # a real-time one has no name
        return f"signal {number}"


def _is_part(kept: KeptOutput, whole: bytes) -> bool:
    """Say whether something of the whole is missing in what is kept; how it is made safe to show is no loss."""
    if kept.left_out_lines or not kept.spool_is_whole or len(whole) > 2 * len(kept.text.encode()) + 1:
        return True
    return safe_text(whole.decode()).strip("\n") != kept.text.strip("\n")
