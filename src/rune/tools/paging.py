"""A part of a long text as a model is given it: whole lines, long ones cut, and how to get the rest."""

from typing import Final

import msgspec

from rune.text.storable import storable

MOST_LINES: Final = 2_000
MOST_BYTES: Final = 50_000
MOST_OF_A_LINE: Final = 2_000  # characters


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """`text` holds the lines `first` to `last` (counted from 1) of `total`; `cut` of them are not whole."""

    text: str
    first: int
    last: int
    total: int
    cut: int

    @property
    def is_whole(self) -> bool:
        """Whether there is no other line."""
        return self.first == 1 and self.last == self.total

    def note(self, what: str) -> str:
        """Say what this part is and how to get more, "" for all of it; `what` is the call that reads on."""
        parts: list[str] = []
        if not self.is_whole:
            parts.append(f"lines {self.first}-{self.last} of {self.total}")
            parts.append(f"more: {what}, offset={self.last + 1}" if self.last < self.total else "the end")
        if self.cut:
            parts.append(f"{self.cut} long {'line' if self.cut == 1 else 'lines'} cut at {MOST_OF_A_LINE:,} characters")
        return f"[{'; '.join(parts)}]" if parts else ""


def lines_of(text: str) -> list[str]:
    """Return a text's lines; only LF ends one, and the last need not end."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def page(lines: list[str], offset: int, limit: int, *, numbered: bool) -> Page:
    """Return at most `limit` lines from `offset` on; at least one, where there is one. A number in front is `12| `,
    which edits are freed from again (`tools.editing`).
    """
    shown: list[str] = []
    size = cut = 0
    for number, line in enumerate(lines[offset - 1 : offset - 1 + min(limit, MOST_LINES)], offset):
        more = len(line) - MOST_OF_A_LINE
        part = storable(line if more <= 0 else f"{line[:MOST_OF_A_LINE]} [+{more:,} characters]")
        written = (f"{number}| {part}" if part else f"{number}|") if numbered else part
        size += len(written.encode()) + 1
        if shown and size > MOST_BYTES:
            break
        cut += more > 0
        shown.append(written)
    return Page(text="\n".join(shown), first=offset, last=offset + len(shown) - 1, total=len(lines), cut=cut)
