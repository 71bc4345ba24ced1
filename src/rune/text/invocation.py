"""By what command a person started Rune: what is suggested must be what works in that shell."""

from collections.abc import Mapping
from typing import Final

VARIABLE: Final = "RUNE_COMMAND"
_NAME: Final = "rune"


def command_of(environ: Mapping[str, str]) -> str:
    """Return the command as a shell reads it: what `scripts/rune` was called by, else the plain name."""
    named = environ.get(VARIABLE, "")
    if not named:
        return _NAME
    import shlex  # noqa: PLC0415 - only a checkout needs it, and the first picture does not wait for it

    return shlex.quote(named) if named.isprintable() else _NAME


def suggested(text: str, command: str) -> str:
    """Return Rune's own words with that command in place of the plain name: in backticks, and in a line to go on by."""
    if text.startswith(f"{_NAME} -r "):
        return f"to go on: {command}{text.removeprefix(_NAME)}"
    return text.replace(f"`{_NAME} ", f"`{command} ")
