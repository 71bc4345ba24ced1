"""Which failed model calls of a turn deserve one more try, under the constrained protocol. Pure."""

import re
from typing import Final

from rune.errors import CapabilityMissingError, EmptyOutputError, ModelError, ServerError, UnusableCallError
from rune.records.models import ActionProtocol

# How servers say that they cannot make a call out of what the model wrote.
_PARSING: Final = re.compile(
    r"error parsing tool call|returned invalid tool call|tool call parsing failed|failed to parse (tool call|input at)",
    re.IGNORECASE,
)


def is_lost_call(error: ModelError, *, protocol: ActionProtocol) -> bool:
    """Say whether the model asked for a tool, and the call could not be used or did not arrive."""
    match error:
        case UnusableCallError():
            return True
        case EmptyOutputError(generated=generated):
            # Tokens that never arrived: the server's parser swallowed a call (models.md, rule 15). One that is held
            # to a schema parses nothing, and what it counts are blanks.
            return bool(generated) and protocol == "native"
        case ServerError(text=text):
            return _PARSING.search(text) is not None
        case _:
            return False


def deserves_second_try(
    error: ModelError, *, protocol: ActionProtocol, tools_offered: bool, shown: bool, tried: bool
) -> bool:
    """Say whether to ask once more, constrained. `shown`: a piece of the answer's text was shown to the person, who
    would then read two beginnings; `tried`: this turn had its second try (models.md, Repair: one a turn).
    """
    if protocol == "constrained" or not tools_offered or shown or tried:
        return False
    if isinstance(error, CapabilityMissingError):
        return error.capability == "tools"
    return is_lost_call(error, protocol=protocol)
