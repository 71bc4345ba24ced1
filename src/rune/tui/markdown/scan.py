"""One pass over the lines of Markdown, which finds where its blocks end, and keeps its place while the text grows."""

import re
import unicodedata
from typing import Final, Literal

import msgspec

from rune.tui.markdown import marks
from rune.tui.markdown.kinds import PROSE, Block, Code, Inside, Kind, Prose, Rest, Rows
from rune.tui.markdown.marks import CODE_INDENT, Fence, Item

# From where on a part ends at the next good place (a blank line, an item), and where it ends in any case.
GOOD_LINES: Final = 32
MOST_LINES: Final = 64
GOOD_CHARS: Final = 2_048
MOST_CHARS: Final = 4_096

_LINE = re.compile(r"[^\r\n]*")
_JOINERS = "\u200c\u200d"
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_SEAM = 256  # how far back a word's beginning is looked for when a line is cut

_State = Literal["none", "text", "list", "quote", "table", "fence", "code", "done"]


class Scan:
    """One pass over the lines of a text. What is open is the block from `start` on; what is closed goes to `out`."""

    def __init__(self, out: list[Block]) -> None:
        self.out = out
        self.at = 0  # up to where lines were taken
        self.inside_line = False  # `at` is in the middle of a line that was cut
        self.state: _State = "none"
        self.start = 0
        self.kind: Kind = PROSE
        self.gap = False
        self.lines = 0
        self.blank = False  # the last line was
        self.only = ""  # the block's only line so far, if its first line was whole
        self.before = ""  # the last line of a paragraph, which the next one may make the head of a table
        self.before_at = 0
        self.fence: Fence | None = None
        self.marker = ""  # of the list
        self.number: int | None = None  # of its last item
        self.content = 0  # the column where the text of its last item begins
        self.empty = False  # it has none, or the last line of the quote
        self.lazy = False  # a line was taken into a list or quote that may not belong to it
        self.head = ""  # of the table

    def read(self, source: str, *, ended: bool) -> None:
        """Take all lines that are complete, and what is more than enough of a line that is not."""
        size = len(source)
        while True:
            at = self.at
            end = _match_end(source, at, at + MOST_CHARS + 1)
            if end - at > MOST_CHARS:
                self._piece(source, _seam(source, at, at + MOST_CHARS), last=False)
                self.inside_line = True
                continue
            if end >= size:
                return
            after = end + 1
            if source[end] == "\r":
                if after >= size and not ended:
                    return
                after += source.startswith("\n", after)
            self._take(source, end, after)

    def end(self, source: str, *, ended: bool) -> None:
        """Take what is left as if it were a line, and settle what is open."""
        size = len(source)
        if self.at < size:
            line = source[self.at : size].rstrip("\r")
            # A dash that will be an item must not turn the paragraph above it into a heading for a moment.
            passing = not ended and self.state == "text" and not self.blank and not self.inside_line
            if passing and (rest := line.lstrip(" \t")) and marks.is_underline(rest):
                self._cut(self.at, Rest())
            else:
                self._take(source, self.at + len(line), size)
        if size > self.start:
            self._settle(size)

    def _take(self, source: str, end: int, after: int) -> None:
        if self.inside_line:
            self._piece(source, after, last=True)
            self.inside_line = False
            return
        start, self.at = self.at, after
        line = source[start:end]
        column, rest = marks.indent(line)
        if self.only and not self.blank and self.state != "code" and marks.begins_table(self.only, line):
            self._table(self.only, line)
        elif not rest:
            self._blank(start)
        else:
            self._line(line, column, rest, start)
        self.lines += 1

    def _blank(self, start: int) -> None:
        if self.state == "fence" and self._long(start):
            self._more_code(start)
        self.blank = True
        self.lazy = False
        self.before = ""

    def _line(self, line: str, column: int, rest: str, start: int) -> None:
        taken = False
        match self.state:
            case "fence":
                taken = self._in_fence(column, rest, start)
            case "list":
                taken = self._in_list(line, column, rest, start)
            case "code":
                taken = column >= CODE_INDENT
                if taken and self._long(start):
                    self._more_code(start)
            case "text":
                taken = not self.blank and self._in_text(line, column, rest, start)
            case "quote":
                taken = not self.blank and self._in_quote(line, column, rest, start)
            case "table":
                taken = not (self.blank or column >= CODE_INDENT or marks.interrupts(rest, column, paragraph=False))
                if taken and self._long(start, good=True):
                    self._cut(start, Rows(self.head))
            case _:
                pass
        if taken:
            self.only = ""
        else:
            self._open(line, column, rest, start)
        self.blank = False

    def _open(self, line: str, column: int, rest: str, start: int) -> None:
        """Begin a new block with this line."""
        spaced = self.state in ("fence", "code", "table", "done")
        kind: Kind = PROSE
        state: _State = "text"
        self.fence = None
        if column >= CODE_INDENT:
            state, kind = "code", Code(indent=CODE_INDENT, fenced=False, opens=True)
        elif (fence := marks.fence(rest, column)) is not None:
            state, kind = "fence", Code(fence.info, column, opens=True)
            self.fence = fence
        elif rest[0] == ">":
            state = "quote"
            self._quote(line, rest)
        elif marks.is_heading(rest) or marks.is_rule(rest):
            state = "done"
        elif (item := marks.item(rest, column)) is not None:
            state = "list"
            self._list(item, line)
        self._begin(start, kind, gap=self.blank or spaced or state in ("fence", "code", "done"))
        self.state = state
        self.only = self.before = line
        self.before_at = start

    def _begin(self, start: int, kind: Kind, *, gap: bool) -> None:
        """Settle what is open and begin a block at `start`; blank lines at the very start belong to the first."""
        if self.state != "none":
            self._settle(start)
            self.start = start
            self.gap = gap
        self.kind = kind
        self.lines = 0
        self.lazy = False
        self.only = self.before = ""

    def _cut(self, start: int, kind: Kind, *, gap: bool = False) -> None:
        """Go on with what is open in a new block."""
        self._begin(start, kind, gap=gap)
        self.blank = False

    def _settle(self, end: int) -> None:
        if end > self.start:
            self.out.append(Block(self.start, end, self.kind, self.gap))

    def _long(self, start: int, *, good: bool = False) -> bool:
        """Say whether a part ends before the line at `start`; `good`: this is a good place for it."""
        size = start - self.start
        if self.blank or good:
            return self.lines >= GOOD_LINES or size >= GOOD_CHARS
        return self.lines >= MOST_LINES or size >= MOST_CHARS

    def _in_fence(self, column: int, rest: str, start: int) -> bool:
        if self.fence is not None and column < CODE_INDENT and self.fence.closed_by(rest, 0):
            self._close_code()
            self.state = "done"
        elif self._long(start):
            self._more_code(start)
        return True

    def _close_code(self) -> None:
        self.fence = None
        if isinstance(self.kind, Code):
            self.kind = msgspec.structs.replace(self.kind, closed=True)

    def _more_code(self, start: int, *, continues: bool = False) -> None:
        kind = self.kind
        if self.state == "list" and self.fence is not None:
            kind = Code(self.fence.info, self.fence.column, margin=self.content, continues=continues)
        elif isinstance(kind, Code):
            kind = msgspec.structs.replace(kind, opens=False, continues=continues)
        self._cut(start, kind)

    def _in_text(self, line: str, column: int, rest: str, start: int) -> bool:
        if self.before and marks.begins_table(self.before, line):
            head = self.before
            self._begin(self.before_at, PROSE, gap=True)
            self.lines = 1
            self._table(head, line)
            return True
        if column < CODE_INDENT and isinstance(self.kind, Prose) and marks.is_underline(rest):
            self.state = "done"
            return True
        if marks.interrupts(rest, column, paragraph=True):
            return False
        if self.lines >= GOOD_LINES or start - self.start >= GOOD_CHARS:
            self._cut(start, Rest())
        self.before, self.before_at = line, start
        return True

    def _table(self, head: str, below: str) -> None:
        self.gap = self.start > 0
        self.state, self.kind, self.fence = "table", PROSE, None
        self.head = f"{head}\n{below}\n"
        self.only = self.before = ""

    def _in_quote(self, line: str, column: int, rest: str, start: int) -> bool:
        if column < CODE_INDENT and rest[0] == ">":
            if self._long(start, good=not rest.strip("> \t")):
                self._cut(start, PROSE)
            self._quote(line, rest)
            return True
        if self.empty or self.fence is not None:
            return False
        return self._lazily(line, column, rest)

    def _quote(self, line: str, rest: str) -> None:
        """Note whether what is quoted so far ends in a paragraph, which a line without the mark may continue."""
        inner = rest.lstrip("> \t")
        self.empty = not inner
        if self.fence is None:
            self.fence = marks.inner_fence(line)
        elif self.fence.closed_by(inner, self.fence.column):
            self.fence = None

    def _lazily(self, line: str, column: int, rest: str) -> bool:
        """Say whether a line that lacks the mark or the indent stays with the quote or list right above it.

        Only a full parse could tell whether it continues a paragraph in there or begins one of its own. So it is
        kept, and with it what would be something else in one case than in the other.
        """
        if self.lazy and column < CODE_INDENT:
            item = marks.item(rest, column)
            if item is not None and not marks.interrupts(rest, column, paragraph=True):
                self._list(item, line)
                return True
            if marks.is_underline(rest):
                self.state = "done" if marks.is_rule(rest) else self.state
                return True
        self.lazy = not marks.interrupts(rest, column, paragraph=False)
        return self.lazy

    def _list(self, item: Item, line: str) -> None:
        self.state = "list"
        self.marker, self.number, self.content = item.marker, item.number, item.content
        self.empty = item.empty and not self.lazy
        self.fence = marks.inner_fence(line)

    def _in_list(self, line: str, column: int, rest: str, start: int) -> bool:
        if self.fence is not None and column >= max(self.content, self.fence.column - CODE_INDENT + 1):
            if self.fence.closed_by(rest, column):
                self._close_code()
            elif self._long(start):
                self._more_code(start)
            return True
        # An item with nothing in it, or with code that ends here, has no paragraph that a line could continue.
        ended_code = self.fence is not None or self.empty
        self.fence = None
        after_code = isinstance(self.kind, Code)
        if column >= self.content and not (self.empty and self.blank):
            self.empty = False
            if after_code or self._long(start, good=marks.item(rest, column) is not None):
                indent = column if column - self.content >= CODE_INDENT else self.content
                self._cut(start, Inside(self.content, indent), gap=self.blank)
            self.fence = marks.inner_fence(line)
            return True
        item = marks.item(rest, column) if column < CODE_INDENT and not marks.is_rule(rest) else None
        if item is not None and item.marker == self.marker:
            self.number = None if self.number is None else self.number + 1
            if not isinstance(self.kind, Prose) or self._long(start, good=True):
                self._cut(start, Prose(self.number), gap=self.blank)
            self._list(Item(item.marker, self.number, item.content, item.empty), line)
            return True
        return not (self.blank or ended_code or after_code) and self._lazily(line, column, rest)

    def _piece(self, source: str, end: int, *, last: bool) -> None:
        """Take a part of a line that is too long for one block: as code where code is, else as text. What is not
        the `last` part can be settled at once.
        """
        start, self.at = self.at, end
        if self.state == "code" and self.blank and marks.indent(source[start : start + 99])[0] < CODE_INDENT:
            self.state = "done"
        code = self.state == "code" or (self.fence is not None and self.state != "quote")
        if not self.inside_line:
            if code and self.lines == 1 and isinstance(self.kind, Code):
                pass  # nothing but the fence so far: that is no part of its own
            elif code:
                self._more_code(start)
            else:
                indented = source[start] in " \t"
                self._begin(start, Rest() if indented else PROSE, gap=self.blank or self.state != "text")
                self.state, self.fence = "text", None
        if last:
            self.lines = 1
        elif code:
            self._more_code(end, continues=True)
        else:
            self._cut(end, Rest(" " if source[end] == " " else ""))
        self.blank = False


def _match_end(source: str, start: int, limit: int) -> int:
    found = _LINE.match(source, start, limit)
    return start if found is None else found.end()


def _seam(source: str, start: int, end: int) -> int:
    """Return where to cut a line that goes on beyond `end`: after a word, at least not within a character."""
    before, space, _ = source[end - _SEAM : end].rpartition(" ")
    if space and before.rstrip(" "):
        return end - _SEAM + len(before.rstrip(" "))
    for position in range(end, end - _SEAM, -1):
        if source[position - 1] not in _JOINERS and _begins(source[position]):
            return position
    return end


def _begins(char: str) -> bool:
    """Say whether a character surely belongs to none before it: no mark, no tone of skin, no half of a flag."""
    category = unicodedata.category(char)
    return category[0] in "LNPSZ" and category != "Sk" and ord(char) not in _FLAG_LETTERS
