"""A real llama.cpp server on loopback TCP with the small model: the bytes that others really send."""

import json
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rune.errors import CapabilityMissingError, ContextTruncatedError, ServerError
from rune.models.embedded.transport import embedded_installed
from rune.models.openai_compatible.address import ServerAddress
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import ChatRequest, Completed, LoadOptions, Progress, ToolCallReady
from tests.embedded_model import real_model_file
from tests.models.transport_contract import collect, text_of

pytestmark = pytest.mark.model

WINDOW = 1024
MODEL = "openai-compatible/SmolLM2-135M-Instruct.Q4_1"
TOOLS = json.dumps(
    [{"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}}}]
).encode()


class Running(NamedTuple):
    """Where the server is, and the key that it wants."""

    url: str
    key: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if not embedded_installed():
        pytest.skip("the extra `embedded` is not installed")
    port, key = free_port(), secrets.token_urlsafe(24)
    log = tmp_path_factory.mktemp("llama") / "log"
    command = [sys.executable, "-m", "tests.llama_server", str(real_model_file()), str(port), key, str(WINDOW)]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, cwd=Path(__file__).parents[3]
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", log.read_text(errors="replace")
        yield Running(f"http://127.0.0.1:{port}", key)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def real(llama: Running) -> AsyncIterator[OpenAITransport]:
    transport = OpenAITransport(ServerAddress.checked(llama.url, source="test", key=llama.key))
    await transport.models()
    yield transport
    await transport.close()


def ask(text: str, **changes: Any) -> ChatRequest:
    messages = json.dumps([{"role": "user", "content": text}]).encode()
    fields: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": b"[]", "estimated": 10, **changes}
    return ChatRequest(options=LoadOptions(num_ctx=WINDOW), **fields)


async def test_it_is_listed_with_its_window_and_what_it_can(real: OpenAITransport) -> None:
    (info,) = await real.models()
    assert (info.name, info.context_length, info.parameters) == (MODEL, WINDOW, "134.52M")
    assert info.capabilities == {"chat"}
    assert not info.remote
    assert await real.window_in_force(MODEL) == WINDOW
    assert [(each.name, each.window) for each in await real.loaded()] == [(MODEL, WINDOW)]


async def test_it_chats_with_counts_and_says_how_far_it_has_read(real: OpenAITransport) -> None:
    chunks, error = await collect(real, ask("Say hello. " * 20, max_tokens=8, temperature=0))
    assert error is None
    assert text_of(chunks)
    ended = chunks[-1]
    assert isinstance(ended, Completed)
    assert ended.usage.prompt_tokens
    assert ended.usage.prompt_tokens > 60
    assert ended.usage.output_tokens == 8
    assert ended.usage.model_time_ms is not None
    assert ended.reason == "length"
    readings = [chunk for chunk in chunks if isinstance(chunk, Progress) and chunk.done]
    assert readings
    assert readings[-1].done == readings[-1].total


async def test_a_schema_constrains_the_answer(real: OpenAITransport) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    chunks, error = await collect(real, ask("Which colour?", format=json.dumps(schema).encode(), max_tokens=64))
    assert error is None
    assert json.loads(text_of(chunks))["colour"] in {"red", "green"}


async def test_tools_are_taken_and_what_comes_is_text_or_a_whole_call(real: OpenAITransport) -> None:
    chunks, error = await collect(real, ask("What time is it? Call now.", tools=TOOLS, max_tokens=40))
    # This model has no template for tools: the server may refuse them, take them in vain, or call.
    if error is not None:
        assert isinstance(error, CapabilityMissingError)
        return
    assert isinstance(chunks[-1], Completed)
    assert all(chunk.call.name == "now" for chunk in chunks if isinstance(chunk, ToolCallReady))


async def test_thinking_that_is_switched_off_is_no_error(real: OpenAITransport) -> None:
    for think in ("off", "on", "low"):
        _, error = await collect(real, ask("Hi.", think=think, max_tokens=2))
        assert error is None


async def test_too_long_a_prompt_is_told_with_both_numbers(real: OpenAITransport) -> None:
    chunks, error = await collect(real, ask("The quick brown fox. " * 400))
    assert isinstance(error, ContextTruncatedError)
    assert error.window == WINDOW
    assert error.served is not None
    assert error.served > WINDOW
    assert not text_of(chunks)


async def test_a_wrong_key_is_said(llama: Running) -> None:
    transport = OpenAITransport(ServerAddress.checked(llama.url, source="test", key="wrong-0123456789"))
    _, error = await collect(transport, ask("Hi."))
    assert isinstance(error, ServerError)
    assert error.status == 401
    assert "RUNE_OPENAI_KEY" in error.hint
    await transport.close()


async def test_it_has_no_vectors_and_says_so(real: OpenAITransport) -> None:
    with pytest.raises(CapabilityMissingError):
        await real.embed(MODEL, ["a"])
