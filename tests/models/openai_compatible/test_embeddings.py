"""One vector a text, in order, or a typed error."""

from typing import Any

import pytest

from rune.errors import (
    CapabilityMissingError,
    ProtocolError,
)
from rune.models.openai_compatible.transport import OpenAITransport
from tests.ollama_replies import Reply
from tests.openai_server import (
    EMBEDDINGS,
    OpenAIServer,
    answers,
    fails,
)


async def test_vectors_come_back_in_the_order_of_the_texts(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    assert await openai_transport.embed("test", ["a", "bcd"]) == [[1.0, 1.0], [3.0, 1.0]]
    rows = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1]}]
    openai_server.reply(EMBEDDINGS, answers({"data": rows}))
    assert await openai_transport.embed("test", ["a", "b"]) == [[1.0], [2.0]]
    assert await openai_transport.embed("test", []) == []


@pytest.mark.parametrize(
    "rows",
    [
        "none",
        [],
        [{"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}],
        [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [None]}],
        [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": "packed"}],
        [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}],
    ],
)
async def test_vectors_that_do_not_fit_the_texts_are_refused(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, rows: Any
) -> None:
    openai_server.reply(EMBEDDINGS, answers({"data": rows}))
    with pytest.raises(ProtocolError):
        await openai_transport.embed("test", ["a", "b"])


@pytest.mark.parametrize(
    "reply",
    [
        fails(501, message="This server does not support embeddings. Start it with `--embeddings`"),
        fails(404, message="Not Found"),
        fails(400, message="The model does not support Embeddings API"),
    ],
)
async def test_a_server_without_embeddings_says_so(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, reply: Reply
) -> None:
    openai_server.reply(EMBEDDINGS, reply)
    with pytest.raises(CapabilityMissingError) as caught:
        await openai_transport.embed("test", ["a"])
    assert caught.value.capability == "embedding"
