"""A server that is not asked at all: it is not on this machine, and `local_only` is on (models.md, Choosing)."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, NoReturn

from rune.errors import RemoteRefusedError
from rune.models.transport import ChatChunk, ChatRequest, LoadedModel, ModelInfo
from rune.records.traces import Dialect

_ALLOW: Final = "Set `model.local_only: false` to use it: what you write is then sent there."


class RefusedServer:
    """ChatTransport in place of a remote server: everything but `close` raises RemoteRefusedError, and nothing is
    sent, not even a question for its models. `address` as a person reads it, without a key.
    """

    def __init__(self, address: str, *, provider: str, dialect: Dialect) -> None:
        self._address = address
        self._provider = provider
        self._dialect: Dialect = dialect

    @property
    def provider(self) -> str:
        """The server's own."""
        return self._provider

    @property
    def dialect(self) -> Dialect:
        """The server's own."""
        return self._dialect

    async def models(self) -> list[ModelInfo]:
        """Raise RemoteRefusedError."""
        self._refuse()

    async def describe(self, model: str) -> ModelInfo:
        """Raise RemoteRefusedError."""
        del model
        self._refuse()

    async def window_in_force(self, model: str) -> int | None:
        """Raise RemoteRefusedError."""
        del model
        self._refuse()

    async def loaded(self) -> list[LoadedModel]:
        """Raise RemoteRefusedError."""
        self._refuse()

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        """Raise RemoteRefusedError when it is begun."""
        del request
        self._refuse()
        yield  # what makes this a generator; never reached

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Raise RemoteRefusedError."""
        del model, texts
        self._refuse()

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _refuse(self) -> NoReturn:
        raise RemoteRefusedError(
            f"{self._address} is not on this machine and was not asked: `model.local_only` is on", hint=_ALLOW
        )
