"""What a tool's call looks like: its row with state and time, what it changes or printed. Foreign texts, all of them.

▾ edit_file src/cart.py                          ✓ 12 ms
   10 - total = 0
   10 + total = Decimal(0)
▸ run_command pytest -q                    running 14 s
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rich.cells import cell_len

from rune.text.safe_text import SafeText
from rune.tui.diffs import DiffRow, diff_rows, digits, drawn_rows, is_diff
from rune.tui.entries import CardState, Checklist, CommandOutput, ToolCard
from rune.tui.fit import ELLIPSIS, cut_line, foreign, spread
from rune.tui.hanging import hanging
from rune.tui.lines import Line, Span, line
from rune.tui.markdown.wrapping import TAB, expanded, plain
from rune.tui.parts import CHUNK, Part, chunks, row
from rune.turn.events import ChecklistItem

TAIL: Final = 8  # lines of output that are shown while a tool runs
FEW: Final = 6  # and of one that failed
OWN_LINES: Final = 20  # and of what the person ran: they want to see it
DIFF_ROWS: Final = 12
LONG_DIFF: Final = 80  # rows of a diff that the person asked for

OUTSIDE: Final = SafeText("ran as you, outside the sandbox")
_FOLDED, _OPEN, _BARE = SafeText("▸ "), SafeText("▾ "), SafeText("· ")
_INDENT: Final = Span(SafeText("  "))
_A_SECOND: Final = 1000  # milliseconds
_MINUTE: Final = 60
_LEAST_SUMMARY: Final = 24
_WHY_BELOW: Final = ("failed", "denied", "unknown")  # states of which the reason stands below, all of it
_EXIT: Final = re.compile(r"exit code -?\d+(, no output)?( \([^()]*\))?(, no output)?")
_FOR_THE_MODEL: Final = re.compile(r"^The arguments of [^\n:]+: .*", re.MULTILINE | re.DOTALL)
_READS: Final = re.compile(r"\bread_artifact ([0-9a-f]{6,64}) (shows (?:it|them))\b")
_STATES: Final[dict[CardState, tuple[str, str]]] = {
    "prepared": ("prepared", "dim"),
    "waiting": ("waiting for you", "warning"),
    "running": ("running", "accent"),
    "done": ("✓", "good"),
    "failed": ("✗ failed", "bad"),
    "denied": ("✗ not allowed", "warning"),
    "cancelled": ("✗ cancelled", "dim"),
    "unknown": ("? may have run", "warning"),
    "skipped": ("✗ not carried out", "dim"),
}
_ITEMS: Final = {"open": ("☐ ", ""), "doing": ("▶ ", "strong"), "done": ("☑ ", "dim")}


def is_foldable(entry: ToolCard | CommandOutput) -> bool:
    """Say whether there is more to it than its row."""
    if isinstance(entry, CommandOutput):
        return is_diff(entry.text) and len(diff_rows(entry.text)) > LONG_DIFF
    return bool(entry.output or entry.detail)


def card_parts(entry: ToolCard, *, opened: bool) -> Iterator[Part]:
    """Give the parts of a call: folded as much as one wants to see in passing, opened all there is."""
    foldable = is_foldable(entry)
    below = list(_opened(entry) if opened else _in_passing(entry))
    mark = (_OPEN if below else _FOLDED) if foldable else _BARE
    yield Part(partial(card_row, entry, mark), rows=1, action="fold" if foldable else "")
    if entry.own:
        yield row(SafeText(f"  {OUTSIDE}"), "dim")
    yield from below


def card_row(entry: ToolCard, mark: SafeText, width: int) -> Sequence[Line]:
    """Return the one row of a call, behind its mark of two cells: what it does, what came of it, and how it stands."""
    right, style = _state(entry)
    room = max(width - cell_len(right) - 2, 1) - 2
    what = f"{'!' if entry.own else entry.name} {entry.effect}".strip()
    left = [Span(mark, "dim"), Span(foreign(what, room), "code")]
    rest = room - cell_len(left[1].text) - 3
    said = "" if entry.state in _WHY_BELOW else _news(entry)
    if said and rest >= min(cell_len(said[:_LEAST_SUMMARY]), _LEAST_SUMMARY):
        left += [Span(SafeText(" · "), "dim"), Span(foreign(said, rest), "dim")]
    return (spread(left, (Span(right, style),), width),)


def tail_rows(text: str, width: int) -> Sequence[Line]:
    """Return lines of output, each cut to the width."""
    rows = (foreign(expanded(each, TAB), width) for each in text.split("\n"))
    return tuple(cut_line(line(_INDENT, Span(each, "dim"), gutter=2), width) for each in rows)


def checklist_parts(entry: Checklist) -> Iterator[Part]:
    """Give a checklist: how much is done, and a row for each thing that there is to do."""
    done = sum(item.state == "done" for item in entry.items)
    yield row(SafeText(f"· checklist, {done} of {len(entry.items)} done"), "dim")
    yield Part(partial(_items, entry.items), rows=len(entry.items))


def command_parts(text: str, *, opened: bool) -> Iterator[Part]:
    """Give what a command printed: columns of its own, and where it is a diff, that as one reads it."""
    if is_diff(text):
        yield from _diff_parts(text, None if opened else LONG_DIFF)
    else:
        yield from chunks(text, 0, lambda each: partial(hanging, each))


def _opened(entry: ToolCard) -> Iterator[Part]:
    if is_diff(entry.detail):
        yield from _diff_parts(entry.detail, None, indent=2)
    elif entry.detail:
        yield from _texts(entry.detail, "")
    why, output = _told(entry)
    if why:
        yield from _texts(why, "warning" if entry.state in _WHY_BELOW else "")
    if is_diff(output):
        words = output if not is_diff(entry.detail) else output[: output.index("--- ")]  # the diff stands above
        yield from _diff_parts(words, None, indent=2) if words.strip() else ()
    elif output:
        yield from _texts(output, "dim")
    if entry.kept and f"/artifact {entry.artifact}" not in output:
        where = f"`/artifact {entry.artifact}` shows it" if entry.artifact else "the whole is kept as evidence"
        yield row(SafeText(f"  this is not all of it; {where}"), "dim")


def _in_passing(entry: ToolCard) -> Iterator[Part]:
    match entry.state:
        case "running":
            yield from _tail(entry.output, TAIL)
        case "failed" | "denied" | "unknown":
            why, output = _told(entry)
            if why and not (entry.exit_code and output):  # its row and its own words say it better
                yield Part(partial(plain, why, first=_INDENT), source=why)
            yield from _tail(output, FEW)
        case "done" if is_diff(entry.detail):
            yield from _diff_parts(entry.detail, DIFF_ROWS, indent=2)
        case _:
            if entry.own:
                yield from _tail(entry.output, OWN_LINES)


def _told(entry: ToolCard) -> tuple[str, str]:
    """Return why it ended so ("": its row says it), and what the model was given besides, as a person reads it."""
    news, summary = _news(entry), entry.summary.strip()
    output = entry.output
    if not entry.own:
        output = _READS.sub(r"`/artifact \1` \2", output)
        if entry.state in _WHY_BELOW:
            output = _FOR_THE_MODEL.sub("", output).rstrip()
    if not summary:
        return "", output
    if output.startswith(summary) and not output[len(summary) :][:1].isalnum():
        return news, output.removeprefix(summary).lstrip(" .,").lstrip("\n")
    if " ".join(output.split()).startswith(" ".join(summary.removesuffix(ELLIPSIS).split())):
        return ("", output) if entry.state not in _WHY_BELOW else (output, "")
    return news, output


def _news(entry: ToolCard) -> str:
    """Return what came of it, as far as its row does not say that anyway; "" where that is nothing."""
    said, about = " ".join(entry.summary.split()), " ".join(entry.effect.split())
    if said in _STATES[entry.state][0] or said in about:
        return ""
    if _EXIT.fullmatch(said) and (entry.exit_code or entry.state == "done"):
        return ""
    if about and said.startswith(about):
        return said.removeprefix(about).lstrip(" :,")
    return said


def _tail(output: str, most: int) -> Iterator[Part]:
    text = output.rstrip("\n")
    if not text:
        return
    ends = text.split("\n")
    if (left_out := len(ends) - most) > 0:
        yield row(SafeText(f"  … {left_out:,} more {'line' if left_out == 1 else 'lines'} above"), "dim")
    shown = "\n".join(ends[-most:])
    yield Part(partial(tail_rows, shown), source=shown, rows=min(len(ends), most))


def _texts(text: str, style: str) -> Iterator[Part]:
    return chunks(text.removesuffix("\n"), 0, lambda each: partial(plain, each, style=style, first=_INDENT))


def _diff_parts(text: str, most: int | None, *, indent: int = 0) -> Iterator[Part]:
    """Give a diff, of which at most so many rows are shown."""
    rows = diff_rows(text)
    cells = digits(rows)
    shown = rows if most is None or len(rows) <= most + 2 else rows[:most]
    for start in range(0, len(shown), CHUNK):
        piece = shown[start : start + CHUNK]
        yield Part(partial(_indented, piece, cells, indent), source="".join(f"{_source(each)}\n" for each in piece))
    if (left_out := len(rows) - len(shown)) > 0:
        yield row(SafeText(f"{' ' * indent}… {left_out:,} more lines of the diff: ctrl+o"), "dim", action="fold")


def _indented(rows: Sequence[DiffRow], number_cells: int, indent: int, width: int) -> Sequence[Line]:
    drawn = drawn_rows(rows, number_cells, max(width - indent, 1))
    if not indent or width <= indent:
        return drawn
    return tuple(Line((_INDENT, *each.spans), each.gutter + indent, each.continues) for each in drawn)


def _source(each: DiffRow) -> str:
    return {"removed": "-", "added": "+", "same": " "}.get(each.kind, "") + each.text


def _items(items: Sequence[ChecklistItem], width: int) -> Sequence[Line]:
    rows: list[Line] = []
    for item in items:
        mark, style = _ITEMS[item.state]
        rows.append(cut_line(line(_INDENT, Span(SafeText(mark), style), Span(foreign(item.text, width), style)), width))
    return tuple(rows)


def _state(entry: ToolCard) -> tuple[SafeText, str]:
    words, style = _STATES[entry.state]
    match entry.state:
        case "running":
            return SafeText(f"{words}{_running(entry.seconds)}"), style
        case "done":
            return SafeText(f"{words}{_took(entry.milliseconds) or ' done'}"), style
        case "failed" if entry.exit_code:
            return SafeText(f"✗ exit {entry.exit_code}{_took(entry.milliseconds)}"), style
        case "failed" | "cancelled":
            return SafeText(f"{words}{_took(entry.milliseconds)}"), style
        case _:
            return SafeText(words), style


def _running(seconds: int) -> str:
    if seconds < 1:
        return ""
    return f" {seconds} s" if seconds < _MINUTE else f" {seconds // _MINUTE} min {seconds % _MINUTE:02} s"


def _took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f" {milliseconds} ms" if milliseconds < _A_SECOND else f" {milliseconds / _A_SECOND:,.1f} s"
