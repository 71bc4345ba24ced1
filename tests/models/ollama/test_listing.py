import asyncio
from pathlib import Path

import pytest

from rune.errors import CapabilityMissingError, ContextTruncatedError, ModelError, ModelNotFoundError, ProtocolError
from rune.models.ollama.transport import OllamaTransport
from tests.models.transport_contract import DEADLINE
from tests.ollama_server import Drop, OllamaServer, Reply, ServedModel, answers, fails, page, recorded, stream

DATA = Path(__file__).parents[2] / "data" / "ollama"


async def test_models_are_listed_in_the_servers_order_and_remote_ones_are_marked(server: OllamaServer) -> None:
    server.models = [
        ServedModel("a:latest"),
        ServedModel("big:120b-cloud"),
        ServedModel("big:cloud"),
        ServedModel("passed-on:latest", remote_host="https://example.com"),
        ServedModel("vectors:latest", ("embedding",)),
    ]
    transport = OllamaTransport(server.url)
    listed = await transport.models()
    assert [(info.name, info.remote) for info in listed] == [
        ("a:latest", False), ("big:120b-cloud", True), ("big:cloud", True), ("passed-on:latest", True),
        ("vectors:latest", False),
    ]  # fmt: skip
    assert listed[-1].capabilities == {"embedding"}
    assert (await transport.describe("passed-on")).remote
    await transport.close()


async def test_a_recorded_list_is_read(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/tags", recorded("tags"))
    listed = {info.name: info for info in await transport.models()}
    found = listed["smollm2:135m"]
    assert found.digest.startswith("fd5f44c0b5af")
    assert (found.parameters, found.quantisation, found.family) == ("134.52M", "Q4_1", "llama")
    assert found.size == 98_362_745
    assert not any(info.remote for info in listed.values())


@pytest.mark.parametrize(
    ("name", "capabilities", "length"),
    [
        ("show_smollm2", {"chat"}, 8192),
        ("show_qwen", {"chat", "tools"}, 32768),
        ("show_qwen_native", {"chat", "tools"}, 32768),
        ("show_qwen_tools", {"chat", "tools"}, 32768),
        ("show_embed", {"embedding"}, 8192),
    ],
)
async def test_a_recorded_description_is_read(
    server: OllamaServer, transport: OllamaTransport, name: str, capabilities: set[str], length: int
) -> None:
    server.reply("/api/show", Reply([(DATA / f"{name}.response.json").read_bytes()], framing="length"))
    info = await transport.describe("small:1b")
    assert info.capabilities == capabilities
    assert info.context_length == length
    assert (info.name, info.size, info.digest) == ("small:1b", 98_362_809, "d" * 64)


@pytest.mark.parametrize(
    ("says", "capabilities"),
    [({"template": "{{ if .Tools }}", "details": None}, {"chat", "tools"}), ({"model_info": []}, {"chat"})],
    ids=["a template with tools", "nothing"],
)
async def test_an_older_server_that_lists_no_capabilities_is_read_by_its_template(
    server: OllamaServer, transport: OllamaTransport, says: dict[str, object], capabilities: set[str]
) -> None:
    server.reply("/api/show", answers(says))
    assert (await transport.describe("test")).capabilities == capabilities


async def test_what_is_known_of_exact_weights_is_not_asked_again(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/show", answers({"template": "{{ if .Tools }}", "details": None}))
    first = await transport.describe("test")
    await transport.models()
    assert await transport.describe("test") == first
    assert [request.path for request in server.requests].count("/api/show") == 1


@pytest.mark.parametrize("name", ["show_unknown_404"])
async def test_a_description_of_a_model_that_is_not_there(
    server: OllamaServer, transport: OllamaTransport, name: str
) -> None:
    server.reply("/api/show", recorded(name))
    with pytest.raises(ModelNotFoundError):
        await transport.describe("nosuch")


@pytest.mark.parametrize(
    ("name", "model", "window"),
    [
        ("ps_loaded", "smollm2:135m", 4096),
        ("ps_loaded", "smollm2", None),
        ("ps_empty", "smollm2:135m", None),
        ("ps_two_loaded", "qwen2.5-coder:1.5b-native", 4096),
        ("ps_after_ctx_above_max", "smollm2:135m", 8192),
    ],
)
async def test_the_window_in_force_is_what_the_loaded_model_has(
    server: OllamaServer, transport: OllamaTransport, name: str, model: str, window: int | None
) -> None:
    server.reply("/api/ps", recorded(name))
    assert await transport.window_in_force(model) == window


async def test_a_name_without_a_tag_means_latest(server: OllamaServer, transport: OllamaTransport) -> None:
    server.loaded["test:latest"] = 2048
    assert await transport.window_in_force("test") == 2048
    assert (await transport.describe("test")).name == "test:latest"


async def test_recorded_vectors_are_read_one_for_each_text(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/embed", recorded("embed_ok_batch"))
    vectors = await transport.embed("smollm2-embed:135m", ["a", "b"])
    assert [len(vector) for vector in vectors] == [576, 576]
    assert server.asked("/api/embed")[0].json["truncate"] is False
    with pytest.raises(ProtocolError, match="3 texts were sent and 2 vectors came back"):
        await transport.embed("smollm2-embed:135m", ["a", "b", "c"])


@pytest.mark.parametrize("name", ["embed_smollm2", "embed_qwen"])
async def test_a_model_that_only_chats_has_no_vectors(
    server: OllamaServer, transport: OllamaTransport, name: str
) -> None:
    server.reply("/api/embed", recorded(name))
    with pytest.raises(CapabilityMissingError):
        await transport.embed("test", ["a"])


@pytest.mark.parametrize(
    "vectors", [None, {}, [], [[]], [["a"]], [[1.0], [2.0]], ["x"], [[None]], [[1.0, [2.0]]]]
)  # fmt: skip
async def test_vectors_that_do_not_fit_are_refused(
    server: OllamaServer, transport: OllamaTransport, vectors: object
) -> None:
    server.reply("/api/embed", answers({"embeddings": vectors}))
    with pytest.raises(ProtocolError):
        await transport.embed("test", ["a"])


async def test_no_texts_ask_nothing_and_a_text_over_the_window_is_an_error(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    assert await transport.embed("test", []) == []
    assert server.requests == []
    server.reply("/api/embed", fails(400, "the input length exceeds the context length"))
    with pytest.raises(ContextTruncatedError):
        await transport.embed("test", ["a"])


@pytest.mark.parametrize("path", ["/api/tags", "/api/show", "/api/ps"])
@pytest.mark.parametrize(
    "reply",
    [page(200, "<html>"), page(502, "<html>"), answers([]), answers({"models": 1}), answers({"models": [{}]}),
     stream(b'{"models":', Drop()), Reply([], framing="length")],
)  # fmt: skip
async def test_discovery_that_goes_wrong_is_typed(
    server: OllamaServer, transport: OllamaTransport, path: str, reply: Reply
) -> None:
    server.reply(path, reply)
    asking = {"/api/tags": transport.models, "/api/show": lambda: transport.describe("test")}.get(
        path, lambda: transport.window_in_force("test")
    )
    try:
        async with asyncio.timeout(DEADLINE):
            await asking()
    except ModelError as error:
        assert error.message  # some of these answers say nothing that is wrong for this path


async def test_a_stale_kept_connection_is_made_anew(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/tags", Reply([Drop()], framing="raw"), answers({"models": []}))
    assert await transport.models() == []
