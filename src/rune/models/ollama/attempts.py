"""What is tried once more, changed, when a server could not use the first request (models.md, rules 7 and 14)."""

from typing import Final

import msgspec

from rune.errors import ModelError
from rune.models.ollama.failures import is_unreadable_call, knows_no_level
from rune.models.transport import ChatRequest

# Sampling temperatures for a model whose call could not be read: from the usual 0.8 down, so that it keeps to its
# form; where it was asked for its likeliest words already, others are what may help. Nothing is loaded anew for it.
_CALMER: Final = (0.4, 0.1)
_LEVELS: Final = frozenset({"low", "medium", "high"})


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a call; `calmed` counts how often its temperature was changed."""

    request: ChatRequest
    calmed: int = 0

    @property
    def has_level(self) -> bool:
        """Whether it asks for a level of thinking."""
        return self.request.think in _LEVELS

    def without_level(self) -> "Attempt":
        """Return it with thinking plainly on."""
        return msgspec.structs.replace(self, request=msgspec.structs.replace(self.request, think="on"))

    def after(self, error: ModelError) -> "Attempt | None":
        """Return what to try now that nothing was shown and `error` ended it; None when trying does not help."""
        if self.has_level and knows_no_level(error):
            return self.without_level()
        if is_unreadable_call(error) and self.calmed < len(_CALMER):
            calmer = msgspec.structs.replace(self.request, temperature=_CALMER[self.calmed])
            return Attempt(request=calmer, calmed=self.calmed + 1)
        return None
