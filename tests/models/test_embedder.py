from collections.abc import Sequence

import pytest

from rune.errors import (
    CapabilityMissingError,
    ContextTruncatedError,
    ModelNotFoundError,
    ModelUnavailableError,
    ProtocolError,
)
from rune.models.embedder import Embedder, EmbeddingIdentity, TransportEmbedder
from rune.models.ollama.transport import OllamaTransport
from tests.ollama_server import OllamaServer, answers, fails, recorded


@pytest.fixture
def embedder(transport: OllamaTransport) -> Embedder:
    return TransportEmbedder(transport, "test", batch=3)


def sent(server: OllamaServer) -> list[Sequence[str]]:
    return [request.json["input"] for request in server.asked("/api/embed")]


async def test_texts_go_in_batches_and_their_vectors_keep_their_order(server: OllamaServer, embedder: Embedder) -> None:
    vectors = await embedder.embed(["a" * length for length in range(1, 8)])
    assert [vector[0] for vector in vectors] == [1, 2, 3, 4, 5, 6, 7]
    assert [len(batch) for batch in sent(server)] == [3, 3, 1]
    assert all(request.json["truncate"] is False for request in server.asked("/api/embed"))


async def test_an_identity_is_the_exact_weights_and_the_length_of_a_vector(
    server: OllamaServer, embedder: Embedder
) -> None:
    expected = EmbeddingIdentity(model="test:latest", digest="d" * 64, dimensions=2)
    assert await embedder.identity() == expected
    assert await embedder.identity() == expected
    assert len(sent(server)) == 1


async def test_recorded_vectors_have_the_length_that_they_have(server: OllamaServer, embedder: Embedder) -> None:
    server.reply("/api/embed", recorded("embed_ok_single"))
    assert (await embedder.identity()).dimensions == 576


async def test_a_model_that_was_fetched_again_has_another_identity(
    server: OllamaServer, transport: OllamaTransport, embedder: Embedder
) -> None:
    before = await embedder.identity()
    server.models[0].digest = "e" * 64
    server.reply("/api/embed", answers({"embeddings": [[1.0, 2.0, 3.0]]}))
    await transport.models()
    after = await embedder.identity()
    assert (before.digest, before.dimensions) == ("d" * 64, 2)
    assert (after.digest, after.dimensions) == ("e" * 64, 3)
    assert await embedder.embed(["a"]) == [[1.0, 2.0, 3.0]]


async def test_vectors_of_another_length_than_before_are_refused(server: OllamaServer, embedder: Embedder) -> None:
    await embedder.embed(["a"])
    server.reply("/api/embed", answers({"embeddings": [[1.0, 2.0, 3.0]]}))
    with pytest.raises(ProtocolError, match="3 numbers, and 2 before"):
        await embedder.embed(["a"])


@pytest.mark.parametrize("vectors", [[], [[1.0, 2.0]] * 2, [[]], [["x", 1.0]], [[1.0, None]]])
async def test_vectors_that_do_not_fit_are_refused(
    server: OllamaServer, embedder: Embedder, vectors: list[object]
) -> None:
    server.reply("/api/embed", answers({"embeddings": vectors}))
    with pytest.raises(ProtocolError):
        await embedder.embed(["a"])


class _Odd(OllamaTransport):
    """A transport that does not look at what it got."""

    def __init__(self, vectors: list[list[float]]) -> None:
        super().__init__("http://127.0.0.1:1")
        self.vectors = vectors

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        return self.vectors


@pytest.mark.parametrize("vectors", [[], [[1.0], [1.0]], [[]], [[float("nan")]], [[float("inf"), 1.0]]])
async def test_any_transport_is_checked(vectors: list[list[float]]) -> None:
    with pytest.raises(ProtocolError):
        await TransportEmbedder(_Odd(vectors), "m").embed(["a"])


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_text_without_a_word_has_no_vector(server: OllamaServer, embedder: Embedder, text: str) -> None:
    with pytest.raises(ValueError, match="text 2 of 2"):
        await embedder.embed(["a", text])
    assert sent(server) == []


async def test_no_texts_ask_nothing(server: OllamaServer, embedder: Embedder) -> None:
    assert await embedder.embed([]) == []
    assert server.requests == []


async def test_every_failure_is_typed(server: OllamaServer, transport: OllamaTransport, embedder: Embedder) -> None:
    with pytest.raises(ModelNotFoundError):
        await TransportEmbedder(transport, "nosuch").embed(["a"])
    server.reply("/api/embed", recorded("embed_qwen"))
    with pytest.raises(CapabilityMissingError):
        await embedder.embed(["a"])
    server.reply("/api/embed", fails(400, "the input length exceeds the context length"))
    with pytest.raises(ContextTruncatedError):
        await embedder.embed(["a"])
    await server.close()
    with pytest.raises(ModelUnavailableError):
        await embedder.embed(["a"])
