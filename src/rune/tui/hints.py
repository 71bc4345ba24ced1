"""What a person can do about a failure, as it is done in the app."""

from typing import Final

from rune.errors import CHOOSE_ANOTHER

_BY_KEY: Final = "Ctrl+L chooses another."
# Failures of a model that may be gone for good: whatever else is hinted at, another one is a key away.
GONE: Final = frozenset({"ModelNotFoundError", "ModelUnavailableError"})


def in_the_app(hint: str, error_type: str = "") -> str:
    """Return a hint in which models are chosen by a key; `error_type` is the name of the failure, "" for any."""
    said = hint.replace(CHOOSE_ANOTHER, _BY_KEY)
    return f"{said} {_BY_KEY}".strip() if error_type in GONE and _BY_KEY not in said else said
