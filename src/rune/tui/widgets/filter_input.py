"""A line to type into: words to look for, or a reason."""

from typing import ClassVar, Final

from textual.widgets import Input
from textual.widgets.input import Selection

from rune.text.safe_text import safe_text

LONGEST: Final = 200


class FilterInput(Input):
    """An input into which nothing comes that a terminal would act on, pasted or typed.

    Ctrl+C is its own only while something is selected; else it is left to the screen. It takes at most `longest`
    characters at a time.
    """

    longest: ClassVar[int] = LONGEST

    def replace(self, text: str, start: int, end: int) -> None:
        """Put safe text in place of what stands between two positions."""
        super().replace(safe_text(text[: self.longest], newlines=False, tabs=False), start, end)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Ctrl+C through to the screen where nothing is selected."""
        if action == "copy" and self.selection.is_empty:
            return False
        return super().check_action(action, parameters)

    def action_copy(self) -> None:
        """Copy what is selected, which is selected no longer."""
        super().action_copy()
        self.selection = Selection.cursor(self.cursor_position)
