"""What a block of Markdown is, and what its drawing needs to know of the blocks before it: plain values."""

from typing import Final, NamedTuple

import msgspec


class Prose(msgspec.Struct, frozen=True, tag="prose"):
    """Markdown. `number`: it begins with an item of a numbered list, which has this number; None: as written."""

    number: int | None = None


class Rest(msgspec.Struct, frozen=True, tag="rest"):
    """More of a paragraph. `joint`: what stands between it and the block before, " " or ""."""

    joint: str = " "


class Inside(msgspec.Struct, frozen=True, tag="inside"):
    """More of a list item: Markdown indented by `indent` columns, drawn `margin` cells in."""

    margin: int
    indent: int


class Rows(msgspec.Struct, frozen=True, tag="rows"):
    """More rows of a table. `head`: its first two lines."""

    head: str


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Lines of code, indented by `indent` columns and drawn `margin` cells in.

    `opens`: it is the first part; of fenced code the first line is the fence. `closed`: its last line that is not
    blank is the closing fence. `continues`: its first line goes on with the last one of the block before.
    """

    language: str = ""
    indent: int = 0
    margin: int = 0
    fenced: bool = True
    opens: bool = False
    closed: bool = False
    continues: bool = False


Kind = Prose | Rest | Inside | Rows | Code
PROSE: Final = Prose()


class Block(NamedTuple):
    """`source[start:end]`, trailing blank lines included. `gap`: a blank line parts it from the block before."""

    start: int
    end: int
    kind: Kind = PROSE
    gap: bool = False
