"""Which keys are text, in what terminals send for them."""

from collections.abc import MutableMapping
from typing import Final, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS  # pyright: ignore[reportPrivateUsage] - see teach_alt_enter
from textual.events import Key
from textual.keys import Keys

# The last two are Shift+Enter and Alt+Enter of a terminal with xterm's modifyOtherKeys.
LINE_FEED_KEYS: Final = frozenset({"ctrl+j", "alt+enter", "shift+enter", "shift+\r", "\r"})
_MODIFIERS: Final = ("ctrl+", "alt+", "super+", "hyper+", "meta+")
_FIRST_PRINTABLE, _DELETE = 0x20, 0x7F


def typed_character(event: Key) -> str | None:
    """Return what a key puts into a text, None for a key that does something else. Enter and Tab are such keys.

    More than printable characters: a joiner is part of an emoji, and what is invisible is to be seen, not lost.
    """
    if event.key in LINE_FEED_KEYS:
        return "\n"
    char = event.character
    if char is None or len(char) != 1 or event.key.startswith(_MODIFIERS):
        return None
    return char if ord(char) >= _FIRST_PRINTABLE and ord(char) != _DELETE else None


def teach_alt_enter() -> None:
    """Have Textual read ESC CR, which is Alt+Enter in terminals without the Kitty protocol, as a line feed.

    Its table has no such row, and without it Alt+Enter would be taken for Enter, and send.
    """
    table = cast("MutableMapping[str, tuple[Keys, ...]]", ANSI_SEQUENCES_KEYS)
    table.setdefault("\x1b\r", (Keys.ControlJ,))
