"""What a person can do about a failure, as it is done in the app, and in the shell that it was started from."""

import os
from typing import Final

from rune.errors import CHOOSE_ANOTHER
from rune.text.invocation import command_of, suggested

_BY_KEY: Final = "Ctrl+L chooses another."
# Failures of a model that may be gone for good: whatever else is hinted at, another one is a key away.
GONE: Final = frozenset({"ModelNotFoundError", "ModelUnavailableError"})


def as_typed(text: str) -> str:
    """Return Rune's own words with its commands as this person has to type them."""
    return suggested(text, command_of(os.environ))


def in_the_app(hint: str, error_type: str = "") -> str:
    """Return a hint in which models are chosen by a key; `error_type` is the name of the failure, "" for any."""
    said = as_typed(hint).replace(CHOOSE_ANOTHER, _BY_KEY)
    return f"{said} {_BY_KEY}".strip() if error_type in GONE and _BY_KEY not in said else said
