"""A server's window as arithmetic: which messages it drops, what it cuts from the middle, and what it counts.

After Ollama's source: whole messages go from the front until the prompt fits (system messages and the last one stay);
what is then still as large as the window loses its middle, down to half of it. True counts come from real tokenizers
(tests/data/tokens), estimates from Rune's own.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rune.models.transport import ChatRequest, LoadOptions
from rune.records.usage import Usage
from rune.text.tokens import MESSAGE_OVERHEAD, Profile, estimate

TOKENS = Path(__file__).parents[1] / "data" / "tokens"
MEASURED = json.loads((TOKENS / "counts.json").read_text(encoding="utf-8"))
TOKENIZERS: dict[str, Profile] = MEASURED["tokenizers"]
# Everything that was measured; what people and tools write to a coding agent comes more often.
KINDS = [*MEASURED["counts"], *["english", "python", "json_compact", "logs", "markdown", "diff", "go", "shell"] * 4]
ROUND_A_MESSAGE = 4

Counting = Literal["told", "whole", "without cached"]


@dataclass(frozen=True)
class Piece:
    """A message: its text, and its true tokens by one tokenizer."""

    role: str
    text: str
    tokens: int
    estimated: int


class Texts:
    """Draws messages of real text with known counts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - which text comes next
        self.tokenizer = self.random.choice(list(TOKENIZERS))
        self._column = list(TOKENIZERS).index(self.tokenizer)
        # Half of the servers do not say which vocabulary a model has: then the smaller one is assumed.
        self._profile: Profile = TOKENIZERS[self.tokenizer] if self.random.random() < 0.5 else "small"

    def message(self, role: str, chunks: int) -> Piece:
        """Return a message of so many pieces of 500 characters; 0 is a few words."""
        if chunks == 0:
            text, tokens = "go on, please", 4
        else:
            drawn = [self._chunk() for _ in range(chunks)]
            text, tokens = "".join(part for part, _ in drawn), sum(count for _, count in drawn)
        estimated = estimate(text, self._profile) + MESSAGE_OVERHEAD
        return Piece(role, text, tokens + ROUND_A_MESSAGE, estimated)

    def _chunk(self) -> tuple[str, int]:
        kind = self.random.choice(KINDS)
        number = self.random.randrange(len(MEASURED["counts"][kind]))
        text = _text_of(kind)[number * 500 : number * 500 + 500]
        return text, MEASURED["counts"][kind][number][self._column]


_READ: dict[str, str] = {}


def _text_of(kind: str) -> str:
    if kind not in _READ:
        _READ[kind] = (TOKENS / f"{kind}.txt").read_text(encoding="utf-8")
    return _READ[kind]


@dataclass
class CuttingServer:
    """`window` is the one in force. `read` gives what the server says it read, and whether it cut the prompt."""

    window: int
    counting: Counting
    chance: random.Random
    _cached: list[Piece] = field(default_factory=list[Piece])

    def read(self, messages: Sequence[Piece]) -> tuple[Usage, bool]:
        kept = self._dropped(messages)
        whole = sum(piece.tokens for piece in kept)
        cut = len(kept) < len(messages)
        if whole >= self.window:
            keep, cut = self.chance.choice((4, 5)), True
            whole = self.window - (self.window - keep) // 2
        cached = min(self._in_cache(kept), whole - 1)
        self._cached = list(kept)
        if self.counting == "without cached":
            return Usage(calls=1, prompt_tokens=whole - cached), cut
        return Usage(calls=1, prompt_tokens=whole, cached_tokens=cached if self.counting == "told" else None), cut

    def evict(self) -> None:
        """Another prompt took the cache."""
        self._cached = []

    def _dropped(self, messages: Sequence[Piece]) -> list[Piece]:
        kept = list(messages)
        while sum(piece.tokens for piece in kept) > self.window:
            oldest = next((n for n, piece in enumerate(kept[:-1]) if piece.role != "system"), None)
            if oldest is None:
                break
            del kept[oldest]
        return kept

    def _in_cache(self, kept: Sequence[Piece]) -> int:
        same = 0
        for before, now in zip(self._cached, kept, strict=False):
            if before is not now:
                break
            same += now.tokens
        return same


def asked(messages: Sequence[Piece], window: int) -> ChatRequest:
    """Return the request that carries these messages; `window` is the one asked for."""
    body = [{"role": piece.role, "content": piece.text} for piece in messages]
    return ChatRequest(
        model="m",
        messages=json.dumps(body).encode(),
        tools=b"[]",
        options=LoadOptions(num_ctx=window),
        estimated=sum(piece.estimated for piece in messages),
    )
