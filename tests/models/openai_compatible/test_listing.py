"""What four kinds of servers say of their models, and what is made of it."""

from typing import Any

import pytest

from rune.errors import ModelError, ModelNotFoundError, ModelTimeoutError, ProtocolError
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import LoadedModel, ModelInfo
from tests.models.transport_contract import collect, request
from tests.ollama_replies import Reply, page
from tests.openai_server import CHAT, MODELS, PROPS, STUDIO, OpenAIServer, answers, fails

# As a real llama.cpp server lists it.
LLAMA: dict[str, Any] = {
    "id": "/models/Small-Q4.gguf",
    "object": "model",
    "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
    "owned_by": "llamacpp",
    "meta": {"n_ctx": 1024, "n_ctx_train": 8192, "n_params": 134515008, "size": 96576768, "ftype": "Q4_1"},
}


async def listed(server: OpenAIServer, transport: OpenAITransport, *rows: dict[str, Any]) -> list[ModelInfo]:
    server.rows = list(rows)
    return await transport.models()


async def test_a_list_by_the_book_gives_models_that_chat_and_nothing_else_is_known(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    (info,) = await listed(openai_server, openai_transport, {"id": "some/model:7b", "object": "model"})
    assert info == ModelInfo(
        name="openai-compatible/some/model:7b",
        provider="openai-compatible",
        capabilities=frozenset({"chat"}),
        remote=False,
    )
    assert await openai_transport.window_in_force("some/model:7b") is None
    assert await openai_transport.loaded() == []


async def test_vllm_says_how_much_it_serves(openai_server: OpenAIServer, openai_transport: OpenAITransport) -> None:
    row = {"id": "Qwen/Qwen3-8B", "owned_by": "vllm", "max_model_len": 16384}
    (info,) = await listed(openai_server, openai_transport, row)
    assert (info.context_length, info.capabilities) == (16384, {"chat"})
    assert await openai_transport.window_in_force("Qwen/Qwen3-8B") == 16384
    assert await openai_transport.loaded() == [
        LoadedModel(name="openai-compatible/Qwen/Qwen3-8B", window=16384, size=None, on_gpu=None)
    ]
    assert not openai_server.asked(STUDIO)


async def test_llama_says_its_window_and_is_called_by_its_files_name(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(PROPS, answers({"chat_template": "{{ tools }} {{ enable_thinking }}"}))
    (info,) = await listed(openai_server, openai_transport, LLAMA)
    assert info.name == "openai-compatible/Small-Q4"
    assert (info.context_length, info.parameters, info.quantisation) == (1024, "134.52M", "Q4_1")
    assert info.capabilities == {"chat", "tools", "thinking"}
    assert await openai_transport.window_in_force("Small-Q4") == 1024
    assert await openai_transport.loaded() == [
        LoadedModel(name="openai-compatible/Small-Q4", window=1024, size=96576768, on_gpu=None)
    ]
    await collect(openai_transport, request(info.name))
    sent = openai_server.asked(CHAT)[0].json
    assert sent["model"] == "/models/Small-Q4.gguf"
    assert sent["return_progress"] is True


@pytest.mark.parametrize(
    ("props", "capabilities"),
    [
        ({"chat_template_caps": {"supports_tools": False}, "chat_template": "tools"}, {"chat"}),
        ({"chat_template_caps": {"supports_tools": True}, "chat_template": ""}, {"chat", "tools"}),
        ({"modalities": {"vision": True}}, {"chat", "vision"}),
        ({}, {"chat"}),
    ],
)
async def test_what_llamas_template_can_is_what_it_says_and_else_what_it_names(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, props: dict[str, Any], capabilities: set[str]
) -> None:
    openai_server.reply(PROPS, answers(props))
    (info,) = await listed(openai_server, openai_transport, LLAMA)
    assert info.capabilities == capabilities


async def test_an_older_llama_says_its_window_only_in_its_props(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(PROPS, answers({"default_generation_settings": {"n_ctx": 2048}}))
    row = {"id": "a", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}
    (info,) = await listed(openai_server, openai_transport, row)
    assert info.context_length == 2048
    assert await openai_transport.window_in_force("a") == 2048


async def test_llama_for_embeddings_does_not_chat(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(
        MODELS, answers({"models": [{"model": "a", "capabilities": ["embedding"]}], "data": [{"id": "a"}]})
    )
    (info,) = await openai_transport.models()
    assert info.capabilities == {"embedding"}


async def test_studio_says_what_is_loaded_and_what_is_only_for_embeddings(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    row = {"type": "llm", "arch": "qwen3", "quantization": "4bit", "max_context_length": 32768}
    openai_server.reply(
        STUDIO,
        answers(
            {
                "data": [
                    {"id": "a", **row, "state": "loaded", "loaded_context_length": 8192, "capabilities": ["tool_use"]},
                    {"id": "b", **row, "type": "vlm", "state": "not-loaded"},
                    {"id": "c", "type": "embeddings", "state": "not-loaded"},
                ]
            }
        ),
    )
    found = await listed(openai_server, openai_transport, *({"id": name} for name in "abcd"))
    assert [(info.context_length, set(info.capabilities)) for info in found] == [
        (8192, {"chat", "tools"}),
        (32768, {"chat", "vision"}),
        (None, {"embedding"}),
        (None, {"chat"}),
    ]
    assert (found[0].family, found[0].quantisation) == ("qwen3", "4bit")
    assert [await openai_transport.window_in_force(name) for name in "abcd"] == [8192, None, None, None]
    assert await openai_transport.loaded() == [
        LoadedModel(name="openai-compatible/a", window=8192, size=None, on_gpu=None)
    ]


async def test_who_is_no_studio_is_asked_for_its_list_once(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    for _ in range(3):
        await openai_transport.models()
    assert len(openai_server.asked(STUDIO)) == 1


@pytest.mark.parametrize(
    ("row", "capabilities", "length"),
    [
        ({"context_length": 4096, "supported_parameters": ["tools", "reasoning"]}, {"chat", "tools", "thinking"}, 4096),
        ({"context_window": 4096, "architecture": {"input_modalities": ["text", "image"]}}, {"chat", "vision"}, 4096),
        (
            {"max_context_length": 4096, "capabilities": {"completion_chat": True, "function_calling": True}},
            {"chat", "tools"},
            4096,
        ),
        ({"capabilities": {"completion_chat": False}}, {"embedding"}, None),
        ({"type": "embedding"}, {"embedding"}, None),
        ({"context_length": "many", "capabilities": "all", "meta": [], "owned_by": 5}, {"chat"}, None),
        ({"context_length": 0, "meta": {"n_ctx": -1}}, {"chat"}, None),
    ],
)
async def test_what_hosted_servers_add_is_read_and_nonsense_is_nothing(
    openai_server: OpenAIServer,
    openai_transport: OpenAITransport,
    row: dict[str, Any],
    capabilities: set[str],
    length: int | None,
) -> None:
    (info,) = await listed(openai_server, openai_transport, {"id": "a", **row})
    assert (info.capabilities, info.context_length) == (capabilities, length)


async def test_two_files_of_one_name_keep_their_paths(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    found = await listed(openai_server, openai_transport, {"id": "/a/m.gguf"}, {"id": "/b/m.gguf"}, {"id": "n.gguf"})
    assert [info.name for info in found] == [
        f"openai-compatible/{name}" for name in ("/a/m.gguf", "/b/m.gguf", "n.gguf")
    ]


async def test_a_model_is_found_by_its_name_on_the_wire_too(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.rows = [LLAMA]
    assert (await openai_transport.describe("/models/Small-Q4.gguf")).name == "openai-compatible/Small-Q4"
    with pytest.raises(ModelNotFoundError):
        await openai_transport.describe("other")


@pytest.mark.parametrize(
    "reply",
    [
        answers({"object": "list"}),
        answers({"data": "none"}),
        answers([1]),
        page(200, "<html>"),
        fails(500, message="broken"),
        fails(404, message="Not Found"),
        Reply([b"x"], framing="raw"),
    ],
)
async def test_a_list_that_is_none_is_a_typed_error(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, reply: Reply
) -> None:
    openai_server.reply(MODELS, reply)
    with pytest.raises(ModelError) as caught:
        await openai_transport.models()
    assert isinstance(caught.value, ProtocolError) or caught.value.message
    assert not isinstance(caught.value, ModelTimeoutError)


async def test_rows_without_an_id_are_left_out_and_no_rows_are_no_models(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(MODELS, answers({"data": [{"id": ""}, {"name": "x"}, 5, {"id": "a"}]}), answers({"data": None}))
    assert [info.name for info in await openai_transport.models()] == ["openai-compatible/a"]
    assert await openai_transport.models() == []
