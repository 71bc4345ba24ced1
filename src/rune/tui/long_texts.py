"""How much is shown at first of what a person sent: a long paste would push everything else out of sight."""

from typing import Final

# More than either in one message, and it is folded to its head.
LONG_LINES: Final = 40
LONG_CHARS: Final = 8_000
HEAD_LINES: Final = 12
HEAD_CHARS: Final = 2_000


def head_of(text: str) -> int:
    """Return how many characters are shown at first: all of them, unless it is very long."""
    if len(text) <= LONG_CHARS and text.count("\n", 0, -1) < LONG_LINES:
        return len(text)
    end = -1
    for _ in range(HEAD_LINES):
        end = text.find("\n", end + 1, HEAD_CHARS)
        if end < 0:
            return HEAD_CHARS
    return end + 1


def rest_words(text: str, head: int) -> str:
    """Return how much there is behind the head: lines where it ends at one."""
    if text[head - 1] != "\n":
        return f"{len(text) - head:,} more characters"
    lines = text.count("\n", head, -1) + 1
    return f"{lines:,} more line{'' if lines == 1 else 's'}"
