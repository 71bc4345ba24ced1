"""One row above the prompt: that what is typed there is for a shell, and runs as the person."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import cut_line, spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_SAYS: Final = (
    " shell: runs as you, outside the sandbox; no model sees it",
    " shell: runs as you, outside the sandbox",
    " shell, as you, no sandbox",
    " shell",
)
_KEYS: Final = (Span(SafeText("  enter"), "key"), Span(SafeText(" runs it "), "dim"))


class ShellRow(LineRows):
    """Is there as long as the prompt holds a command for a shell."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "warning")

    _shell = False

    def show(self, *, shell: bool) -> None:
        """Say it, or take no room."""
        if shell != self._shell:
            self._shell = shell
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return one row, or none."""
        return (shell_line(width),) if self._shell else ()


def shell_line(width: int) -> Line:
    """Return what running it means, and the key that does."""
    room = max(width - width_of(_KEYS), 0)
    said = next((words for words in _SAYS if len(words) <= room), _SAYS[-1])
    return cut_line(spread((Span(SafeText(said), "warning"),), _KEYS, width), width)
