"""Fetching and removing models: progress, its one good end, calling off, going on, and every way it can fail."""

import asyncio
from contextlib import aclosing

import pytest

from rune.errors import (
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import ModelLibrary, PullProgress
from tests.models.transport_contract import DEADLINE
from tests.ollama_server import (
    Drop,
    Fetchable,
    OllamaServer,
    Part,
    Pause,
    Reply,
    Wait,
    cut,
    fails,
    page,
    recorded,
    status_line,
    stream,
)

PART = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
MANIFEST = status_line("pulling manifest")
HALF = status_line("pulling aaaaaaaaaaaa", digest=PART, total=1000, completed=500)
SUCCESS = status_line("success")


async def fetched(transport: OllamaTransport, model: str) -> tuple[list[PullProgress], ModelError | None]:
    """Return each progress and the error, if it ended in one."""
    steps: list[PullProgress] = []
    async with asyncio.timeout(DEADLINE):
        try:
            async with aclosing(transport.pull(model)) as pulling:
                async for progress in pulling:
                    steps.append(progress)  # noqa: PERF401 - what came before an error is kept
        except ModelError as error:
            return steps, error
    return steps, None


async def test_an_ollama_fetches_and_removes(transport: OllamaTransport) -> None:
    assert isinstance(transport, ModelLibrary)


async def test_a_model_is_fetched_part_by_part_and_is_there_then(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.fetchable["new:1b"] = Fetchable("new:1b", {PART: 500, OTHER: 50})
    steps, error = await fetched(transport, "new:1b")
    assert error is None
    assert steps == [
        PullProgress(status="pulling manifest"),
        PullProgress(status="pulling aaaaaaaaaaaa", part=PART, done=0, total=500),
        PullProgress(status="pulling aaaaaaaaaaaa", part=PART, done=250, total=500),
        PullProgress(status="pulling aaaaaaaaaaaa", part=PART, done=500, total=500),
        PullProgress(status="pulling bbbbbbbbbbbb", part=OTHER, done=0, total=50),
        PullProgress(status="pulling bbbbbbbbbbbb", part=OTHER, done=50, total=50),
        PullProgress(status="verifying sha256 digest"),
        PullProgress(status="writing manifest"),
        PullProgress(status="success"),
    ]
    assert (await transport.describe("new:1b")).name == "new:1b"
    asked = server.asked("/api/pull")[0]
    assert (asked.method, asked.json) == ("POST", {"model": "new:1b", "stream": True})


async def test_what_is_fetched_or_removed_shows_in_the_list_at_once(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.fetchable["new:1b"] = Fetchable("new:1b")
    with pytest.raises(ModelNotFoundError):
        await transport.describe("new:1b")
    await fetched(transport, "new:1b")
    assert (await transport.describe("new:1b")).size == 1050
    await transport.remove("new:1b")
    with pytest.raises(ModelNotFoundError):
        await transport.describe("new:1b")


async def test_closing_it_hangs_up_and_the_next_pull_goes_on_where_it_was(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    gate = asyncio.Event()
    server.fetchable["new:1b"] = Fetchable("new:1b", {PART: 1000}, 250, Wait(gate))
    server.fetched[PART] = 250
    async with asyncio.timeout(DEADLINE):
        async with aclosing(transport.pull("new:1b")) as pulling:
            await anext(pulling)
            assert (await anext(pulling)).done == 250
        await server.asked("/api/pull")[0].gone.wait()
    assert "new:1b" not in [info.name for info in await transport.models()]
    gate.set()
    steps, error = await fetched(transport, "new:1b")
    assert error is None
    assert [step.done for step in steps if step.part] == [250, 500, 750, 1000]


async def test_cancelling_its_task_hangs_up(server: OllamaServer, transport: OllamaTransport) -> None:
    server.fetchable["new:1b"] = Fetchable("new:1b", {PART: 1000}, 250, Wait(asyncio.Event()))
    fetching = asyncio.create_task(fetched(transport, "new:1b"))
    received = await server.next_request("/api/pull")
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    await asyncio.wait_for(received.gone.wait(), DEADLINE)


@pytest.mark.parametrize("way", ["one chunk", "one byte"])
@pytest.mark.parametrize(
    ("body", "kind", "words", "steps"),
    [
        (MANIFEST + HALF + SUCCESS, None, "", 3),
        (MANIFEST + HALF + SUCCESS[:-1], None, "", 3),
        (MANIFEST.replace(b"\n", b"\r\n\r\n") + SUCCESS, None, "", 2),
        (MANIFEST + SUCCESS + b"@@@", None, "", 2),
        (MANIFEST + HALF, StreamBrokenError, "broke off", 2),
        (MANIFEST + HALF + SUCCESS[:-5], StreamBrokenError, "broke off", 2),
        (b"", StreamBrokenError, "broke off", 0),
        (MANIFEST + b'{"error":"pull model manifest: file does not exist"}\n', ModelNotFoundError, "no model", 1),
        (MANIFEST + HALF + b'{"error":"write: no space left on device"}\n', ServerError, "no space left", 2),
        (MANIFEST + b'{"error":"{\\"error\\":\\"nested\\"}"}\n', ServerError, "nested", 1),
        (MANIFEST + b'{"error":"boom"}', ServerError, "boom", 1),
        (b"<html>Sign in</html>\n", ProtocolError, "not valid JSON", 0),
        (MANIFEST + b"{}\n", ProtocolError, "empty object", 1),
        (MANIFEST + b'{"status":7}\n', ProtocolError, "without a status", 1),
        (MANIFEST + b"[]\n", ProtocolError, "not a JSON object", 1),
    ],
)
async def test_each_way_a_pull_can_go_ends_in_its_own_type(
    server: OllamaServer,
    transport: OllamaTransport,
    way: str,
    body: bytes,
    kind: type[ModelError] | None,
    words: str,
    steps: int,
) -> None:
    parts: list[Part] = [*cut(body, [1] * len(body))] if way == "one byte" else [body] if body else []
    server.reply("/api/pull", stream(*parts))
    came, error = await fetched(transport, "new:1b")
    assert (type(error) if error else None) is kind
    assert len(came) == steps
    assert error is None or (words in error.message and came[-1:] != [PullProgress(status="success")])


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (fails(500, "pull model manifest: file does not exist"), ModelNotFoundError, "no model"),
        (fails(400, "invalid model name"), ServerError, "invalid model name"),
        (fails(500, "dial tcp: lookup registry.ollama.ai: no such host"), ServerError, "no such host"),
        (page(502, "<html>Bad gateway"), ServerError, "Bad gateway"),
        (page(404, "404 page not found"), ServerError, "404 page not found"),
        (stream(MANIFEST, Drop()), StreamBrokenError, "closed the connection"),
        (Reply([Drop()], framing="raw"), StreamBrokenError, "closed the connection"),
    ],
)
async def test_a_pull_that_is_refused_or_breaks_is_typed(
    server: OllamaServer, transport: OllamaTransport, reply: Reply, kind: type[ModelError], words: str
) -> None:
    server.reply("/api/pull", reply)
    _, error = await fetched(transport, "new:1b")
    assert error is not None
    assert type(error) is kind
    assert words in error.message


async def test_figures_that_make_no_sense_are_unknown(server: OllamaServer, transport: OllamaTransport) -> None:
    odd = b'{"status":"pulling","digest":7,"total":-1,"completed":"x"}\n'
    server.reply("/api/pull", stream(odd, SUCCESS))
    steps, error = await fetched(transport, "new:1b")
    assert error is None
    assert steps[0] == PullProgress(status="pulling")


async def test_silence_is_a_timeout(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=0.1)
    server.reply("/api/pull", stream(MANIFEST, Wait(asyncio.Event())))
    steps, error = await fetched(transport, "new:1b")
    assert len(steps) == 1
    assert isinstance(error, ModelTimeoutError)
    await asyncio.wait_for(server.asked("/api/pull")[0].gone.wait(), DEADLINE)
    await transport.close()


async def test_blank_lines_are_silence_too(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=0.3)
    drip: list[Part] = [each for _ in range(200) for each in (b"\n", Pause(0.02))]
    server.reply("/api/pull", stream(MANIFEST, *drip, SUCCESS))
    steps, error = await fetched(transport, "new:1b")
    assert (len(steps), type(error)) == (1, ModelTimeoutError)
    await transport.close()


async def test_a_model_is_removed_as_a_real_server_answers(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/delete", recorded("delete_broken"))
    await transport.remove("test")
    asked = server.asked("/api/delete")[0]
    assert (asked.method, asked.json) == ("DELETE", {"model": "test"})


async def test_removing_what_is_not_there_is_not_found(server: OllamaServer, transport: OllamaTransport) -> None:
    with pytest.raises(ModelNotFoundError):
        await transport.remove("nosuch")
    server.reply("/api/delete", recorded("delete_unknown_404"))
    with pytest.raises(ModelNotFoundError):
        await transport.remove("nosuch")


async def test_without_a_server_both_are_unavailable(server: OllamaServer, transport: OllamaTransport) -> None:
    await server.close()
    _, error = await fetched(transport, "new:1b")
    assert isinstance(error, ModelUnavailableError)
    with pytest.raises(ModelUnavailableError):
        await transport.remove("test")
