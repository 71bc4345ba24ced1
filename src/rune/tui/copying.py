"""What a person copies who selected lines of a transcript: the source of what is selected whole, else what is seen."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual.selection import Selection

from rune.text.safe_text import SafeText
from rune.tui.drawing import Part, source_of
from rune.tui.line_log import LineLog, Spot
from rune.tui.lines import Line, Span, copied, without_cells


class End(NamedTuple):
    """One end of a selection: before a character of a line, the gutter counted."""

    spot: Spot
    character: int


def copied_from(log: LineLog, first: End, last: End) -> str:
    """Return the text from one end to the other.

    Entries and parts between the ends are not drawn for it; the gutter is left out, what was wrapped is one line.
    """
    texts: list[str] = []
    for entry in range(first.spot.entry, min(last.spot.entry + 1, len(log.entries))):
        if first.spot.entry < entry < last.spot.entry:
            texts.append(source_of(log.entries[entry]))
        else:
            texts.append(_of_entry(log, entry, first, last))
    return "\n\n".join(text for text in texts if text)


def copied_selection(log: LineLog, selection: Selection) -> str:
    """Return what is copied of a selection; where it has no end, that is the text's."""
    start, end = selection
    first = End(Spot(), 0) if start is None else End(Spot.of(start.y), start.x)
    if end is not None:
        return copied_from(log, first, End(Spot.of(end.y), end.x))
    last = len(log.entries) - 1
    return copied_from(log, first, whole_entry(log, Spot(last))[1]) if last >= 0 else ""


def nearest_code(log: LineLog, line: int) -> str | None:
    """Return the code block that begins at a line or nearest above it, None where there is none."""
    last = log.at(line)
    for entry in range(last.entry if last is not None else -1, -1, -1):
        parts = log.parts(entry)
        end = last.part + 1 if last is not None and entry == last.entry else len(parts)
        for part in range(end - 1, -1, -1):
            if parts[part].action == "copy":
                return code_from(parts, part)
    return None


def whole_part(log: LineLog, spot: Spot) -> tuple[End, End]:
    """Return the ends of the part that has this line."""
    lines = log.lines(spot.entry, spot.part)
    bottom = max(len(lines) - 1, 0)
    last = lines[bottom].text if lines else ""
    return End(spot._replace(line=0), 0), End(spot._replace(line=bottom), len(last))


def whole_entry(log: LineLog, spot: Spot) -> tuple[End, End]:
    """Return the ends of the entry that has this line."""
    last = max(len(log.parts(spot.entry)) - 1, 0)
    return whole_part(log, Spot(spot.entry, 0))[0], whole_part(log, Spot(spot.entry, last))[1]


def code_from(parts: Sequence[Part], number: int) -> str:
    """Return the code whose first part is this one: all its parts, without fences and indentation."""
    from rune.tui.markdown.blocks import Code  # noqa: PLC0415 - 3 ms that an app without an answer does not pay
    from rune.tui.markdown.render import code_text  # noqa: PLC0415 - 3 ms that an app without an answer does not pay

    code: list[str] = []
    for part in parts[number:]:
        kind = part.block.kind if part.block is not None else None
        if not isinstance(kind, Code) or (code and kind.opens):
            break
        if code and not kind.continues:
            code.append("\n")
        code.append(code_text(part.source, kind))
        if kind.closed:
            break
    return "".join(code).removesuffix("\n")


class _Piece(NamedTuple):
    """What is copied of one part. `whole`: all of it; `gap` is what parts its text from the one before."""

    part: Part
    whole: bool
    text: str
    gap: str


def _of_entry(log: LineLog, entry: int, first: End, last: End) -> str:
    parts = log.parts(entry)
    from_part = first.spot.part if first.spot.entry == entry else 0
    to_part = last.spot.part if last.spot.entry == entry else len(parts) - 1
    pieces = list(_of_parts(log, entry, range(from_part, min(to_part + 1, len(parts))), (first, last)))
    if len(pieces) == len(parts) and all(piece.whole for piece in pieces):
        return source_of(log.entries[entry])
    text = ""
    before: _Piece | None = None
    for piece in pieces:
        if not piece.text:
            continue
        joined = before is not None and before.whole and piece.whole
        # Parts that are whole stand next to each other as they do in the source.
        text = text + piece.text if joined or not text else text.rstrip("\n") + piece.gap + piece.text
        before = piece
    return text.strip("\n")


def _of_parts(log: LineLog, entry: int, parts: range, ends: tuple[End, End]) -> Iterator[_Piece]:
    first, last = ends
    for number in parts:
        part = log.parts(entry)[number]
        begins, stops = first.spot[:2] == (entry, number), last.spot[:2] == (entry, number)
        lines = log.lines(entry, number) if begins or stops else ()
        gap = "\n\n" if part.above else "\n"
        if not lines or _whole(lines, part.above, first if begins else None, last if stops else None):
            yield _Piece(part, True, part.source, gap)
            continue
        start = first.spot.line if begins else 0
        cut = list(lines[start : last.spot.line + 1 if stops else len(lines)])
        if stops and cut:
            cut[-1] = _cut(cut[-1], 0, last.character)
        if begins and cut:
            cut[0] = _cut(cut[0], first.character, len(cut[0].text))
        if cut and cut[0].continues is not None:
            gap = cut[0].continues
        yield _Piece(part, False, copied(cut).strip("\n"), gap)


def _whole(lines: tuple[Line, ...], above: int, first: End | None, last: End | None) -> bool:
    head = lines[min(above, len(lines) - 1)]
    indent = len(head.text) - len(without_cells(head.text, head.gutter))
    if first is not None and (first.spot.line, first.character) > (above, indent):
        return False
    return last is None or (last.spot.line, last.character) >= (len(lines) - 1, len(lines[-1].text.rstrip()))


def _cut(whole: Line, start: int, end: int) -> Line:
    """Return a line of the characters from `start` to before `end`, the gutter counted but not part of it."""
    text = without_cells(whole.text, whole.gutter)
    gutter = len(whole.text) - len(text)
    kept = text[max(start - gutter, 0) : max(end - gutter, 0)]
    return Line((Span(SafeText(kept)),), 0, whole.continues)
