"""Thinking that leaks into the answer: tags round it, or the stray end of it (models.md, rule 7).

A server splits thinking off by a model's own marks; where it does not know them, or the model thinks although it
was told not to, they stand in the answer's text. Each family of marks below is one that a released model uses:
`<think>` DeepSeek R1, Qwen 3 and most others; `<thought>` EXAONE Deep; `[THINK]` Magistral and Ministral 3;
`<seed:think>` Seed OSS; `<|START_THINKING|>` Command R7B; `<|channel>thought` Gemma 4; the last one gpt-oss.
"""

from typing import Final

from rune.models.transport import TextDelta, ThinkingDelta

_MARKS: Final = {
    "<think>": "</think>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
}
# What a family writes between its thinking and its answer; it belongs to neither.
_HEADERS: Final = (
    "<|START_RESPONSE|>",
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
)
_OPENER: Final = "<think>"
_CLOSER: Final = "</think>"
# Where one of these stands before it, the answer speaks about the tag.
_QUOTES: Final = frozenset("`\"'")


class LeakedThinkingFilter:
    """Sorts streamed text into the answer and the thinking that leaked into it.

    An answer that *begins* with one of the marks is thinking up to its end mark; blank space round the thinking
    belongs to nobody. Later marks are text, for an answer may speak of them, but for the first `</think>` that was
    never opened and is not quoted: it is cut out. What might be the beginning of a mark is held back until more has
    come. However the text is cut into pieces, the joined answer and the joined thinking are the same.
    """

    def __init__(self) -> None:
        self._held: str = ""
        self._blanks: list[str] = []
        self._before: str = ""
        self._closer: str = ""
        self._at_start = True
        self._trim = False
        self._settled = False

    def feed(self, text: str) -> list[TextDelta | ThinkingDelta]:
        """Return what can be shown now; may be empty, and no delta in it is."""
        pieces: list[TextDelta | ThinkingDelta] = []
        if text.isspace() and (self._closer or self._at_start) and not self._held.strip():
            # Nothing is decided by it, and looking at all of it again each time would take ever longer.
            self._blanks.append(text)
            return []
        text = self._taken() + text
        while text:
            if self._closer:
                text = self._think(text, pieces)
            elif self._at_start:
                text = self._begin(text)
            else:
                if shown := self._answer(text):
                    pieces.append(TextDelta(shown))
                break
        return pieces

    def flush(self) -> list[TextDelta | ThinkingDelta]:
        """Return what is held back; it never became a mark."""
        text = self._taken()
        if self._trim and not text.strip():
            return []
        if self._closer:
            self._trim = False
            return [ThinkingDelta(text)] if text else []
        if text.strip():
            self._at_start = False
        return [TextDelta(text)] if text else []

    def _taken(self) -> str:
        """Return what is held back, and hold nothing."""
        text, self._held, self._blanks = "".join([self._held, *self._blanks]), "", []
        return text

    def _think(self, text: str, pieces: list[TextDelta | ThinkingDelta]) -> str:
        """Take thinking up to its end; returns what stands behind it."""
        if self._trim:
            text = text.lstrip()
            self._trim = not text
        end = text.find(self._closer)
        shown = text[: end if end >= 0 else len(text) - _unfinished(text, (self._closer,))]
        # Blank space at the end of the thinking is held back: it may be the one before the end mark.
        shown = shown.rstrip()
        if shown:
            pieces.append(ThinkingDelta(shown))
        if end < 0:
            self._held = text[len(shown) :]
            return ""
        after = text[end + len(self._closer) :]
        self._closer, self._trim, self._settled = "", True, True
        return after

    def _begin(self, text: str) -> str:
        """Look whether the answer begins with a mark; returns what is still to be sorted."""
        begun = text.lstrip()
        for opener, closer in _MARKS.items():
            if begun.startswith(opener):
                self._closer, self._trim = closer, True
                return begun.removeprefix(opener)
        for header in _HEADERS:
            if begun.startswith(header):
                self._trim = True
                return begun.removeprefix(header)
        if any(mark.startswith(begun) for mark in (*_MARKS, *_HEADERS)):
            self._held = text
            return ""
        self._at_start = False
        return begun if self._trim else text

    def _answer(self, text: str) -> str:
        if self._settled:
            return text
        position = min((found for tag in (_OPENER, _CLOSER) if (found := text.find(tag)) >= 0), default=-1)
        if position < 0:
            shown = text[: len(text) - _unfinished(text, (_OPENER, _CLOSER))]
            self._held = text[len(shown) :]
            self._before = shown[-1:] or self._before
            return shown
        self._settled = True
        before, after = text[:position], text[position:]
        quoted = (before or self._before)[-1:] in _QUOTES
        return text if quoted or after.startswith(_OPENER) else before + after.removeprefix(_CLOSER)


def _unfinished(text: str, tags: tuple[str, ...]) -> int:
    """Return how many characters at the end of `text` may be the beginning of one of `tags`."""
    for length in range(min(max(map(len, tags)) - 1, len(text)), 0, -1):
        if any(tag.startswith(text[-length:]) for tag in tags):
            return length
    return 0
