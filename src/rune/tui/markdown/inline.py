"""The tokens within a paragraph as pieces of styled text."""

import re
from typing import TYPE_CHECKING, Final

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

# Where the line ends of the source mean something: HTML, which is shown as it is, and link definitions.
_LAID_OUT = re.compile(r"<[A-Za-z/!?]|\[[^\]\n]+\]:")
_OPENED: Final = {"em_open": "emphasis", "strong_open": "strong", "s_open": "strike", "link_open": "link"}
_CLOSED: Final = {"em_close": "emphasis", "strong_close": "strong", "s_close": "strike", "link_close": "link"}


def pieces(token: "Token", style: str = "") -> list[list[Span]]:
    """Return the lines that an inline token asks for, before any wrapping: one, and one more for each hard
    break. `style` is that of the text around it.
    """
    walk = _Walk(style)
    if token.children:
        walk.keeps_lines = _LAID_OUT.match(token.content) is not None
        walk.take(token.children)
    else:
        walk.add(token.content)
    return walk.lines


def joined(outer: str, inner: str) -> str:
    """Return a style with another one within it."""
    return f"{outer} {inner}" if outer and inner else outer or inner


def in_line(text: str) -> SafeText:
    """Return text that stands within one line, safe, with neither tabs nor line ends."""
    return safe_text(text.replace("\t", " "), newlines=False)


class _Walk:
    """Where one is in the tokens: the lines so far, and the styles that are open."""

    def __init__(self, style: str) -> None:
        self.lines: list[list[Span]] = [[]]
        self.keeps_lines = False
        self._base = style
        self._open: list[str] = []
        self._style = style
        self._addresses: list[tuple[str, int, int]] = []  # and where in `lines` the link's text begins

    def take(self, tokens: "Sequence[Token]") -> None:
        for token in tokens:
            kind = token.type
            if kind == "text":
                self.add(token.content)
            elif kind == "code_inline":
                self.add(token.content, "code")
            elif kind == "hardbreak" or (kind == "softbreak" and self.keeps_lines):
                self.lines.append([])
            elif kind == "softbreak":
                self.add(" ")
            elif kind in _OPENED:
                self._begin(token)
            elif kind in _CLOSED:
                self._end(_CLOSED[kind])
            elif kind == "image":
                self._image(token)
            else:
                self.add(token.content)

    def add(self, text: str, style: str = "") -> None:
        if text:
            self.lines[-1].append(Span(in_line(text), joined(self._style, style)))

    def _begin(self, token: "Token") -> None:
        if token.type == "link_open":
            self._addresses.append((str(token.attrs.get("href", "")), len(self.lines) - 1, len(self.lines[-1])))
        self._open.append(_OPENED[token.type])
        self._style = joined(self._base, " ".join(dict.fromkeys(self._open)))

    def _end(self, style: str) -> None:
        if style in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(style)]
        self._style = joined(self._base, " ".join(dict.fromkeys(self._open)))
        if style == "link" and self._addresses:
            address, line, first = self._addresses.pop()
            shown = "".join(
                span.text
                for number, each in enumerate(self.lines[line:])
                for span in (each[first:] if number == 0 else each)
            )
            self._address(shown, address)

    def _address(self, shown: str, address: str) -> None:
        """Add where a link goes, unless that is what it reads."""
        if address and shown not in (address, address.removeprefix("mailto:")):
            self.add(" (" if shown else "(")
            self.add(address, "link")
            self.add(")")

    def _image(self, token: "Token") -> None:
        self.add(f"[image: {token.content}]" if token.content else "[image]", "dim")
        self._address("image", str(token.attrs.get("src", "")))
