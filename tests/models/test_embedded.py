"""The embedded transport with the real small model. It talks nonsense at times: only structure is asserted."""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rune.errors import (
    CapabilityMissingError,
    ContextTruncatedError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    ServerError,
    StreamBrokenError,
)
from rune.models.embedded import SMOLLM2_NAME, EmbeddedTransport
from rune.models.transport import ChatChunk, ChatRequest, Completed, LoadOptions, Progress, TextDelta
from tests.embedded_model import real_model_file

pytestmark = pytest.mark.model

_WINDOW = 1024
_ORDER: list[type[ChatChunk]] = [Progress, TextDelta, Completed]
_STORY = "Tell me a very long story about a fox."
_LONG = "The quick brown fox jumps over the lazy dog. " * 60


@pytest.fixture(scope="session")
def model_file() -> Path:
    return real_model_file()


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    # Not tmp_path: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        yield Path(folder)


@pytest.fixture
async def transport(model_file: Path, runtime_dir: Path, tmp_path: Path) -> AsyncIterator[EmbeddedTransport]:
    transport = _transport(model_file, runtime_dir, tmp_path)
    yield transport
    await transport.close()
    assert _left(runtime_dir) == []


def _transport(model: Path, runtime_dir: Path, tmp_path: Path, **timeouts: float) -> EmbeddedTransport:
    environ = {"XDG_RUNTIME_DIR": str(runtime_dir)}
    log = tmp_path / "logs" / "model.log"
    # One thread: tests run side by side, and threads that wait for each other on busy cores crawl.
    return EmbeddedTransport(model, log_path=log, environ=environ, threads=1, **timeouts)


def _messages(*texts: str) -> bytes:
    roles = ("user", "assistant")
    return json.dumps([{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]).encode()


def _ask(*texts: str, num_ctx: int = _WINDOW, **changes: Any) -> ChatRequest:
    fields: dict[str, Any] = {"model": SMOLLM2_NAME, "tools": b"[]", "estimated": 10, **changes}
    return ChatRequest(messages=_messages(*texts), options=LoadOptions(num_ctx=num_ctx), **fields)


async def _all(answer: AsyncIterator[ChatChunk]) -> list[ChatChunk]:
    return [chunk async for chunk in answer]


async def _until(kind: type[ChatChunk], answer: AsyncIterator[ChatChunk]) -> ChatChunk:
    async for chunk in answer:
        if isinstance(chunk, kind):
            return chunk
    raise AssertionError(f"no {kind.__name__} came")


async def _completed(answer: AsyncIterator[ChatChunk]) -> Completed:
    chunk = await _until(Completed, answer)
    assert isinstance(chunk, Completed)
    return chunk


async def _text(answer: AsyncIterator[ChatChunk]) -> str:
    return "".join(chunk.text for chunk in await _all(answer) if isinstance(chunk, TextDelta))


def _pid(transport: EmbeddedTransport) -> int:
    pid = transport.worker_pid()
    assert pid is not None
    return pid


def _ends(pid: int, within: float) -> bool:
    """Wait for the end of a process that need not be a child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)


def _sockets(pid: int) -> set[str]:
    found: set[str] = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target.removeprefix("socket:[").removesuffix("]"))
    return found


def _left(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _children() -> set[int]:
    """Return the workers among this process's children."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        for pid in map(int, task.joinpath("children").read_text(encoding="ascii").split()):
            if b"embedded_worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def _inodes(table: Path, column: int) -> set[str]:
    if not table.exists():
        return set()
    return {line.split()[column] for line in table.read_text(encoding="ascii", errors="replace").splitlines()[1:]}


async def test_a_turn_loads_reads_answers_and_completes_with_exact_figures(transport: EmbeddedTransport) -> None:
    chunks = await _all(transport.chat(_ask("Name three rivers.", max_tokens=16)))
    assert chunks[0] == Progress(phase="loading", done=0, total=None)
    kinds = [type(chunk) for chunk in chunks]
    assert kinds == sorted(kinds, key=_ORDER.index)
    assert kinds.count(Completed) == 1
    end = chunks[-1]
    assert isinstance(end, Completed)
    assert end.usage.calls == 1
    assert end.usage.prompt_tokens is not None
    assert end.usage.prompt_tokens > 10
    assert end.usage.cached_tokens == 0
    assert end.usage.output_tokens is not None
    assert end.usage.output_tokens <= 16
    assert end.usage.model_time_ms is not None
    assert await transport.window_in_force(SMOLLM2_NAME) == _WINDOW
    memory = transport.memory()
    assert memory is not None
    assert 50_000_000 < memory < 2_000_000_000


async def test_a_growing_prompt_is_read_from_the_cache(transport: EmbeddedTransport) -> None:
    first = await _completed(transport.chat(_ask("Name a river.", max_tokens=4)))
    second = await _completed(transport.chat(_ask("Name a river.", "The Nile.", "And another?", max_tokens=4)))
    third = await _completed(
        transport.chat(_ask("Name a river.", "The Nile.", "And another?", "The Po.", "More?", max_tokens=4))
    )
    cached = [end.usage.cached_tokens or 0 for end in (first, second, third)]
    assert cached[0] < cached[1] < cached[2]
    assert first.usage.prompt_tokens is not None
    assert cached[1] >= first.usage.prompt_tokens - 8


async def test_reading_a_long_prompt_is_told_batch_by_batch(transport: EmbeddedTransport) -> None:
    chunks = await _all(transport.chat(_ask(_LONG[:900], max_tokens=2)))
    readings = [chunk for chunk in chunks if isinstance(chunk, Progress) and chunk.phase == "reading"]
    end = chunks[-1]
    assert isinstance(end, Completed)
    assert len(readings) >= 4
    assert [reading.done for reading in readings] == sorted({reading.done for reading in readings})
    assert {reading.total for reading in readings} == {end.usage.prompt_tokens}
    assert readings[-1].done == end.usage.prompt_tokens


async def test_an_answer_obeys_a_json_schema(transport: EmbeddedTransport) -> None:
    schema = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"tool": {"const": "read"}, "lines": {"type": "integer", "minimum": 1, "maximum": 99}},
                "required": ["tool", "lines"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"answer": {"type": "string", "maxLength": 20}},
                "required": ["answer"],
                "additionalProperties": False,
            },
        ]
    }
    ask = _ask("Sing something about the sea.", format=json.dumps(schema).encode(), max_tokens=120)
    said = json.loads(await _text(transport.chat(ask)))
    assert said.keys() in ({"tool", "lines"}, {"answer"})
    assert said.get("tool", "read") == "read"
    assert isinstance(said.get("lines", 1), int)


async def test_a_schema_that_is_none_is_refused_and_the_next_call_works(transport: EmbeddedTransport) -> None:
    with pytest.raises(ServerError) as caught:
        await _all(transport.chat(_ask("Hi", format=b'{"$ref": "#/nowhere"}')))
    assert caught.value.status == 400
    assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))


async def test_cancelling_while_the_prompt_is_read_ends_the_reading(transport: EmbeddedTransport) -> None:
    answer = transport.chat(_ask(_LONG))
    async for chunk in answer:
        if isinstance(chunk, Progress) and chunk.phase == "reading":
            break
    await answer.aclose()
    assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))


async def test_closing_an_answer_leaves_the_worker_idle_or_gone_and_the_next_call_works(
    transport: EmbeddedTransport,
) -> None:
    answer = transport.chat(_ask(_STORY))
    await _until(TextDelta, answer)
    await answer.aclose()
    # The next call must find a free slot at once: its first word is not preceded by the rest of a story.
    assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))


async def test_cancelling_again_and_again_ends_a_worker_that_does_not_obey(transport: EmbeddedTransport) -> None:
    began = asyncio.Event()

    async def consume() -> None:
        async for chunk in transport.chat(_ask(_LONG)):
            if isinstance(chunk, Progress) and chunk.phase == "reading":
                began.set()

    consumer = asyncio.create_task(consume())
    await began.wait()
    os.kill(_pid(transport), signal.SIGSTOP)  # it can no longer obey: only killing it helps
    while not consumer.done():  # whatever it waits for
        consumer.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await consumer
    async with asyncio.timeout(30):
        assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))


async def test_cancelling_anywhere_while_the_model_loads_leaves_no_child(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = _transport(model_file, runtime_dir, tmp_path)
    for steps in (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100):
        answer = transport.chat(_ask("Hi"))
        assert await anext(answer) == Progress(phase="loading", done=0, total=None)
        loading = asyncio.ensure_future(anext(answer))
        for _ in range(steps):
            await asyncio.sleep(0)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        assert transport.worker_pid() is None
        assert _left(runtime_dir) == []
    await transport.close()
    assert _children() == set()


async def test_no_socket_of_the_worker_is_on_a_network(transport: EmbeddedTransport) -> None:
    answer = transport.chat(_ask(_STORY))
    await _until(TextDelta, answer)
    pid = _pid(transport)
    sockets = _sockets(pid)
    network: set[str] = set()
    for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        network |= _inodes(Path(f"/proc/{pid}/net/{name}"), 9)
    assert sockets & _inodes(Path(f"/proc/{pid}/net/unix"), 6)
    assert not sockets & network
    await answer.aclose()


async def test_only_the_owner_with_the_key_is_answered(transport: EmbeddedTransport, runtime_dir: Path) -> None:
    await transport.count("")
    (folder,) = _left(runtime_dir)
    socket = folder / "llm.sock"
    assert _mode(folder) == 0o700
    assert _mode(socket) & 0o077 == 0
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(socket)), base_url="http://worker"
    ) as client:
        for headers in ({}, {"Authorization": "Bearer guess"}):
            chat = await client.post("/v1/chat/completions", headers=headers, json={"messages": []})
            slots = await client.get("/slots", headers=headers)
            assert (chat.status_code, slots.status_code) == (401, 401)


async def test_the_key_stands_neither_in_the_arguments_nor_in_the_environment(transport: EmbeddedTransport) -> None:
    await transport.count("")
    proc = Path(f"/proc/{_pid(transport)}")
    arguments = proc.joinpath("cmdline").read_bytes().split(b"\0")
    assert arguments[1:] == [b"-P", b"-m", b"rune.models.embedded_worker", b""]
    own = {f"{name}={value}".encode() for name, value in os.environ.items()}
    new = set(proc.joinpath("environ").read_bytes().split(b"\0")) - own - {b""}
    assert {entry.partition(b"=")[0] for entry in new} <= {b"COLUMNS", b"LINES"}  # set by readline


async def test_modules_that_lie_where_rune_was_started_are_not_imported(
    transport: EmbeddedTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "xllamacpp", "rune"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert await transport.count("one two") > 0
    assert not (tmp_path / "sprung").exists()


async def test_a_worker_killed_in_mid_answer_is_a_broken_stream_and_the_next_call_works(
    transport: EmbeddedTransport,
) -> None:
    answer = transport.chat(_ask(_STORY))
    await _until(TextDelta, answer)
    os.kill(_pid(transport), signal.SIGKILL)
    with pytest.raises(StreamBrokenError, match="SIGKILL"):
        await _all(answer)
    assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))


async def test_a_worker_killed_while_it_reads_is_unavailable(transport: EmbeddedTransport) -> None:
    answer = transport.chat(_ask(_LONG))
    async for chunk in answer:
        if isinstance(chunk, Progress) and chunk.phase == "reading":
            break
    os.kill(_pid(transport), signal.SIGKILL)
    with pytest.raises(ModelUnavailableError, match="SIGKILL"):
        await _all(answer)


async def test_a_worker_killed_between_two_calls_is_started_again(transport: EmbeddedTransport) -> None:
    await _completed(transport.chat(_ask("Hi", max_tokens=2)))
    pid = _pid(transport)
    os.kill(pid, signal.SIGKILL)
    assert await _completed(transport.chat(_ask("Hi", max_tokens=2)))
    assert _pid(transport) != pid


async def test_another_window_loads_the_model_again(transport: EmbeddedTransport) -> None:
    assert await transport.window_in_force(SMOLLM2_NAME) is None
    windows: list[int | None] = []
    for num_ctx in (512, 512, 1024):
        chunks = await _all(transport.chat(_ask("Hi", num_ctx=num_ctx, max_tokens=2)))
        loads = [chunk for chunk in chunks if isinstance(chunk, Progress) and chunk.phase == "loading"]
        windows.append(await transport.window_in_force(SMOLLM2_NAME) if loads else None)
    assert windows == [512, None, 1024]
    assert await transport.window_in_force("another") is None


async def test_a_prompt_over_the_window_is_told_with_its_numbers(transport: EmbeddedTransport) -> None:
    with pytest.raises(ContextTruncatedError) as caught:
        await _all(transport.chat(_ask(_LONG, num_ctx=512, estimated=600)))
    assert caught.value.estimated == 600
    assert caught.value.window == 512
    assert caught.value.served is not None
    assert caught.value.served > 512


async def test_an_answer_that_fills_the_window_ends_with_length(transport: EmbeddedTransport) -> None:
    end = await _completed(transport.chat(_ask("List the numbers from 1 to 1000. 1, 2, 3, 4,", num_ctx=256)))
    if end.reason == "length":
        assert (end.usage.prompt_tokens or 0) + (end.usage.output_tokens or 0) <= 257


async def test_calls_on_one_worker_take_turns(transport: EmbeddedTransport) -> None:
    first = transport.chat(_ask(_STORY, max_tokens=12))
    await _until(TextDelta, first)
    second = asyncio.create_task(_all(transport.chat(_ask("Hi", max_tokens=2))))
    rest = await _all(first)
    assert isinstance(rest[-1], Completed)
    assert isinstance((await second)[-1], Completed)


async def test_two_transports_answer_at_once(model_file: Path, runtime_dir: Path, tmp_path: Path) -> None:
    transports = [_transport(model_file, runtime_dir, tmp_path) for _ in range(2)]
    ends = await asyncio.gather(*(_completed(each.chat(_ask("Hi", max_tokens=4))) for each in transports))
    assert len({_pid(each) for each in transports}) == 2
    assert [end.usage.calls for end in ends] == [1, 1]
    for each in transports:
        await each.close()


async def test_counting_is_exact(transport: EmbeddedTransport) -> None:
    assert await transport.count("") == 0
    text = "Rivers flow. \u65e5\u672c\u8a9e \U0001f600 \ud800"
    assert 0 < await transport.count(text) < await transport.count(text * 2) <= 2 * await transport.count(text)


async def test_silence_in_mid_answer_is_a_timeout_and_ends_the_worker(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = _transport(model_file, runtime_dir, tmp_path, token_timeout=0.3)
    answer = transport.chat(_ask(_STORY))
    await _until(TextDelta, answer)
    os.kill(_pid(transport), signal.SIGSTOP)
    with pytest.raises(ModelTimeoutError) as caught:
        await _all(answer)
    assert caught.value.phase == "token"
    assert transport.worker_pid() is None
    await transport.close()


async def test_a_model_that_takes_too_long_to_load_is_a_timeout_and_leaves_nothing(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = _transport(model_file, runtime_dir, tmp_path, first_byte_timeout=0.01)
    with pytest.raises(ModelTimeoutError) as caught:
        await _all(transport.chat(_ask("Hi")))
    assert caught.value.phase == "first_byte"
    assert _left(runtime_dir) == []
    await transport.close()


async def test_closing_in_mid_answer_ends_the_call_with_an_error_and_the_worker_with_it(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = _transport(model_file, runtime_dir, tmp_path)
    answer = transport.chat(_ask(_STORY))
    await _until(TextDelta, answer)
    pid = _pid(transport)
    await transport.close()
    with pytest.raises(StreamBrokenError):
        await _all(answer)
    await transport.close()
    assert _ends(pid, 0)
    assert _left(runtime_dir) == []
    with pytest.raises(ModelUnavailableError, match="closed"):
        await _all(transport.chat(_ask("Hi")))


async def test_nothing_of_the_worker_reaches_the_terminal(
    transport: EmbeddedTransport, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # the second makes llama.cpp warn that the whole prompt was cached
        await _completed(transport.chat(_ask("Hi", max_tokens=2)))
    await transport.close()
    assert capfd.readouterr() == ("", "")
    log = tmp_path / "logs" / "model.log"
    assert log.stat().st_size > 0
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"nonsense" * 100, None])
async def test_a_broken_model_file_is_refused_with_the_reason(
    model_file: Path, runtime_dir: Path, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "broken.gguf"
    with model_file.open("rb") as source:
        path.write_bytes(content or source.read(5_000_000))
    transport = _transport(path, runtime_dir, tmp_path)
    async with asyncio.timeout(20):
        with pytest.raises(ModelUnavailableError, match=r"GGUF|not within the file bounds"):
            await _all(transport.chat(_ask("Hi", model="broken")))
    assert _left(runtime_dir) == []
    await transport.close()


async def test_a_file_that_is_not_ours_is_named_after_itself(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "Some-Model.Q4.gguf"
    path.symlink_to(model_file)
    transport = _transport(path, runtime_dir, tmp_path)
    (info,) = await transport.models()
    assert info.name == "some-model.q4"
    assert info.digest.startswith("stat:")
    assert await transport.describe("some-model.q4") == info
    assert transport.worker_pid() is None


async def test_the_model_is_described_without_loading_it(transport: EmbeddedTransport) -> None:
    info = await transport.describe(SMOLLM2_NAME)
    assert info.capabilities == {"chat"}
    assert (info.context_length, info.quantisation, info.parameters, info.family) == (8192, "Q4_1", "135M", "llama")
    assert info.size == 98_362_432
    assert not info.remote
    assert transport.worker_pid() is None


async def test_what_the_model_cannot_do_is_refused_before_anything_is_loaded(transport: EmbeddedTransport) -> None:
    with pytest.raises(CapabilityMissingError, match="tools"):
        await _all(transport.chat(_ask("Hi", tools=b'[{"type":"function"}]')))
    with pytest.raises(CapabilityMissingError, match="thinking"):
        await _all(transport.chat(_ask("Hi", think=True)))
    with pytest.raises(CapabilityMissingError, match="embedding"):
        await transport.embed(SMOLLM2_NAME, ["a"])
    with pytest.raises(ModelNotFoundError, match="'another'"):
        await _all(transport.chat(_ask("Hi", model="another")))
    assert transport.worker_pid() is None


async def test_without_the_extra_it_says_what_to_install(
    transport: EmbeddedTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # how Python itself marks a module that is not there
    with pytest.raises(ModelUnavailableError) as caught:
        await _all(transport.chat(_ask("Hi")))
    assert caught.value.hint == 'Run `pip install "rune-local[embedded]"`.'


_PARENT = """
import asyncio, sys
from pathlib import Path
from tests.models.test_embedded import _ask, _STORY, _transport
from rune.models.transport import TextDelta

async def main():
    transport = _transport(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
    async for chunk in transport.chat(_ask(_STORY)):
        if isinstance(chunk, TextDelta):
            print(transport.worker_pid(), flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_parent_that_is_killed_takes_its_worker_with_it(model_file: Path, runtime_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PARENT, str(model_file), str(runtime_dir), str(tmp_path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    assert _ends(worker, 2.0)
    assert _left(runtime_dir) == []
