"""One row above the prompt: that a folder's files would instruct Rune, and where that is decided (terminal.md, Trust).

It takes neither the keyboard nor an answer: who wants to decide reads the files first.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import cut, cut_line, foreign, spread, width_of
from rune.tui.lines import Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

if TYPE_CHECKING:
    from rune.config.trust import TrustStatus

_NAMED: Final = 3
_LEAST_NAME: Final = 8
_KEY: Final = Span(SafeText("  f2"), "key")
# What is said behind the names, of one file and of several, and what the key does; the longest first.
_WORDS: Final = {
    "untrusted": (
        (
            " would instruct Rune here; it is not read",
            " would instruct Rune here; they are not read",
            " looks and decides",
        ),
        (" would instruct Rune; not read", " would instruct Rune; not read", " decides"),
        (" is not read", " are not read", " decides"),
        (" is not read", " are not read", ""),
    ),
    "changed": (
        (
            " changed since you trusted it; it is not read",
            " changed since you trusted them; they are not read",
            " looks and decides",
        ),
        (" changed since trusted; not read", " changed since trusted; not read", " decides"),
        (" changed; not read", " changed; not read", " decides"),
        (" changed; not read", " changed; not read", ""),
        (" changed", " changed", ""),
    ),
}


class TrustBar(LineRows):
    """Says of which files there is something to decide, until it is decided."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "strong", "warning")

    _status: "TrustStatus | None" = None

    def ask(self, status: "TrustStatus | None") -> None:
        """Say it of this folder; None, and where nothing is to be decided: it takes no room."""
        self._status = status
        self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return one row, or none."""
        return trust_lines(self._status, width) if self._status is not None else ()


def trust_lines(status: "TrustStatus", width: int) -> tuple[Line, ...]:
    """Return what is to be decided in one row, with the key that does it; none where nothing is."""
    forms = _WORDS.get(status.state)
    paths = changed_paths(status)
    if forms is None or not paths:
        return ()
    one = len(paths) == 1
    names: tuple[Span, ...] = ()
    says = action = SafeText("")
    for of_one, of_several, does in forms:
        says, action = SafeText(of_one if one else of_several), SafeText(does)
        room = width - 1 - len(says) - len(_KEY.text) - len(action) - 1
        names = _names(paths, max(room, _LEAST_NAME))
        if width_of(names) <= room and not names[0].text.endswith("…"):
            break
    right = (_KEY, Span(action, "dim"), Span(SafeText(" ")))
    left = line(Span(SafeText(" ")), *names, Span(says, "warning" if status.state == "changed" else ""))
    return (spread(cut_line(left, max(width - width_of(right), 0)).spans, right, width),)


def changed_paths(status: "TrustStatus") -> tuple[str, ...]:
    """Return the paths that are to be decided about: all that would instruct, or those that are not as trusted."""
    everything = [file.path for file in status.instructions.everything]
    if status.state != "changed":
        return tuple(everything)
    # No line of a file begins with @@ in a diff, so what stands before one is a true heading.
    changes = status.changes
    paths = [
        heading.removeprefix("--- trusted/")
        for heading, _, hunk in zip(changes, changes[1:], changes[2:], strict=False)
        if heading.startswith("--- trusted/") and hunk.startswith("@@")
    ]
    # What speaks to the model comes first, as where all are named; what is gone comes last.
    named = [path for path in everything if path in paths] + [path for path in paths if path not in everything]
    return tuple(named or everything)


def _names(paths: Sequence[str], cells: int) -> tuple[Span, ...]:
    """Name as many files as fit, one at least, and say how many there are beside them."""
    for many in range(min(_NAMED, len(paths)), 0, -1):
        named = ", ".join(foreign(path, 60) for path in paths[:many])
        rest = f" and {len(paths) - many} more" if len(paths) > many else ""
        spans = (Span(SafeText(named), "strong"), Span(SafeText(rest)))
        if width_of(spans) <= cells or many == 1:
            return Span(cut(SafeText(named), max(cells - len(rest), _LEAST_NAME)), "strong"), spans[1]
    return ()
