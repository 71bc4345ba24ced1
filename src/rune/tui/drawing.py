"""What each entry of a transcript looks like: parts, which are cached and copied as one, and the lines of a part.

    you    fix the failing test                   from 56 cells on, the gutter says who speaks;

    rune   ▸ thought, 312 words                   below that it is two cells: `> ` and `· `
           I'll look at the test first.

Knows no widget and no colour. Texts are made safe here, at the last moment: a part keeps them as they came.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, assert_never

import msgspec
from rich.cells import cell_len

from rune.records.turns import StopReason
from rune.text.safe_text import SafeText, safe_text
from rune.tui.cards import card_parts, checklist_parts, command_parts, is_foldable
from rune.tui.endings import ending_words
from rune.tui.entries import (
    Answer,
    Checklist,
    CommandOutput,
    Ending,
    Entry,
    Said,
    Thought,
    Told,
    ToolCard,
)
from rune.tui.fit import cut_line, flowing
from rune.tui.lines import Line, Span, line
from rune.tui.long_texts import head_of, rest_words
from rune.tui.markdown.wrapping import plain
from rune.tui.parts import Part, Speaker, chunks, gutter, lines_of, row

if TYPE_CHECKING:
    from rune.tui.markdown.blocks import Growing

__all__ = (
    "Drawn",
    "Fold",
    "Part",
    "draw",
    "foldable",
    "grows",
    "guess",
    "guess_entry",
    "lines_of",
    "source_of",
)

Fold = Literal["words", "tools", ""]  # what opens it: thinking and long texts by one key, what tools did by another

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


class Drawn(msgspec.Struct, frozen=True, eq=False):
    """An entry as parts; whoever has it gives it back when the entry changes, and what is still true stays."""

    entry: Entry
    speaker: Speaker
    above: int
    opened: bool
    parts: tuple[Part, ...]
    growing: "Growing | None" = None  # of an answer: where its Markdown may be cut


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
        case Checklist():
            return above + 1 + len(entry.items)
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


def foldable(entry: Entry) -> Fold:
    """Say what opens an entry; "" where all there is of it is shown at first."""
    match entry:
        case Thought():
            return "words"
        case ToolCard() | CommandOutput():
            return "tools" if is_foldable(entry) else ""
        case Said():
            return "words" if head_of(entry.text) < len(entry.text) else ""
        case _:
            return ""


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
        case ToolCard():
            return "\n".join(text for text in (f"{entry.name} {entry.effect}".strip(), entry.output) if text)
        case Thought() | Checklist():
            return ""
        case _ as never:  # pragma: no cover
            assert_never(never)


def _parts(entry: Entry, opened: bool, known: Drawn | None, growing: "Growing | None") -> Iterator[Part]:
    match entry:
        case Said():
            if entry.provenance != "owner":
                yield row(SafeText(_CAME_FROM[entry.provenance]), "dim")
            yield from _said(entry.text, opened, known)
        case Answer():
            yield from _answer(entry, known, growing)
        case Thought():
            yield from _thought(entry, opened, known)
        case ToolCard():
            yield from card_parts(entry, opened=opened)
        case Checklist():
            yield from checklist_parts(entry)
        case Told() | Ending():
            yield Part(partial(_told, _words(entry), entry.hint, _style(entry)), source=source_of(entry))
        case CommandOutput():
            yield row(safe_text(entry.command, newlines=False, tabs=False), "command")
            if not entry.ok:
                yield msgspec.structs.replace(row(SafeText("! this did not work"), "bad"), flush=True)
            # What a command prints is columns of its own, and what is said of it stands at the same edge.
            printed = command_parts(entry.text, opened=opened)
            yield from (msgspec.structs.replace(part, flush=True) for part in printed)
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
        yield row(_BROKE_OFF, "warning")


def _said(text: str, opened: bool, known: Drawn | None) -> Iterator[Part]:
    head = head_of(text)
    if head == len(text):
        yield from _chunked(text, "you", known)
    elif opened:
        yield from _chunked(text, "you", known)
        yield row(SafeText("▴ fold it again"), "dim", action="fold")
    else:
        shown = text[:head]
        yield Part(partial(plain, shown.removesuffix("\n"), style="you"), source=shown)
        yield row(SafeText(f"… {rest_words(text, head)}"), "dim", action="fold")


def _thought(entry: Thought, opened: bool, known: Drawn | None) -> Iterator[Part]:
    fold = _OPEN if opened else _FOLDED
    if entry.running and not opened:
        yield Part(partial(_last_words, entry.text), rows=1, action="fold")
        return
    if entry.running:
        yield row(SafeText(fold + "thinking …"), "thinking", action="fold")
    else:
        count = len(entry.text.split())
        yield row(SafeText(f"{fold}thought, {count:,} {'word' if count == 1 else 'words'}"), "thinking", action="fold")
    if opened:
        yield from _chunked(entry.text, "thinking", known)
        yield Part(lambda _: (line(),), rows=1)


def _words(entry: Told | Ending) -> str:
    if isinstance(entry, Told):
        return f"{_NEWS if entry.tier is None else _FAILURE}{entry.text}"
    mark = _FAILURE if entry.reason in {StopReason.FAILED, StopReason.BUG} else _NEWS
    return mark + ending_words(entry)


def _style(entry: Told | Ending) -> str:
    if isinstance(entry, Told):
        return "dim" if entry.tier is None else "warning"
    styles = {StopReason.FAILED: "bad", StopReason.BUG: "bad", StopReason.CANCELLED: "dim"}
    return styles.get(entry.reason, "warning")


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
    yield from chunks(text, start, lambda chunk: partial(plain, chunk, style=style))


def _speaker(entry: Entry) -> Speaker:
    match entry:
        case Said() | CommandOutput():
            return "you"
        case ToolCard() if entry.own:
            return "you"
        case Answer() | Thought() | ToolCard() | Checklist():
            return "rune"
        case Told() | Ending():
            return ""
        case _ as never:  # pragma: no cover
            assert_never(never)


def _above(entry: Entry, before: Entry | None) -> int:
    """Return the blank lines above an entry: none between rows that belong together."""
    if before is None:
        return 0
    together = _is_work(before) and _is_work(entry)
    return 0 if together or (isinstance(before, Thought) and isinstance(entry, Answer)) else 1


def _is_work(entry: Entry) -> bool:
    return isinstance(entry, Thought | Checklist) or (isinstance(entry, ToolCard) and not entry.own)


def _guessed(text: str, width: int) -> int:
    """Return about how many lines a text takes: thousands are guessed before anything is seen, so none is read."""
    room = max(width - gutter(width), 1)
    return max(text.count("\n", 0, -1) + 1, -(-len(text) // room))
