"""What could be typed next in a slash command."""

import msgspec


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One way to go on: `text` is what would stand there, `note` one line about it (may hold foreign text)."""

    text: str
    note: str = ""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """All ways to go on with the word that begins at `start` (characters into the line); a surface narrows them
    down to what was typed of it.
    """

    start: int = 0
    options: tuple[Completion, ...] = ()
