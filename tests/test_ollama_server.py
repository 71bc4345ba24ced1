"""The loopback server as a process of its own, as journeys use it."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from rune.errors import BusyError, StreamBrokenError
from rune.models.ollama.transport import OllamaTransport
from tests.models.transport_contract import collect, request, text_of

ROOT = Path(__file__).parent.parent


def _only_body(folder: Path, pattern: str) -> bytes:
    (path,) = folder.glob(pattern)
    return path.read_bytes()


@contextlib.asynccontextmanager
async def process(
    folder: Path, script: Mapping[str, Any] | None = None
) -> AsyncGenerator[tuple[subprocess.Popen[str], OllamaTransport]]:
    command = [sys.executable, "-m", "tests.ollama_server", "--record", str(folder)]
    if script is not None:
        (folder / "script.json").write_text(json.dumps(script))
        command += ["--script", str(folder / "script.json")]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - it starts at once
    assert server.stdout is not None
    url = server.stdout.readline().split()[-1]
    transport = OllamaTransport(url)
    try:
        yield server, transport
    finally:
        await transport.close()
        server.kill()
        server.communicate()


async def test_without_a_script_it_echoes_and_keeps_the_bodies(tmp_path: Path) -> None:
    async with process(tmp_path) as (_, transport):
        asked = request("test", messages=b'[{"role":"user","content":"hello there"}]')
        chunks, error = await collect(transport, asked)
        assert error is None
        assert text_of(chunks) == "You said: hello there"
    assert asked.messages in _only_body(tmp_path, "*_api_chat.bin")


async def test_a_script_gives_models_and_answers_in_order(tmp_path: Path) -> None:
    answers = [
        {"text": "one two", "delay_ms": 1, "thinking": "hm"},
        {"text": "one two", "drop_after": 1},
        {"status": 503, "error": "server busy"},
        {"recording": "chat_stream_smollm2"},
    ]
    script = {"models": ["a:latest", {"name": "b:latest", "capabilities": ["completion"]}], "answers": answers}
    async with process(tmp_path, script) as (_, transport):
        assert [info.name for info in await transport.models()] == ["a:latest", "b:latest"]
        first, _ = await collect(transport, request("a"))
        assert text_of(first) == "one two"
        second, error = await collect(transport, request("a"))
        assert text_of(second) == "one"
        assert isinstance(error, StreamBrokenError)
        third, error = await collect(transport, request("a"))
        assert not isinstance(error, BusyError)  # tried again
        assert text_of(third)


async def test_it_can_die_in_mid_answer(tmp_path: Path) -> None:
    async with process(tmp_path, {"answers": [{"text": "one two three", "die_after": 2}]}) as (server, transport):
        chunks, error = await collect(transport, request("test"))
        assert text_of(chunks) == "one two"
        assert isinstance(error, StreamBrokenError)
        assert server.wait(5) == -signal.SIGKILL


def test_it_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.ollama_server", "--help"], cwd=ROOT, capture_output=True,
                          text=True, check=True, timeout=30)  # fmt: skip
    assert "--script" in done.stdout


async def test_a_script_tells_what_can_be_fetched(tmp_path: Path) -> None:
    async with process(tmp_path, {"fetchable": {"new:1b": {"size": 1000, "step": 500, "delay_ms": 1}}}) as (
        _,
        transport,
    ):
        assert [step.done async for step in transport.pull("new:1b") if step.part] == [0, 500, 1000]
        assert "new:1b" in [info.name for info in await transport.models()]
