"""A loopback server and a transport that speaks to it."""

from collections.abc import AsyncIterator

import pytest

from rune.models.openai_compatible.address import ServerAddress
from rune.models.openai_compatible.transport import OpenAITransport
from tests.models.conftest import Pauses
from tests.openai_server import OpenAIServer

KEY = "key-of-the-test-0123456789"


def address(server: OpenAIServer, key: str = KEY) -> ServerAddress:
    return ServerAddress.checked(server.base_url, source="test", key=key)


@pytest.fixture
async def openai_server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(key=KEY) as server:
        yield server


@pytest.fixture
async def openai_transport(openai_server: OpenAIServer, pauses: Pauses) -> AsyncIterator[OpenAITransport]:
    transport = OpenAITransport(address(openai_server), sleep=pauses)
    yield transport
    await transport.close()
