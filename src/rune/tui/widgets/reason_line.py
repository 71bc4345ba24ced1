"""One line to say why not: what is typed here goes to the model with the person's no."""

from textual.events import Key
from textual.widgets import Input

from rune.tui.widgets.approval_bar import ApprovalBar
from rune.tui.widgets.filter_input import FilterInput


class ReasonLine(FilterInput):
    """Answers the question with no and the person's words; Esc goes back without an answer."""

    longest = 2_000
    DEFAULT_CSS = """
    ReasonLine {
        height: 1;
        border: none;
        padding: 0 1;
        background: $surface;
        &:focus {
            border: none;
        }
    }
    """

    def __init__(self, approval_id: str) -> None:
        super().__init__(placeholder="no, because ...   enter sends it, esc goes back")
        self.approval_id = approval_id

    def on_key(self, event: Key) -> None:
        """Go back on Esc."""
        if event.key in {"escape", "ctrl+c"}:
            self.post_message(ApprovalBar.Left())
            event.stop()
            event.prevent_default()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with what was typed."""
        event.stop()
        self.post_message(ApprovalBar.Answered(self.approval_id, "deny", reason=event.value.strip()))
