"""A worker that is called off, killed, silent or spied on: what becomes of it and of the call."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from rune.errors import (
    ModelTimeoutError,
    ModelUnavailableError,
    StreamBrokenError,
)
from rune.models.embedded.transport import EmbeddedTransport
from rune.models.transport import Progress, TextDelta
from tests.models.embedded.calls import (
    LONG,
    STORY,
    all_of,
    ask,
    completed,
    ends,
    inodes,
    left_in,
    mode_of,
    pid_of,
    sockets_of,
    transport_for,
    until,
    worker_children,
)

pytestmark = pytest.mark.model


async def test_cancelling_while_the_prompt_is_read_ends_the_reading(transport: EmbeddedTransport) -> None:
    answer = transport.chat(ask(LONG))
    async for chunk in answer:
        if isinstance(chunk, Progress) and chunk.phase == "reading":
            break
    await answer.aclose()
    assert await completed(transport.chat(ask("Hi", max_tokens=2)))


async def test_closing_an_answer_leaves_the_worker_idle_or_gone_and_the_next_call_works(
    transport: EmbeddedTransport,
) -> None:
    answer = transport.chat(ask(STORY))
    await until(TextDelta, answer)
    await answer.aclose()
    # The next call must find a free slot at once: its first word is not preceded by the rest of a story.
    assert await completed(transport.chat(ask("Hi", max_tokens=2)))


async def test_cancelling_again_and_again_ends_a_worker_that_does_not_obey(transport: EmbeddedTransport) -> None:
    began = asyncio.Event()

    async def consume() -> None:
        async for chunk in transport.chat(ask(LONG)):
            if isinstance(chunk, Progress) and chunk.phase == "reading":
                began.set()

    consumer = asyncio.create_task(consume())
    await began.wait()
    os.kill(pid_of(transport), signal.SIGSTOP)  # it can no longer obey: only killing it helps
    while not consumer.done():  # whatever it waits for
        consumer.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await consumer
    async with asyncio.timeout(30):
        assert await completed(transport.chat(ask("Hi", max_tokens=2)))


async def test_cancelling_anywhere_while_the_model_loads_leaves_no_child(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = transport_for(model_file, runtime_dir, tmp_path)
    for steps in (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100):
        answer = transport.chat(ask("Hi"))
        assert await anext(answer) == Progress(phase="loading", done=0, total=None)
        loading = asyncio.ensure_future(anext(answer))
        for _ in range(steps):
            await asyncio.sleep(0)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        assert transport.worker_pid() is None
        assert left_in(runtime_dir) == []
    await transport.close()
    assert worker_children() == set()


async def test_no_socket_of_the_worker_is_on_a_network(transport: EmbeddedTransport) -> None:
    answer = transport.chat(ask(STORY))
    await until(TextDelta, answer)
    pid = pid_of(transport)
    sockets = sockets_of(pid)
    network: set[str] = set()
    for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        network |= inodes(Path(f"/proc/{pid}/net/{name}"), 9)
    assert sockets & inodes(Path(f"/proc/{pid}/net/unix"), 6)
    assert not sockets & network
    await answer.aclose()


async def test_only_the_owner_with_the_key_is_answered(transport: EmbeddedTransport, runtime_dir: Path) -> None:
    await transport.count("")
    (folder,) = left_in(runtime_dir)
    socket = folder / "llm.sock"
    assert mode_of(folder) == 0o700
    assert mode_of(socket) & 0o077 == 0
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(socket)), base_url="http://worker"
    ) as client:
        for headers in ({}, {"Authorization": "Bearer guess"}):
            chat = await client.post("/v1/chat/completions", headers=headers, json={"messages": []})
            slots = await client.get("/slots", headers=headers)
            assert (chat.status_code, slots.status_code) == (401, 401)


async def test_the_key_stands_neither_in_the_arguments_nor_in_the_environment(transport: EmbeddedTransport) -> None:
    await transport.count("")
    proc = Path(f"/proc/{pid_of(transport)}")
    arguments = proc.joinpath("cmdline").read_bytes().split(b"\0")
    assert arguments[1:] == [b"-P", b"-m", b"rune.models.embedded.worker", b""]
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
    answer = transport.chat(ask(STORY))
    await until(TextDelta, answer)
    os.kill(pid_of(transport), signal.SIGKILL)
    with pytest.raises(StreamBrokenError, match="SIGKILL"):
        await all_of(answer)
    assert await completed(transport.chat(ask("Hi", max_tokens=2)))


async def test_a_worker_killed_while_it_reads_is_unavailable(transport: EmbeddedTransport) -> None:
    answer = transport.chat(ask(LONG))
    async for chunk in answer:
        if isinstance(chunk, Progress) and chunk.phase == "reading":
            break
    os.kill(pid_of(transport), signal.SIGKILL)
    with pytest.raises(ModelUnavailableError, match="SIGKILL"):
        await all_of(answer)


async def test_a_worker_killed_between_two_calls_is_started_again(transport: EmbeddedTransport) -> None:
    await completed(transport.chat(ask("Hi", max_tokens=2)))
    pid = pid_of(transport)
    os.kill(pid, signal.SIGKILL)
    assert await completed(transport.chat(ask("Hi", max_tokens=2)))
    assert pid_of(transport) != pid


async def test_silence_in_mid_answer_is_a_timeout_and_ends_the_worker(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = transport_for(model_file, runtime_dir, tmp_path, token_timeout=0.3)
    answer = transport.chat(ask(STORY))
    await until(TextDelta, answer)
    os.kill(pid_of(transport), signal.SIGSTOP)
    with pytest.raises(ModelTimeoutError) as caught:
        await all_of(answer)
    assert caught.value.phase == "token"
    assert transport.worker_pid() is None
    await transport.close()


async def test_a_model_that_takes_too_long_to_load_is_a_timeout_and_leaves_nothing(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = transport_for(model_file, runtime_dir, tmp_path, first_byte_timeout=0.01)
    with pytest.raises(ModelTimeoutError) as caught:
        await all_of(transport.chat(ask("Hi")))
    assert caught.value.phase == "first_byte"
    assert left_in(runtime_dir) == []
    await transport.close()


async def test_closing_in_mid_answer_ends_the_call_with_an_error_and_the_worker_with_it(
    model_file: Path, runtime_dir: Path, tmp_path: Path
) -> None:
    transport = transport_for(model_file, runtime_dir, tmp_path)
    answer = transport.chat(ask(STORY))
    await until(TextDelta, answer)
    pid = pid_of(transport)
    await transport.close()
    with pytest.raises(StreamBrokenError):
        await all_of(answer)
    await transport.close()
    assert ends(pid, 0)
    assert left_in(runtime_dir) == []
    with pytest.raises(ModelUnavailableError, match="closed"):
        await all_of(transport.chat(ask("Hi")))


async def test_nothing_of_the_worker_reaches_the_terminal(
    transport: EmbeddedTransport, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # the second makes llama.cpp warn that the whole prompt was cached
        await completed(transport.chat(ask("Hi", max_tokens=2)))
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
    transport = transport_for(path, runtime_dir, tmp_path)
    async with asyncio.timeout(20):
        with pytest.raises(ModelUnavailableError, match=r"GGUF|not within the file bounds"):
            await all_of(transport.chat(ask("Hi", model="broken")))
    assert left_in(runtime_dir) == []
    await transport.close()


_PARENT = """
import asyncio, sys
from pathlib import Path
from tests.models.embedded.calls import ask, STORY, transport_for
from rune.models.transport import TextDelta

async def main():
    transport = transport_for(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
    async for chunk in transport.chat(ask(STORY)):
        if isinstance(chunk, TextDelta):
            print(transport.worker_pid(), flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_parent_that_is_killed_takes_its_worker_with_it(model_file: Path, runtime_dir: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PARENT, str(model_file), str(runtime_dir), str(tmp_path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    assert ends(worker, 2.0)
    assert left_in(runtime_dir) == []
