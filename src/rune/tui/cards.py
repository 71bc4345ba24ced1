"""What a tool's call looks like: its row with state and time, and the last lines of its output. Foreign texts."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from rune.text.safe_text import SafeText
from rune.tui.fit import cut_line, foreign, spread
from rune.tui.lines import Line, Span, line
from rune.tui.markdown.wrapping import TAB, expanded
from rune.tui.transcript_state import ToolCard

_A_SECOND: Final = 1000  # milliseconds
_STATES: Final = {"prepared": "prepared", "waiting": "waiting for you", "running": "running", "done": "done"}
_INDENT: Final = Span(SafeText("  "))


def card_row(entry: ToolCard, mark: SafeText, width: int) -> Sequence[Line]:
    """Return the one row of a call, behind its mark of two cells: what it does, and how it stands."""
    right, style = _state(entry)
    room = max(width - cell_len(right) - 2, 1)
    what = f"{entry.name} {entry.effect}".strip()
    return (spread((Span(mark, "dim"), Span(foreign(what, room - 2), "code")), (Span(right, style),), width),)


def tail_rows(text: str, width: int) -> Sequence[Line]:
    """Return lines of output, each cut to the width."""
    rows = (foreign(expanded(each, TAB), width) for each in text.split("\n"))
    return tuple(cut_line(line(_INDENT, Span(row, "dim"), gutter=2), width) for row in rows)


def _state(entry: ToolCard) -> tuple[SafeText, str]:
    if entry.state == "failed":
        return SafeText(f"✗ failed{_took(entry.milliseconds)}"), "bad"
    if entry.state == "done":
        return SafeText(f"✓{_took(entry.milliseconds) or ' done'}"), "good"
    return SafeText(_STATES[entry.state]), "warning" if entry.state == "waiting" else "dim"


def _took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f" {milliseconds} ms" if milliseconds < _A_SECOND else f" {milliseconds / _A_SECOND:,.1f} s"
