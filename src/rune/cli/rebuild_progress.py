"""How far the views are in reading the journal anew: a bar that rewrites its line, or a line now and then."""

from collections.abc import Mapping
from typing import Final

from rune.cli.output import Output
from rune.store.view_pass import Pass

_WORDS: Final = "reading the journal anew"
_LEAST: Final = 2_000  # below, it is over before anybody has read it
_A_LINE: Final = 10_000
_CELLS: Final = 24
_FEWEST_CELLS: Final = 5
APP_COLUMNS: Final = 76


def is_plain(environ: Mapping[str, str]) -> bool:
    """Say whether a terminal shows ASCII at best: a dumb one, or a locale that is not UTF-8."""
    named = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    return (environ.get("TERM") or "dumb") == "dumb" or "utf" not in named.lower()


def bar_line(done: Pass, columns: int, *, plain: bool = False, before: str = "") -> str:
    """Return how far it is in at most `columns` cells, and in less words where there is little room."""
    part = min(1.0, done.applied / done.total) if done.total else 1.0
    percent = f"{int(part * 100)} %"
    total = f"{done.total:,}"
    start, rest = f"{before}{_WORDS}", f"{percent:>5}  {done.applied:>{len(total)},} of {total} events"
    cells = min(_CELLS, columns - len(start) - len(rest) - len("  ||"))
    if cells < _FEWEST_CELLS:
        return next((text for text in (start + rest, f"{before}{percent}", percent) if len(text) <= columns), "")
    full = int(part * cells)
    edges, begun, left = ("[]", "#", ".") if plain else ("\u2595\u258f", "\u2588", "\u2591")
    return f"{start}  {edges[0]}{begun * full}{left * (cells - full)}{edges[1]}{rest}"


def opening_line(done: Pass) -> str:
    """Return what the app says while it opens; empty for what is over in no time, and for what is done."""
    return bar_line(done, APP_COLUMNS) if done.total >= _LEAST and done.applied < done.total else ""


class RebuildProgress:
    """Shows on stderr what it is called with; `end` must follow."""

    def __init__(self, output: Output, environ: Mapping[str, str]) -> None:
        self._output = output
        self._plain = is_plain(environ)
        self._lines = 0

    def __call__(self, done: Pass) -> None:
        """Show how far it is (store.view_pass.Progress)."""
        if not self._output.err_is_terminal:
            if done.applied // _A_LINE > self._lines:
                self._output.note(f"rune: {_WORDS}, {done.applied:,} of {done.total:,} events ...")
            self._lines = done.applied // _A_LINE
        elif done.applied >= done.total:
            self._output.status("")
        elif done.total >= _LEAST:
            # The last cell stays free: some terminals go on to the next line once it is written.
            self._output.status(bar_line(done, self._output.err_columns - 1, plain=self._plain, before="rune: "))

    def end(self) -> None:
        """Wipe what is shown."""
        self._output.status("")
