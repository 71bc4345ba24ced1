"""Texts as vectors, for whoever compares meanings: checked, in batches, and with what they may be compared with."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import msgspec

from rune.errors import ProtocolError
from rune.models.transport import ChatTransport

BATCH: Final = 32

_PROBE: Final = "dimensions"


class EmbeddingIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What made a vector: only vectors of the same identity can be compared. `digest` names the exact weights, for
    a model that was fetched again keeps its name; "" where the server gives none.
    """

    model: str
    digest: str
    dimensions: int


class Embedder(Protocol):
    """Makes vectors of texts."""

    async def identity(self) -> EmbeddingIdentity:
        """Return what its vectors are made by now. Raises ModelError."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order, all finite and of one length. Raises ModelError, and ValueError for a
        text without a word in it: it has no meaning to compare.
        """
        ...


class TransportEmbedder:
    """An Embedder over a model server. `batch` texts go in one request: a server reads them one after the other, and
    one that fails costs its whole batch.
    """

    def __init__(self, transport: ChatTransport, model: str, *, batch: int = BATCH) -> None:
        self._transport = transport
        self._model = model
        self._batch = max(1, batch)
        self._dimensions: dict[str, int] = {}
        self._digest = ""

    async def identity(self) -> EmbeddingIdentity:
        """Return what its vectors are made by now; asks for one vector where their length is not known yet."""
        info = await self._transport.describe(self._model)
        self._digest = info.digest
        if info.digest not in self._dimensions:
            await self.embed([_PROBE])
        return EmbeddingIdentity(model=info.name, digest=info.digest, dimensions=self._dimensions[info.digest])

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text (see `Embedder.embed`).

        Raises CapabilityMissingError, ModelNotFoundError, ModelUnavailableError; ContextTruncatedError for a text over
        the model's window, which is never cut in silence; ProtocolError for vectors that are too few, too many, of
        another length than before, or not finite.
        """
        if blank := [number for number, text in enumerate(texts, start=1) if not text.strip()]:
            raise ValueError(f"text {blank[0]} of {len(texts)} holds no word")
        vectors: list[list[float]] = []
        for some in self._batches(texts):
            vectors += self._checked(await self._transport.embed(self._model, some), len(some))
        return vectors

    def _batches(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        for start in range(0, len(texts), self._batch):
            yield texts[start : start + self._batch]

    def _checked(self, vectors: list[list[float]], expected: int) -> list[list[float]]:
        if len(vectors) != expected:
            raise ProtocolError(f"{expected} texts were sent and {len(vectors)} vectors came back")
        for vector in vectors:
            if not vector or not all(map(math.isfinite, vector)):
                raise ProtocolError(f"{self._model} gave a vector that is empty or holds a number that is none")
            known = self._dimensions.setdefault(self._digest, len(vector))
            if len(vector) != known:
                raise ProtocolError(
                    f"{self._model} gave a vector of {len(vector):,} numbers, and {known:,} before",
                    hint="The model behind that name has changed: ask for its identity again.",
                )
        return vectors
