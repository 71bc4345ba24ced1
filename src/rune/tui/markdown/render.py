"""Markdown as lines of the terminal: a walk over the parser's tokens.

Nothing is fetched, no HTML is acted on, links show where they go. Never raises, whatever the text.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, assert_never

from rune.text.safe_text import SafeText
from rune.tui.lines import Line, Span
from rune.tui.markdown import code, table
from rune.tui.markdown.blocks import PROSE, Code, Inside, Kind, Prose, Rest, Rows, split
from rune.tui.markdown.inline import joined, pieces
from rune.tui.markdown.marks import dedented
from rune.tui.markdown.wrapping import cells, hung, plain, wrapped

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# What is deeper is lost to the parser, so such text is shown as it stands.
MOST_LEVELS: Final = 48
# The parser's time grows with the square of these; more of them in one block is no writing.
_MOST_BRACKETS: Final = 300
_MOST_PIPES: Final = 100

# A container takes no more room where fewer cells would be left for what is in it.
_LEAST_ROOM: Final = 4

_LEADING_BLANKS = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BAR: Final = Span(SafeText("▌ "), "quote")
_RULE: Final = "─"


def document(source: str, width: int) -> tuple[Line, ...]:
    """Return a whole text as lines of at most `width` cells."""
    out: list[Line] = []
    for block in split(source):
        if block.gap:
            out.append(Line())
        out += render(source[block.start : block.end], width, block.kind)
    return tuple(out)


def render(source: str, width: int, kind: Kind = PROSE) -> tuple[Line, ...]:
    """Return the source of one block as lines of at most `width` cells (at least one). Without its gap."""
    width = max(1, width)
    match kind:
        case Prose():
            return tuple(_prose(source, width, number=kind.number))
        case Rest():
            return tuple(_rest(source, width, kind.joint))
        case Inside():
            text = "\n".join([dedented(line, kind.indent) for line in _LINE_END.split(source)])
            margin = _room(width, kind.margin)
            return tuple(_beside(_prose(text, width - margin), Span(SafeText(" " * margin)), margin))
        case Rows():
            return tuple(_prose(kind.head + source, width, headed=False))
        case Code():
            return tuple(_code(source, width, kind))
        case _:
            assert_never(kind)


def code_text(source: str, kind: Code) -> str:
    """Return the code of a block as it was written: without fences and the indent they stand in."""
    lines = _LINE_END.split(source)
    if kind.opens:
        while len(lines) > 1 and not lines[0].strip(" \t"):
            del lines[0]
        if kind.fenced:
            del lines[0]
    if kind.closed or not kind.fenced:
        while lines and not lines[-1].strip(" \t"):
            lines.pop()
        if kind.closed:
            lines = lines[:-1]
    elif lines and not lines[-1].strip(" \t"):
        lines.pop()
    first = lines[:1] if kind.continues else []
    return "\n".join([*first, *(dedented(line, kind.indent) for line in lines[len(first) :])])


def _code(source: str, width: int, kind: Code) -> list[Line]:
    text = code_text(source, kind)
    if not text and not kind.opens:
        return []  # no more than the closing fence
    margin = _room(width, kind.margin)
    lines = code.drawn(text, kind.language, width - margin, named=kind.opens, continues=kind.continues)
    indent = Span(SafeText(" " * margin))
    return hung(lines, indent, indent)


def _prose(source: str, width: int, *, number: int | None = None, headed: bool = True) -> list[Line]:
    begin = _LEADING_BLANKS.match(source)
    source = (source[begin.end() :] if begin else source).rstrip(" \t\r\n")
    if not source:
        return []
    tokens = _parsed(source, inline=False)
    if tokens is None:
        return list(plain(source, width))
    return _Walk(tokens, _LINE_END.split(source), number=number, headed=headed).blocks(0, len(tokens), width, "")


def _rest(source: str, width: int, joint: str) -> list[Line]:
    tokens = _parsed(source.strip(" \t\r\n"), inline=True)
    if tokens is None:
        lines = list(plain(source.rstrip(), width))
    else:
        lines = [line for token in tokens for line in _flowing(token, width, "")]
    if lines:
        lines[0] = lines[0]._replace(continues=joint)
    return lines


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes its time, and the first frame needs none of it

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_LEVELS})
    return parser.enable(["table", "strikethrough"]).disable(["reference", "html_block", "html_inline"])


def _parsed(source: str, *, inline: bool) -> "list[Token] | None":
    """Return the tokens; None: this is shown as it stands."""
    if source.count("[") > _MOST_BRACKETS:
        return None
    if source.count("|") > _MOST_PIPES and any(line.count("|") > _MOST_PIPES for line in _LINE_END.split(source)):
        return None
    try:
        tokens = _parser().parseInline(source) if inline else _parser().parse(source)
    except (ArithmeticError, LookupError, ValueError, RuntimeError):  # foreign code, and RecursionError is among them
        return None
    return None if any(token.level >= MOST_LEVELS - 1 for token in tokens) else tokens


def _room(width: int, wanted: int) -> int:
    """Return `wanted` if that leaves room for text, else 0."""
    return wanted if width - wanted >= _LEAST_ROOM else 0


def _flowing(token: "Token", width: int, style: str) -> list[Line]:
    return [line for each in pieces(token, style) for line in wrapped(each, width)]


def _beside(lines: Sequence[Line], mark: Span, margin: int) -> list[Line]:
    """Return the lines of a list item: the mark before the first, and the others as far in.

    The mark is copied, and so is the indent of what has a line of its own: it says what belongs to the item.
    """
    indent = Span(SafeText(" " * margin))
    out: list[Line] = []
    for number, line in enumerate(lines):
        if not line.spans and number:
            out.append(line)
            continue
        first = indent if number else mark
        own = line.continues is None and not line.gutter
        spans = (first, *line.spans) if first.text else line.spans
        out.append(Line(spans, 0 if own else margin + line.gutter, line.continues))
    return out


class _Walk:
    """One block's tokens and the lines they came from."""

    def __init__(self, tokens: "Sequence[Token]", source: Sequence[str], *, number: int | None, headed: bool) -> None:
        self._tokens = tokens
        self._source = source
        self._number = number  # of the first item of the first list
        self._headed = headed

    def blocks(self, start: int, end: int, width: int, style: str) -> list[Line]:
        """Return the lines of the blocks in `tokens[start:end]`, with blank ones where the source has them."""
        out: list[Line] = []
        position = start
        while position < end:
            token = self._tokens[position]
            close = self._close(position)
            if out and token.map and self._blank_before(token.map[0]):
                out.append(Line())
            out += self._block(token, position, close, width, style)
            position = close + 1
        return out

    def _close(self, position: int) -> int:
        token = self._tokens[position]
        if token.nesting != 1:
            return position
        level = token.level
        position += 1
        while self._tokens[position].level != level:
            position += 1
        return position

    def _blank_before(self, line: int) -> bool:
        return line > 0 and not self._source[line - 1].strip("> \t")

    def _block(  # noqa: PLR0911  # a return a kind
        self, token: "Token", position: int, close: int, width: int, style: str
    ) -> list[Line]:
        match token.type:
            case "paragraph_open":
                return _flowing(self._tokens[position + 1], width, style)
            case "heading_open":
                return _flowing(self._tokens[position + 1], width, joined(style, "heading strong"))
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, position, close, width, style)
            case "blockquote_open":
                return self._quote(position, close, width, style)
            case "table_open":
                return table.drawn(self._table(position, close, style), width, headed=self._headed)
            case "fence" | "code_block":
                return code.drawn(token.content.removesuffix("\n"), token.info, width)
            case "hr":
                return [Line((Span(SafeText(_RULE * width), "rule"),))]
            case _:
                return list(plain(token.content, width, style)) if token.content else []

    def _quote(self, position: int, close: int, width: int, style: str) -> list[Line]:
        style = style if "quote" in style.split() else joined(style, "quote")
        if not _room(width, cells(_BAR.text)):
            return self.blocks(position + 1, close, width, style)
        return hung(self.blocks(position + 1, close, width - cells(_BAR.text), style), _BAR, _BAR)

    def _list(self, token: "Token", position: int, close: int, width: int, style: str) -> list[Line]:
        number: int | None = None
        if token.type == "ordered_list_open":
            number = int(token.attrs.get("start", 1)) if self._number is None else self._number
        self._number = None
        out: list[Line] = []
        position += 1
        while position < close:
            item, end = self._tokens[position], self._close(position)
            if out and item.map and self._blank_before(item.map[0]):
                out.append(Line())
            mark = Span(SafeText("- " if number is None else f"{number}{token.markup} "), "bullet")
            out += self._item(mark, position, end, width, style)
            number = None if number is None else number + 1
            position = end + 1
        return out

    def _item(self, mark: Span, position: int, close: int, width: int, style: str) -> list[Line]:
        margin = cells(mark.text)
        if _room(width, margin):
            lines = self.blocks(position + 1, close, width - margin, style)
            return _beside(lines or [Line()], mark, margin)
        return wrapped([mark], width) + self.blocks(position + 1, close, width, style)

    def _table(self, position: int, close: int, style: str) -> table.Table:
        aligns: list[table.Align] = []
        rows: list[list[table.Cell]] = []
        for index in range(position, close):
            token = self._tokens[index]
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "th_open":
                aligns.append(_align(token))
            elif token.type == "inline":
                rows[-1].append(pieces(token, joined(style, "strong") if len(rows) == 1 else style))
        return table.Table(tuple(aligns), rows)


def _align(token: "Token") -> table.Align:
    match token.attrs.get("style"):
        case "text-align:right":
            return "right"
        case "text-align:center":
            return "center"
        case _:
            return "left"
