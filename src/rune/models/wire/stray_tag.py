"""Some models leak the end of their thinking, `</think>`, into the answer (models.md, rule 7)."""

from typing import Final

_OPENER: Final = "<think>"
_CLOSER: Final = "</think>"
# Where one of these stands before it, the answer speaks about the tag.
_QUOTES: Final = frozenset("`\"'")


class StrayCloserFilter:
    """Cuts the first `</think>` that was never opened out of streamed text; all else passes unchanged.

    What might be the beginning of a tag is held back until more has come: `flush` gives it out. However the
    text is cut into pieces, what comes out is the same.
    """

    def __init__(self) -> None:
        self._held: str = ""
        self._before: str = ""
        self._settled = False

    def feed(self, text: str) -> str:
        """Return what of the answer can be shown now; may be empty."""
        if self._settled:
            return text
        text = self._held + text
        position = min((found for tag in (_OPENER, _CLOSER) if (found := text.find(tag)) >= 0), default=-1)
        if position < 0:
            shown = text[: len(text) - _beginning_of_a_tag(text)]
            self._held = text[len(shown) :]
            self._before = shown[-1:] or self._before
            return shown
        self._settled, self._held = True, ""
        before, after = text[:position], text[position:]
        quoted = (before or self._before)[-1:] in _QUOTES
        return text if quoted or after.startswith(_OPENER) else before + after.removeprefix(_CLOSER)

    def flush(self) -> str:
        """Return what is held back; it never became a tag."""
        text, self._held = self._held, ""
        return text


def _beginning_of_a_tag(text: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of a tag."""
    for length in range(min(len(_CLOSER) - 1, len(text)), 0, -1):
        end = text[-length:]
        if _CLOSER.startswith(end) or _OPENER.startswith(end):
            return length
    return 0
