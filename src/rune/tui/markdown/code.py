"""Code as a block of lines with a background: its language named, its words highlighted where that is cheap."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Line, Span
from rune.tui.markdown.inline import in_line
from rune.tui.markdown.wrapping import cells, expanded, hung, line_cells, wrapped

if TYPE_CHECKING:
    from pygments.lexer import Lexer

TAB: Final = 4
BLOCK: Final = "block"

# Beyond these, code is shown plain: a lexer is a pile of regular expressions, and what is generated or hostile
# must not stop the screen.
_HIGHLIGHTED_CHARS: Final = 16_384
_HIGHLIGHTED_LINE: Final = 1_000

_MARGIN: Final = Span(SafeText("  "), BLOCK)
_CONTINUED: Final = Span(SafeText("↳ "), "block dim")
# Narrower than this, every cell is for the code.
_ROOM_FOR_MARGIN: Final = 8

# By the beginning of a token type's name; the longest one counts.
_STYLES: Final = {
    "Keyword": "keyword",
    "Keyword.Type": "type",
    "Keyword.Constant": "number",
    "Name.Function": "function",
    "Name.Class": "type",
    "Name.Exception": "type",
    "Name.Builtin": "function",
    "Name.Decorator": "function",
    "Name.Tag": "keyword",
    "Name.Attribute": "type",
    "Name.Variable": "type",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Literal.Date": "number",
    "Comment": "comment",
    "Operator": "operator",
    "Operator.Word": "keyword",
    "Generic.Inserted": "inserted",
    "Generic.Deleted": "deleted",
    "Generic.Heading": "heading",
    "Generic.Subheading": "heading",
    "Generic.Prompt": "operator",
    "Generic.Output": "dim",
}


def drawn(text: str, language: str, width: int, *, named: bool = True, continues: bool = False) -> list[Line]:
    """Return code as lines of exactly `width` cells (of which the text may be less in a margin not copied).

    `language` as a fence says it. `named`: a first line tells it, which is not copied. `continues`: the first line
    goes on with what was drawn before.
    """
    language = spoken(language)
    texts = [expanded(each, TAB) for each in safe_text(text).split("\n")]
    rows = _highlighted(texts, language) if language else [[Span(SafeText(each), BLOCK)] for each in texts]
    narrow = width < _ROOM_FOR_MARGIN
    room = width if narrow else width - cells(_MARGIN.text)
    out: list[Line] = []
    for number, pieces in enumerate(rows):
        lines = wrapped(pieces, room, chop=True)
        if continues and number == 0:
            lines[0] = lines[0]._replace(continues="")
        if narrow:
            out += [_padded(line, width) for line in lines]
            continue
        first = _CONTINUED if lines[0].continues is not None else _MARGIN
        out += [_padded(line, width) for line in hung(lines, first, _CONTINUED)]
    if named and language:
        # The name is no line of the text, so what follows it is joined to it with nothing.
        out = [_name(language, width), *([out[0]._replace(continues=""), *out[1:]] if text else [])]
    return out


def spoken(info: str) -> str:
    """Return the language that a fence names, as one word: "" for none."""
    words = info.strip().lstrip("{.").split(maxsplit=1)
    return in_line(words[0].rstrip("}").partition("{")[0]) if words else ""


def _name(language: str, width: int) -> Line:
    [line, *_] = wrapped([Span(SafeText(language), "block dim")], width)
    margin = min(2, width - line_cells(line))
    line = _padded(Line((Span(SafeText(" " * margin), BLOCK), *line.spans) if margin else line.spans), width)
    return line._replace(gutter=width)


def _padded(line: Line, width: int) -> Line:
    missing = width - line_cells(line)
    if missing <= 0:
        return line
    return Line((*line.spans, Span(SafeText(" " * missing), BLOCK)), line.gutter, line.continues)


def _highlighted(texts: Sequence[str], language: str) -> list[list[Span]]:
    """Return each line's pieces; `texts` are safe."""
    code = "\n".join(texts)
    plain = len(code) > _HIGHLIGHTED_CHARS or any(len(text) > _HIGHLIGHTED_LINE for text in texts)
    lexer = None if plain or not code.strip() else _lexer(language.lower())
    rows = [[Span(SafeText(text), BLOCK)] if text else [] for text in texts]
    if lexer is None:
        return rows
    try:
        tokens = list(lexer.get_tokens(code))
    except (ArithmeticError, LookupError, ValueError, RuntimeError):  # a lexer is foreign code, and code is any text
        return rows
    if "".join([value for _, value in tokens]) != code:
        return rows
    coloured: list[list[Span]] = [[]]
    for kind, value in tokens:
        style = _style(kind)
        first, *others = value.split("\n")
        if first:
            coloured[-1].append(Span(SafeText(first), style))
        coloured += [[Span(SafeText(each), style)] if each else [] for each in others]
    return coloured


@lru_cache(maxsize=256)
def _style(kind: tuple[str, ...]) -> str:
    """Return the style of a token type, which is a tuple of names from the general to the special."""
    for size in range(len(kind), 0, -1):
        if (found := _STYLES.get(".".join(kind[:size]))) is not None:
            return f"{BLOCK} {found}"
    return BLOCK


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class  # noqa: PLC0415 - heavy, and not every answer has code

    name = _names().get(language)
    kind = None if name is None else find_lexer_class(name)
    return None if kind is None else kind(stripnl=False, ensurenl=False)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Return the lexers that come with Pygments, by what they are called; those of plug-ins are somebody's code."""
    from pygments.lexers import get_all_lexers  # noqa: PLC0415 - as above

    return {alias: name for name, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases}
