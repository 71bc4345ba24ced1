"""A place in text that may still be arriving: what the grammar of calls reads from."""

import re
from collections.abc import Generator
from typing import Final, NoReturn, TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A part of the grammar: it stops at each `yield` until more text has come or the text has ended."""

NAME_LENGTH: Final = 128

_BLANKS: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[\w.:/-]*", re.ASCII)


class NotACallError(Exception):
    """The text is not, and cannot become, nothing but calls. Never leaves this package."""


class CutOffError(NotACallError):
    """The text ends in the middle of what may have been a call."""


class Cursor:
    """Reads forward only, and waits where what stands there may go on in text that has not come yet.

    `keep` leaves what was read in memory so that `since` can give it; without it, memory is bounded by what is
    looked ahead at, and feeding a text piece by piece costs as much as feeding it whole.
    """

    def __init__(self, text: str = "", *, keep: bool) -> None:
        self.text = text
        self.position = 0
        self.closed = False
        self._keep = keep

    def feed(self, text: str) -> None:
        """Append what has come."""
        if self._keep:
            self.text += text
        else:
            self.text = self.text[self.position :] + text
            self.position = 0

    def fail(self) -> NoReturn:
        """Raise what says that the text does not go on as it must: CutOffError where it has ended here."""
        raise CutOffError if self.closed and self.position >= len(self.text) else NotACallError

    def since(self, mark: int, end: int | None = None) -> str:
        """Return what was read from `mark` to `end`, former places (None: here); "" where it was not kept."""
        return self.text[mark : self.position if end is None else end] if self._keep else ""

    def more(self) -> Reading[bool]:
        """Wait for more text; False when there will be none."""
        if self.closed:
            return False
        yield
        return True

    def at_end(self) -> Reading[bool]:
        """Say whether all has been read, and nothing more will come."""
        while self.position >= len(self.text):
            if not (yield from self.more()):
                return True
        return False

    def peek(self) -> Reading[str]:
        """Return the next character without reading it; "" at the end."""
        return "" if (yield from self.at_end()) else self.text[self.position]

    def blanks(self) -> Reading[None]:
        """Read white space."""
        yield from self.run(_BLANKS)

    def name(self) -> Reading[str]:
        """Read the name of a tool, or of an argument; raises NotACallError when none stands here."""
        end = self.position
        while True:
            found = _NAME.match(self.text, end)
            end = found.end() if found else end
            if end - self.position > NAME_LENGTH:
                raise NotACallError
            if end < len(self.text):
                break
            end -= self.position  # places move when text is fed
            more = yield from self.more()
            end += self.position
            if not more:
                break
        if end == self.position:
            self.fail()
        word = self.text[self.position : end]
        self.position = end
        return word

    def choose(self, *literals: str) -> Reading[str]:
        """Read the longest of these that stands here and return it; "" and nothing read when none does."""
        found = yield from self.stands(*literals)
        self.position += len(found)
        return found

    def stands(self, *literals: str) -> Reading[str]:
        """Return the longest of these that stands here, and read nothing."""
        longest = max(map(len, literals))
        while True:
            ahead = self.text[self.position : self.position + longest]
            undecided = len(ahead) < longest and any(
                len(literal) > len(ahead) and literal.startswith(ahead) for literal in literals
            )
            if not undecided or not (yield from self.more()):
                break
        return max((literal for literal in literals if ahead.startswith(literal)), key=len, default="")

    def expect(self, *literals: str) -> Reading[str]:
        """Read one of these; raises NotACallError when none stands here."""
        found = yield from self.choose(*literals)
        if not found:
            self.fail()
        return found

    def through(self, literal: str) -> Reading[bool]:
        """Read up to and with `literal`; False when it never comes."""
        while True:
            found = self.text.find(literal, self.position)
            if found >= 0:
                self.position = found + len(literal)
                return True
            if self.closed:
                self.position = len(self.text)
                return False
            # Its beginning may stand at the end of what has come.
            self.position = max(self.position, len(self.text) - len(literal) + 1)
            yield from self.more()

    def run(self, pattern: "re.Pattern[str]") -> Reading[None]:
        """Read as long as single characters fit `pattern`, a repeated class."""
        while True:
            found = pattern.match(self.text, self.position)
            self.position = found.end() if found else self.position
            if self.position < len(self.text) or not (yield from self.more()):
                return
