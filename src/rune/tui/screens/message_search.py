"""Searching all past conversations: one line to type in, and below it the messages that have the words."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

from rune.errors import RuneError
from rune.surface.ages import age
from rune.surface.found_text import more_words, speaker
from rune.surface.rows import MessageHit
from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import ELLIPSIS, cut_line, foreign, spread, width_of
from rune.tui.hints import in_the_app
from rune.tui.lines import Line, Span, line
from rune.tui.screens.picker import Found, Picker, PickerRow

ASKS: Final = "words to look for in all conversations"
NOTHING: Final = 'All words must occur in one message; "quoted words" stand together. The last may be a beginning.'
_ROWS: Final = 20
_AGE_CELLS: Final = 11
_ID_CELLS: Final = 6  # of the end of an id: its beginning is the time
_NARROW_ID_CELLS: Final = 4
_NARROW_SPEAKERS: Final = {"user": ">", "assistant": "·"}  # as in the transcript where it is as narrow
_LEAST_TITLE: Final = 4
_LEAST_SNIPPET: Final = 6
_TITLE_CELLS: Final = 24
_WIDEST_TITLE_CELLS: Final = 32
_NARROW_TITLE_CELLS: Final = 12
_WIDE: Final = 60
_WIDEST: Final = 96
_BEFORE: Final = 12  # cells of the snippet that are seen before its first match, at most


class MessageSearch(Picker):
    """Gives the id of a conversation and that of a message in it, parted by a space; None when it was left. `search`
    may raise RuneError, which is shown.

    What is typed is looked for as soon as the search before has ended: never more than one runs, and what was typed
    meanwhile counts as a whole. `now_ms` is the wall time that ages are counted from.
    """

    CSS_PATH = "picker.tcss"

    def __init__(
        self, search: Callable[[str], Awaitable[Sequence[MessageHit]]], *, now_ms: int, query: str = ""
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

    async def _fill(self) -> None:
        while self._searched != self._wanted:
            await self._look_for(self._wanted)
        self._searching = False
        if self._taking:
            self._taking = False
            super()._entered()

    async def _look_for(self, text: str) -> None:
        hits: Sequence[MessageHit] = ()
        try:
            hits = await self._search(text) if text.strip() else ()
            self._error = None
        except RuneError as error:
            self._error = error
        self._searched = text
        self._found = Found([*_rows(hits, self._now_ms)])
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
        self._put(rows, keep=keep)
        self._say(self._typed(), any_shown=bool(rows))

    def _said(self, query: str, *, any_shown: bool) -> Sequence[tuple[str, str]]:
        if self._error is not None:
            return [(self._error.message, "bad"), (in_the_app(self._error.hint), "")]
        if any_shown:
            return []
        if not query.strip():
            return [(NOTHING, "dim")]
        if self._searched != query:
            return [("searching …", "dim")]
        return [(f"no message has “{query}”", "dim")]

    def _height(self) -> int:
        return _ROWS  # nothing moves while one types


class FoundTable:
    """Draws the rows of what was found; which columns there are depends on the width alone."""

    def __init__(self, found: Sequence[MessageHit], *, now_ms: int) -> None:
        self._titles = {hit.conversation_id: hit.title for hit in found}
        self._now_ms = now_ms
        self._twins: dict[int, frozenset[str]] = {}

    def line(self, hit: MessageHit, width: int) -> Line:
        """Return a message in at most `width` cells: how old, in which conversation, who spoke, the words around the
        first match with all matches marked.
        """
        wide = width >= _WIDE
        old = SafeText(f"{age(hit.ts, self._now_ms):<{_AGE_CELLS}}  ") if wide else SafeText("")
        most = _WIDEST_TITLE_CELLS if width >= _WIDEST else _TITLE_CELLS if wide else _NARROW_TITLE_CELLS
        cells = min(most, max(width // 3, 1))
        who = f"  {speaker(hit):<4}  " if wide else f"  {_NARROW_SPEAKERS.get(hit.role, ' ')} "
        room = width - len(old) - cells - len(who)
        if room < _LEAST_SNIPPET:
            return line(Span(_title(hit.title, width)))
        head = self._head(hit, cells, _ID_CELLS if wide else _NARROW_ID_CELLS)
        return line(Span(old, "dim"), *head.spans, Span(SafeText(who), "dim"), *_marked(hit, room))

    def more(self, hit: MessageHit, width: int) -> Line:
        """Return how much more was found in the conversation of a message, in at most `width` cells."""
        return line(Span(foreign(f"  {more_words(hit)}", width), "dim"))

    def _head(self, hit: MessageHit, cells: int, id_cells: int) -> Line:
        """Return title and kind of the conversation; its id's end where its title reads like another one's."""
        marks: list[Span] = []
        if _title(hit.title, cells) in self._alike(cells):
            marks.append(Span(SafeText(f" …{foreign(hit.conversation_id[-id_cells:], id_cells)}"), "dim"))
        if hit.hidden:
            marks.append(Span(SafeText(" hidden"), "warning"))
        if hit.forked_from is not None:
            marks.append(Span(SafeText(" fork"), "dim"))
        while marks and cells - width_of(marks) < _LEAST_TITLE:
            marks.pop()
        return spread([Span(_title(hit.title, cells - width_of(marks)))], marks[::-1], cells)

    def _alike(self, cells: int) -> frozenset[str]:
        """Return the titles that several conversations have, as far as they are seen in so many cells."""
        if cells not in self._twins:
            counted = Counter(_title(title, cells) for title in self._titles.values())
            self._twins[cells] = frozenset(title for title, many in counted.items() if many > 1)
        return self._twins[cells]


def _rows(found: Sequence[MessageHit], now_ms: int) -> Iterator[PickerRow]:
    table = FoundTable(found, now_ms=now_ms)
    for hit in found:
        yield PickerRow(f"{hit.conversation_id} {hit.message_id}", "", partial(table.line, hit))
        if hit.more:
            yield PickerRow("", "", partial(table.more, hit), open=False)


def _title(title: str, cells: int) -> SafeText:
    return foreign(title or "untitled", cells)


def _marked(hit: MessageHit, cells: int) -> tuple[Span, ...]:
    """Return the snippet from a little before its first match on, each match marked."""
    first = hit.marks[0][0] if hit.marks else 0
    at = max(first - min(_BEFORE, cells // 3), 0) if len(hit.snippet) > cells else 0
    spans: list[Span] = [Span(ELLIPSIS, "dim")] if at else []
    for begins, end in (*hit.marks, (len(hit.snippet), len(hit.snippet))):
        start = max(begins, at)
        # Made safe piece by piece: what is made visible is longer than it was.
        spans += [_piece(hit.snippet[at:start], "dim"), _piece(hit.snippet[start:end], "accent strong")]
        at = max(end, at)
    return cut_line(line(*spans), cells).spans


def _piece(text: str, style: str) -> Span:
    return Span(safe_text(text, newlines=False, tabs=False), style)
