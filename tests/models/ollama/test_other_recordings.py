"""Each recording that is not an answer to a chat: lists, what is loaded, vectors, removals, bare answers, errors."""

import pytest

from rune.errors import EmptyOutputError, ModelError, ModelNotFoundError, ProtocolError, ServerError, StreamBrokenError
from rune.models.ollama.failures import from_status
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import LoadedModel
from rune.models.wire.http import ServerHttp
from tests.models.ollama.test_recordings import COMPLETED, FAILED
from tests.models.transport_contract import collect, request
from tests.ollama_replies import RECORDINGS
from tests.ollama_server import OllamaServer, recorded

NATIVE = "qwen2.5-coder:1.5b-native"

# name: what `/api/ps` lists, as name, window, size, end of life
LOADED = {
    "ps_empty": [],
    "ps_loaded": [("smollm2:135m", 4096, 210_690_374, "2026-11-30T12:46:23.249828993Z")],
    "ps_two_loaded": [
        (NATIVE, 4096, 1_304_407_571, "2026-11-30T12:49:03.314963748Z"),
        ("smollm2:135m", 4096, 210_690_374, "2026-11-30T12:46:30.409007643Z"),
    ],
    "ps_native_loaded": [(NATIVE, 4096, 1_304_407_571, "2026-11-30T13:15:01.161758392Z")],
    "ps_after_ctx_above_max": [("smollm2:135m", 8192, 333_006_765, "2026-11-30T12:54:35.725796558Z")],
    "ps_after_unload": [(NATIVE, 512, 1_197_977_107, "2026-11-30T12:54:48.804364536Z")],
    "ps_after_abort_during_load": [("smollm2:135m", 4096, 210_690_374, "2026-11-30T13:00:32.63333794Z")],
    "ps_4s_after_abort_during_load": [("smollm2:135m", 4096, 210_690_374, "2026-11-30T13:00:32.63333794Z")],
    "ps_right_after_keep_alive_0": [(NATIVE, 512, 1_197_977_107, "2026-11-30T12:54:48.804364536Z")],
    "ps_2s_after_keep_alive_0": [(NATIVE, 512, 1_197_977_107, "2026-11-30T12:54:48.804364536Z")],
    "ps_keep_alive_forever": [
        ("smollm2:135m", 4096, 210_690_374, "2319-03-12T12:37:49.450644231Z"),
        (NATIVE, 512, 1_197_977_107, "2026-11-30T12:54:48.804364536Z"),
    ],
}

# name: how a chat would end that got such an answer
NO_CHAT: dict[str, tuple[type[ModelError], str]] = {
    "client_abort_during_load": (StreamBrokenError, "before it answered"),
    "client_abort_during_prompt_eval": (StreamBrokenError, "before it answered"),
    "ctx_long_history_render": (StreamBrokenError, "before the model server said that it is complete"),
    "debug_render_tools_qwen": (StreamBrokenError, "before the model server said that it is complete"),
    "debug_render_tools_qwen_native": (StreamBrokenError, "before the model server said that it is complete"),
    "debug_render_tools_qwen_tools": (StreamBrokenError, "before the model server said that it is complete"),
    "embed_ok_single": (ProtocolError, "unknown kind: model, embeddings"),
    "generate_stream": (EmptyOutputError, "8 tokens generated"),
    "root_get": (ProtocolError, "Ollama is running"),
    "root_head": (StreamBrokenError, "closed the connection"),
    "show_nomodel_400": (ServerError, "400: model is required"),
    "blob_head_missing_404": (ServerError, "404"),
}

# name: method, and the path that it was the answer to
BARE = {
    "version": ("GET", "/api/version"),
    "ok_origin_localhost": ("GET", "/api/version"),
    "embeddings_legacy": ("POST", "/api/embeddings"),
}

ELSEWHERE = {
    "tags", "show_unknown_404", "embed_ok_batch", "embed_smollm2", "embed_qwen",  # test_listing.py
    "delete_broken", "delete_unknown_404",  # test_library.py
}  # fmt: skip


@pytest.mark.parametrize("name", list(LOADED))
async def test_what_is_loaded_is_read_as_it_was(server: OllamaServer, transport: OllamaTransport, name: str) -> None:
    server.reply("/api/ps", recorded(name))
    assert await transport.loaded() == [
        LoadedModel(name=model, window=window, size=size, on_gpu=0, expires_at=expires)
        for model, window, size, expires in LOADED[name]
    ]


@pytest.mark.parametrize("name", list(NO_CHAT))
async def test_an_answer_to_something_else_is_never_taken_for_a_chats(
    server: OllamaServer, transport: OllamaTransport, name: str
) -> None:
    kind, words = NO_CHAT[name]
    server.reply("/api/chat", recorded(name))
    _, error = await collect(transport, request("m"))
    assert error is not None
    assert type(error) is kind
    assert words in error.message


@pytest.mark.parametrize("name", list(BARE))
async def test_a_bare_answer_is_its_json_object(server: OllamaServer, name: str) -> None:
    method, path = BARE[name]
    server.reply(path, recorded(name))
    http = ServerHttp(server.url, refusal=from_status)
    answer = await http.ask(method, path, None, within=5, connect=5)
    await http.close()
    assert answer.get("version") == "0.33.0-rc2" or len(answer["embedding"]) == 576


async def test_a_model_that_is_not_there_has_no_vectors(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/embed", recorded("embed_unknown_404"))
    with pytest.raises(ModelNotFoundError):
        await transport.embed("nosuch", ["a"])


def test_no_recording_is_left_out() -> None:
    chats = {row.split()[0] for row in COMPLETED.split("\n") if row}
    held = chats | FAILED.keys() | LOADED.keys() | NO_CHAT.keys() | BARE.keys() | ELSEWHERE | {"embed_unknown_404"}
    there = {path.name.removesuffix(".wire.response.bin") for path in RECORDINGS.glob("*.wire.response.bin")}
    assert there == held
    assert len(there) >= 145
