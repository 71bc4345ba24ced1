"""Searching all past conversations: one line to type in, and below it the messages that have the words."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from rune.errors import RuneError
from rune.surface.ages import age
from rune.surface.rows import FoundMessage
from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import ELLIPSIS, cut_line, foreign, spread
from rune.tui.lines import Line, Span, line
from rune.tui.screens.picker import Found, Picker, PickerRow, PickerRows

ASKS: Final = "words to look for in all conversations"
NOTHING: Final = 'All words must occur in one message; "quoted words" stand together. The last may be a beginning.'
_ROWS: Final = 20
_AGE_CELLS: Final = 11
_TITLE_CELLS: Final = 24
_NARROW_TITLE_CELLS: Final = 12
_WIDE: Final = 60
_BEFORE: Final = 12  # cells of the snippet that are seen before its first match, at most


class MessageSearch(Picker):
    """Gives the id of a conversation, None when it was left. `search` may raise RuneError, which is shown.

    What is typed is looked for as soon as the search before has ended: never more than one runs, and what was typed
    meanwhile counts as a whole. `now_ms` is the wall time that ages are counted from.
    """

    CSS_PATH = "picker.tcss"

    def __init__(
        self, search: Callable[[str], Awaitable[Sequence[FoundMessage]]], *, now_ms: int, query: str = ""
    ) -> None:
        async def nothing() -> Found:
            return Found(())

        super().__init__("Search", nothing, empty=NOTHING, query=query, asks=ASKS)
        self._search = search
        self._now_ms = now_ms
        self._wanted = query
        self._searched: str | None = None
        self._searching = True  # for what stands there from the beginning, once it is mounted
        self._taking = False
        self._conversations: dict[str, str] = {}

    async def _fill(self) -> None:
        while self._searched != self._wanted:
            await self._look_for(self._wanted)
        self._searching = False
        if self._taking:
            self._taking = False
            super()._entered()

    async def _look_for(self, text: str) -> None:
        hits: Sequence[FoundMessage] = ()
        try:
            hits = await self._search(text) if text.strip() else ()
            self._error = None
        except RuneError as error:
            self._error = error
        self._searched = text
        self._conversations = {hit.message_id: hit.conversation_id for hit in hits}
        self._found = Found([_row(hit, self._now_ms) for hit in hits])
        self._show()
        self._fit()

    def _narrowed(self) -> None:
        """Look for what stands there now."""
        self._wanted, self._taking = self._typed(), False
        if not self._searching:
            self._searching = True
            self.run_worker(self._fill(), name="search")

    def _entered(self) -> None:
        """Choose, once what is shown is what was looked for."""
        if self._searching:
            self._taking = True
        else:
            super()._entered()

    def _show(self, keep: str = "") -> None:
        rows = self._found.rows if self._found is not None else ()
        self.query_one(PickerRows).show(rows, keep=keep)
        self._say(self._typed(), any_shown=bool(rows))

    def _said(self, query: str, *, any_shown: bool) -> Sequence[tuple[str, str]]:
        if self._error is not None:
            return [(self._error.message, "bad"), (self._error.hint, "")]
        if any_shown:
            return []
        if not query.strip():
            return [(NOTHING, "dim")]
        if self._searched != query:
            return [("searching …", "dim")]
        return [(f"no message has “{query}”", "dim")]

    def _height(self) -> int:
        return _ROWS  # nothing moves while one types

    def _choice(self, name: str) -> str:
        return self._conversations.get(name, name)


def _row(hit: FoundMessage, now_ms: int) -> PickerRow:
    return PickerRow(hit.message_id, "", partial(found_line, hit, now_ms))


def found_line(hit: FoundMessage, now_ms: int, width: int) -> Line:
    """Return a message in at most `width` cells: how old, in which conversation, the words around the first match
    with all matches marked.
    """
    wide = width >= _WIDE
    old = SafeText(f"{age(hit.ts, now_ms):<{_AGE_CELLS}}  ") if wide else SafeText("")
    cells = _TITLE_CELLS if wide else _NARROW_TITLE_CELLS
    title = foreign(hit.title, cells) or SafeText("untitled")
    head = spread([Span(title)], [], cells)
    room = max(width - len(old) - cells - 2, 1)
    return cut_line(line(Span(old, "dim"), *head.spans, Span(SafeText("  ")), *_marked(hit, room)), width)


def _marked(hit: FoundMessage, cells: int) -> tuple[Span, ...]:
    """Return the snippet from a little before its first match on, each match marked."""
    first = hit.marks[0][0] if hit.marks else 0
    at = max(first - _BEFORE, 0) if len(hit.snippet) > cells else 0
    spans: list[Span] = [Span(ELLIPSIS, "dim")] if at else []
    for begins, end in (*hit.marks, (len(hit.snippet), len(hit.snippet))):
        start = max(begins, at)
        # Made safe piece by piece: what is made visible is longer than it was.
        spans += [_piece(hit.snippet[at:start], "dim"), _piece(hit.snippet[start:end], "accent strong")]
        at = max(end, at)
    return cut_line(line(*spans), cells).spans


def _piece(text: str, style: str) -> Span:
    return Span(safe_text(text, newlines=False, tabs=False), style)
