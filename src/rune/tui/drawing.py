"""What each entry of a transcript looks like: parts, which are cached and copied as one, and the lines of a part.

    you    fix the failing test                   from 56 cells on, the gutter says who speaks;

    rune   ▸ thought, 312 words                   below that it is two cells: `> ` and `· `
           I'll look at the test first.

Knows no widget and no colour. Texts are made safe here, at the last moment: a part keeps them as they came.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, assert_never

import msgspec
from rich.cells import cell_len

from rune.records.turns import StopReason
from rune.text.safe_text import SafeText, safe_text
from rune.tui.cards import card_row, tail_rows
from rune.tui.endings import ending_words
from rune.tui.fit import cut_line, flowing, foreign
from rune.tui.hanging import hanging
from rune.tui.lines import Line, Span, line
from rune.tui.long_texts import head_of, rest_words
from rune.tui.markdown.wrapping import plain
from rune.tui.transcript_state import (
    Answer,
    CommandOutput,
    Ending,
    Entry,
    Said,
    Thought,
    Told,
    ToolCard,
)

if TYPE_CHECKING:
    from rune.tui.markdown.blocks import Block, Growing

Speaker = Literal["you", "rune", ""]
Action = Literal["fold", "copy", ""]

WIDE: Final = 56  # cells from which the gutter has room for names
NAMES_GUTTER, MARKS_GUTTER = 7, 2
CHUNK: Final = 40  # lines of plain text in a part: what is open at the end is laid out anew when more comes
TAIL: Final = 8  # lines of a tool's output that are shown

_NAMES: Final[dict[Speaker, SafeText]] = {"you": SafeText("you"), "rune": SafeText("rune"), "": SafeText("")}
_MARKS: Final[dict[Speaker, SafeText]] = {"you": SafeText(">"), "rune": SafeText("·"), "": SafeText("")}
_FOLDED, _OPEN = SafeText("▸ "), SafeText("▾ ")
_NEWS, _FAILURE = SafeText("· "), SafeText("! ")
_INDENT: Final = Span(SafeText("  "))
_BROKE_OFF: Final = SafeText("… not complete")
_CAME_FROM: Final = {
    "piped": "from a pipe",
    "model": "from a model",
    "tool": "from a tool",
    "file": "from a file",
    "web": "from the web",
    "imported": "imported",
}


class Part(msgspec.Struct, frozen=True, eq=False):
    """A piece of an entry. `source` is what is copied with the whole of it, and stands at `start` in the entry's
    text ("": it is only shown); `body` draws it in so many cells; `action` is what a click on its first line does.
    """

    body: Callable[[int], Sequence[Line]]
    source: str = ""
    start: int = 0
    speaker: Speaker = ""
    above: int = 0  # blank lines above it
    rows: int | None = None  # lines of the body where they are known before it is drawn
    block: "Block | None" = None
    action: Action = ""
    flush: bool = False  # columns of its own: it stands as far to the left as it may


class Drawn(msgspec.Struct, frozen=True, eq=False):
    """An entry as parts; whoever has it gives it back when the entry changes, and what is still true stays."""

    entry: Entry
    speaker: Speaker
    above: int
    opened: bool
    parts: tuple[Part, ...]
    growing: "Growing | None" = None  # of an answer: where its Markdown may be cut


def gutter(width: int) -> int:
    """Return the cells before the text in so many cells of width."""
    if width >= WIDE:
        return NAMES_GUTTER
    return MARKS_GUTTER if width > MARKS_GUTTER else 0


def lines_of(part: Part, width: int) -> tuple[Line, ...]:
    """Draw a part, the blank lines above it and the gutter included; no line is wider than `width` (at least 1)."""
    cells = min(gutter(width), MARKS_GUTTER) if part.flush else gutter(width)
    blank = Span(SafeText(" " * cells))
    drawn = [line()] * part.above
    for number, each in enumerate(part.body(max(width - cells, 1))):
        head = _mark(part.speaker, cells) if number == 0 else blank
        spans = (head, *each.spans) if cells else each.spans
        drawn.append(Line(spans, each.gutter + cells, each.continues))
    return tuple(drawn)


def guess(part: Part, width: int) -> int:
    """Return about how many lines a part will take."""
    body = part.rows if part.rows is not None else _guessed(part.source, width)
    return part.above + body


def guess_entry(entry: Entry, before: Entry | None, width: int) -> int:
    """Return about how many lines an entry will take; costs no more than counting its line ends."""
    above = _above(entry, before)
    match entry:
        case Said():
            head = head_of(entry.text)
            return above + _guessed(entry.text[:head], width) + (head < len(entry.text))
        case Answer():
            return above + _guessed(entry.text, width)
        case CommandOutput():
            return above + 1 + _guessed(entry.text, width)
        case Told() | Ending():
            return above + 1 + bool(entry.hint)
        case Thought() | ToolCard():
            return above + 1
        case _ as never:  # pragma: no cover  # a forgotten kind is an error of types
            assert_never(never)


def draw(entry: Entry, before: Entry | None, *, opened: bool = False, known: Drawn | None = None) -> Drawn:
    """Return the parts of an entry that stands after `before`. `known` is what was drawn of an earlier state of it:
    parts that need no change are the same objects.
    """
    above, speaker = _above(entry, before), _speaker(entry)
    if speaker == "rune" and before is not None and _speaker(before) == speaker:
        speaker = ""
    if known is not None and (known.speaker, known.above, known.opened) != (speaker, above, opened):
        known = None
    if known is not None and known.entry == entry:
        return known
    growing = _growing(entry, known)
    parts = tuple(_parts(entry, opened, known, growing))
    if parts and (known is None or not known.parts or known.parts[0] is not parts[0]):
        parts = (msgspec.structs.replace(parts[0], speaker=speaker, above=above), *parts[1:])
    return Drawn(entry, speaker, above, opened, parts, growing)


def foldable(entry: Entry) -> bool:
    """Say whether there is more to an entry than is shown at first."""
    match entry:
        case Thought():
            return True
        case ToolCard():
            return bool(entry.output)
        case Said():
            return head_of(entry.text) < len(entry.text)
        case _:
            return False


def grows(entry: Entry) -> bool:
    """Say whether more may come to an entry."""
    if isinstance(entry, Answer | Thought):
        return entry.running
    return isinstance(entry, ToolCard) and entry.state == "running"


def source_of(entry: Entry) -> str:
    """Return what a person gets who copies a whole entry; "" for what is only shown."""
    match entry:
        case Answer() | Said() | CommandOutput():
            return entry.text
        case Told() | Ending():
            return "\n".join(text for text in (_words(entry), entry.hint) if text)
        case Thought() | ToolCard():
            return ""
        case _ as never:  # pragma: no cover
            assert_never(never)


def _parts(entry: Entry, opened: bool, known: Drawn | None, growing: "Growing | None") -> Iterator[Part]:
    match entry:
        case Said():
            if entry.provenance != "owner":
                yield _row(SafeText(_CAME_FROM[entry.provenance]), "dim")
            yield from _said(entry.text, opened, known)
        case Answer():
            yield from _answer(entry, known, growing)
        case Thought():
            yield from _thought(entry, opened, known)
        case ToolCard():
            yield from _card(entry, opened)
        case Told():
            style = "dim" if entry.tier is None else "warning"
            yield Part(partial(_told, _words(entry), entry.hint, style), source=source_of(entry))
        case Ending():
            styles = {StopReason.FAILED: "bad", StopReason.BUG: "bad", StopReason.CANCELLED: "dim"}
            style = styles.get(entry.reason, "warning")
            yield Part(partial(_told, _words(entry), entry.hint, style), source=source_of(entry))
        case CommandOutput():
            yield _row(safe_text(entry.command, newlines=False, tabs=False), "command")
            if not entry.ok:
                yield msgspec.structs.replace(_row(SafeText("! this did not work"), "bad"), flush=True)
            # What a command prints is columns of its own, and what is said of it stands at the same edge.
            chunks = _chunks(entry.text, 0, lambda text: partial(hanging, text))
            yield from (msgspec.structs.replace(chunk, flush=True) for chunk in chunks)
        case _ as never:  # pragma: no cover
            assert_never(never)


def _growing(entry: Entry, known: Drawn | None) -> "Growing | None":
    if not isinstance(entry, Answer):
        return None
    from rune.tui.markdown.blocks import Growing  # noqa: PLC0415 - 3 ms that an app without an answer does not pay

    return known.growing if known is not None and known.growing is not None else Growing()


def _answer(entry: Answer, known: Drawn | None, growing: "Growing | None") -> Iterator[Part]:
    from rune.tui.markdown.blocks import Code, Growing  # noqa: PLC0415 - 3 ms that an app without an answer does not pay
    from rune.tui.markdown.render import render  # noqa: PLC0415 - 3 ms that an app without an answer does not pay

    growing = growing or Growing()
    held = growing.grow(entry.text, ended=not entry.running)
    old = known.parts if known is not None else ()
    yield from old[:held]
    for number, block in enumerate((*growing.settled[held:], *growing.open), held):
        source = entry.text[block.start : block.end]
        was = old[number] if number < len(old) else None
        if was is not None and was.block == block and was.source == source:
            yield was
            continue
        yield Part(
            partial(render, source, kind=block.kind),
            source=source,
            start=block.start,
            above=1 if block.gap and number else 0,
            block=block,
            action="copy" if isinstance(block.kind, Code) and block.kind.opens else "",
        )
    if not entry.complete and not entry.running:
        yield _row(_BROKE_OFF, "warning")


def _said(text: str, opened: bool, known: Drawn | None) -> Iterator[Part]:
    head = head_of(text)
    if head == len(text):
        yield from _chunked(text, "you", known)
    elif opened:
        yield from _chunked(text, "you", known)
        yield _row(SafeText("▴ fold it again"), "dim", action="fold")
    else:
        shown = text[:head]
        yield Part(partial(plain, shown.removesuffix("\n"), style="you"), source=shown)
        yield _row(SafeText(f"… {rest_words(text, head)}"), "dim", action="fold")


def _thought(entry: Thought, opened: bool, known: Drawn | None) -> Iterator[Part]:
    fold = _OPEN if opened else _FOLDED
    if entry.running and not opened:
        yield Part(partial(_last_words, entry.text), rows=1, action="fold")
        return
    if entry.running:
        yield _row(SafeText(fold + "thinking …"), "thinking", action="fold")
    else:
        count = len(entry.text.split())
        yield _row(SafeText(f"{fold}thought, {count:,} {'word' if count == 1 else 'words'}"), "thinking", action="fold")
    if opened:
        yield from _chunked(entry.text, "thinking", known)
        yield Part(lambda _: (line(),), rows=1)


def _card(entry: ToolCard, opened: bool) -> Iterator[Part]:
    shown = entry.output if opened or entry.state in {"running", "failed"} else ""
    mark = (_OPEN if shown else _FOLDED) if entry.output else _NEWS
    yield Part(partial(card_row, entry, mark), rows=1, action="fold" if entry.output else "")
    if shown:
        ends = shown.rstrip("\n").split("\n")
        left_out = len(ends) - TAIL
        if left_out > 0:
            yield _row(SafeText(f"  … {left_out:,} more {'line' if left_out == 1 else 'lines'} above"), "dim")
        text = "\n".join(ends[-TAIL:])
        yield Part(partial(tail_rows, text), source=text, rows=min(len(ends), TAIL))


def _words(entry: Told | Ending) -> str:
    if isinstance(entry, Told):
        return f"{_NEWS if entry.tier is None else _FAILURE}{entry.text}"
    mark = _FAILURE if entry.reason in {StopReason.FAILED, StopReason.BUG} else _NEWS
    return mark + ending_words(entry)


def _told(words: str, hint: str, style: str, width: int) -> Sequence[Line]:
    hints = plain(hint, width, "dim", first=_INDENT) if hint else ()
    return (*plain(words, width, style), *hints)


def _last_words(text: str, width: int) -> Sequence[Line]:
    """Draw the end of what is being thought: only as much of the text is read as could be shown."""
    label = SafeText(_FOLDED + "thinking … ")
    room = width - cell_len(label)
    if room <= 0:
        return (cut_line(line(Span(label, "thinking")), width),)
    words = text[-room:].partition(" ")[2] if len(text) > room else text
    return (line(Span(label, "thinking"), Span(flowing(words, room), "thinking")),)


def _row(text: SafeText, style: str, *, action: Action = "") -> Part:
    return Part(lambda width: (line(Span(foreign(text, width), style)),), rows=1, action=action)


def _chunked(text: str, style: str, known: Drawn | None) -> Iterator[Part]:
    """Yield plain text in chunks; those that are known and cannot change are the same."""
    kept: list[Part] = []
    start = 0
    if known is not None and isinstance(known.entry, Said | Thought) and text.startswith(known.entry.text):
        kept = [part for part in known.parts if part.source]
        if kept and len(text) > len(known.entry.text):
            start = kept.pop().start
        elif kept:
            yield from kept
            return
    yield from kept
    yield from _chunks(text, start, lambda chunk: partial(plain, chunk, style=style))


def _chunks(text: str, start: int, body: Callable[[str], Callable[[int], Sequence[Line]]]) -> Iterator[Part]:
    while start < len(text):
        end = start - 1
        for _ in range(CHUNK):
            end = text.find("\n", end + 1)
            if end < 0:
                end = len(text)
                break
        yield Part(body(text[start:end]), source=text[start : end + 1], start=start)
        start = end + 1


def _mark(speaker: Speaker, cells: int) -> Span:
    text = (_NAMES if cells == NAMES_GUTTER else _MARKS)[speaker]
    return Span(SafeText(text.ljust(cells)), speaker)


def _speaker(entry: Entry) -> Speaker:
    match entry:
        case Said() | CommandOutput():
            return "you"
        case Answer() | Thought() | ToolCard():
            return "rune"
        case Told() | Ending():
            return ""
        case _ as never:  # pragma: no cover
            assert_never(never)


def _above(entry: Entry, before: Entry | None) -> int:
    """Return the blank lines above an entry: none between rows that belong together."""
    if before is None:
        return 0
    together = isinstance(before, Thought | ToolCard) and isinstance(entry, Thought | ToolCard)
    return 0 if together or (isinstance(before, Thought) and isinstance(entry, Answer)) else 1


def _guessed(text: str, width: int) -> int:
    """Return about how many lines a text takes: thousands are guessed before anything is seen, so none is read."""
    room = max(width - gutter(width), 1)
    return max(text.count("\n", 0, -1) + 1, -(-len(text) // room))
