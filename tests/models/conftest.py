"""A loopback Ollama and a transport that speaks to it."""

from collections.abc import AsyncIterator

import pytest

from rune.models.ollama.transport import OllamaTransport
from tests.ollama_server import OllamaServer, ServedModel


class Pauses:
    """Stands in for sleeping and keeps what was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer([ServedModel("test:latest"), ServedModel("small:1b", ("completion",), 2048)]) as server:
        yield server


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def transport(server: OllamaServer, pauses: Pauses) -> AsyncIterator[OllamaTransport]:
    transport = OllamaTransport(server.url, sleep=pauses)
    yield transport
    await transport.close()
