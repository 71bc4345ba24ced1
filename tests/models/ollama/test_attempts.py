"""What is asked for again, changed: a call that the server could not read, and a level of thinking it does not know."""

from typing import Any

import msgspec
import pytest

from rune.errors import CapabilityMissingError, EmptyOutputError, ServerError
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import ChatRequest, Progress, ToolCallReady
from rune.records.models import ThinkLevel
from tests.models.conftest import Pauses
from tests.models.transport_contract import TOOLS, collect, request, text_of
from tests.ollama_server import OllamaServer, Reply, call, done, fails, line, recorded, says, stream

UNREADABLE = "error parsing tool call: raw='{\"path\": ', err=unexpected end of JSON input"
CALL = stream(line({"tool_calls": [call("read", {})]}), done())
UNREADABLE_ENDS: dict[str, Reply] = {
    "a status": fails(500, UNREADABLE),
    "a line": stream(b'{"error": "error parsing tool call: raw"}\n'),
    "a line of a wrong key": stream(b'{"error parsing tool call": "raw"}\n'),
    "after blank space": stream(line({"content": ""}), b'{"error": "error parsing tool call: raw"}\n'),
    "in the engine's words": recorded("tool_cut_in_call_qwen_native_fence"),
    "in a parser's words": fails(500, "gemma4 tool call parsing failed"),
}


def thinks(level: ThinkLevel) -> ChatRequest:
    return msgspec.structs.replace(request("test"), think=level)


def sent(server: OllamaServer) -> list[dict[str, Any]]:
    return [received.json for received in server.asked("/api/chat")]


def temperatures(server: OllamaServer) -> list[float | None]:
    return [body["options"].get("temperature") for body in sent(server)]


@pytest.mark.parametrize("name", list(UNREADABLE_ENDS))
async def test_a_call_that_the_server_could_not_read_is_asked_for_again_calmer(
    server: OllamaServer, transport: OllamaTransport, pauses: Pauses, name: str
) -> None:
    server.reply("/api/chat", UNREADABLE_ENDS[name], UNREADABLE_ENDS[name], CALL)
    chunks, error = await collect(transport, request("test", tools=TOOLS))
    assert error is None
    assert [chunk.call.name for chunk in chunks if isinstance(chunk, ToolCallReady)] == ["read"]
    assert temperatures(server) == [None, 0.4, 0.1]
    assert pauses.seconds == []


async def test_nothing_else_changes_and_above_all_no_load_option(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", fails(500, UNREADABLE), CALL)
    await collect(transport, request("test", tools=TOOLS))
    first, second = sent(server)
    assert second["options"].pop("temperature")
    assert first == second


async def test_after_two_more_tries_it_is_said_with_what_to_do(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", fails(500, UNREADABLE))
    _, error = await collect(transport, request("test", tools=TOOLS))
    assert isinstance(error, ServerError)
    assert "error parsing tool call" in error.message
    assert "choose another model" in error.hint
    assert len(sent(server)) == 3


@pytest.mark.parametrize("shown", [{"content": "I look."}, {"thinking": "hm"}, {"tool_calls": [call("read", {})]}])
async def test_never_once_something_was_shown(
    server: OllamaServer, transport: OllamaTransport, shown: dict[str, Any]
) -> None:
    server.reply("/api/chat", stream(line(shown), b'{"error": "error parsing tool call: raw"}\n'), CALL)
    chunks, error = await collect(transport, request("test", tools=TOOLS))
    assert isinstance(error, ServerError)
    assert len(sent(server)) == 1
    assert [chunk for chunk in chunks if not isinstance(chunk, Progress)]


async def test_text_that_was_held_back_is_shown_too_and_ends_the_tries(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", stream(line({"content": "<th"}), b'{"error": "error parsing tool call: raw"}\n'), CALL)
    chunks, error = await collect(transport, request("test", tools=TOOLS))
    assert isinstance(error, ServerError)
    assert text_of(chunks) == "<th"
    assert len(sent(server)) == 1


@pytest.mark.parametrize("status", [400, 500, 502])
async def test_any_other_failure_is_not_asked_for_again(
    server: OllamaServer, transport: OllamaTransport, status: int
) -> None:
    server.reply("/api/chat", fails(status, "boom"), CALL)
    _, error = await collect(transport, request("test", tools=TOOLS))
    assert isinstance(error, ServerError)
    assert len(sent(server)) == 1


async def test_a_call_that_the_server_swallowed_says_what_happened(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", recorded("tool_cut_by_num_predict_qwen_tools"))
    _, error = await collect(transport, request("test", tools=TOOLS))
    assert isinstance(error, EmptyOutputError)
    assert error.generated == 8
    assert "8 tokens generated" in error.message
    assert "tool call that it could not read" in error.message
    assert error.hint
    assert len(sent(server)) == 1  # another protocol is not the transport's to choose


REFUSALS = {
    "recorded": recorded("err_think_badvalue_400"),
    "an older server": fails(400, "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool"),
}


@pytest.mark.parametrize("refusal", list(REFUSALS))
async def test_a_level_that_the_server_does_not_know_becomes_plain_thinking_for_good(
    server: OllamaServer, transport: OllamaTransport, refusal: str
) -> None:
    server.reply("/api/chat", REFUSALS[refusal], says("one"))
    chunks, error = await collect(transport, thinks("high"))
    assert error is None
    assert text_of(chunks) == "one"
    await collect(transport, thinks("low"))
    await collect(transport, thinks("off"))
    assert [body["think"] for body in sent(server)] == ["high", True, True, False]


async def test_a_server_that_refuses_plain_thinking_too_is_asked_no_third_time(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", recorded("err_think_badvalue_400"))
    _, error = await collect(transport, thinks("medium"))
    assert isinstance(error, ServerError)
    assert [body["think"] for body in sent(server)] == ["medium", True]


@pytest.mark.parametrize("level", ["on", "high"])
async def test_a_model_that_cannot_think_is_a_missing_capability(
    server: OllamaServer, transport: OllamaTransport, level: ThinkLevel
) -> None:
    server.reply("/api/chat", recorded("err_think_level_400"))
    _, error = await collect(transport, thinks(level))
    assert isinstance(error, CapabilityMissingError)
    assert error.capability == "thinking"
    assert len(sent(server)) == 1
