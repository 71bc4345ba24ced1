"""From the talks, which know no widget, to the screen: as messages, in order, on the app's own queue."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:  # what a talk needs is imported after the app's first picture
    from rune.tui.talk import Talk


class TalkChanged(Message):
    """Something of a talk looks different."""

    def __init__(self, talk: "Talk") -> None:
        super().__init__()
        self.talk = talk

    def can_replace(self, message: Message) -> bool:
        """Say that a newer one stands for it: a talk is shown as it is when its turn comes."""
        return isinstance(message, TalkChanged) and message.talk is self.talk


class TurnEnded(Message):
    """A turn of a talk has ended."""

    def __init__(self, talk: "Talk") -> None:
        super().__init__()
        self.talk = talk
