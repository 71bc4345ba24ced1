"""Each kind of fault x {one chunk, one byte at a time, cut at random} over a real socket: the same one typed end.

`pytest tests/models/ollama/test_fault_matrix.py -s -k summary` prints how many kinds there are and how they end.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

import pytest

from rune.errors import ServerError
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import ChatChunk, Completed, Progress, TextDelta, ThinkingDelta, ToolCallReady
from tests.models.ollama.faults import DRIP, FAULTS, HI, NEVER, Fault
from tests.models.transport_contract import TOOLS, collect, request, text_of
from tests.ollama_server import OllamaServer, Part, Pause, Reply, Wait, call, cut, done, line, stream

PATIENCE = 0.25
DRIPPING = 0.002
EDGE = 600
COARSE = 256 * 1024


def one_chunk(data: bytes, _: bool) -> Sequence[bytes]:
    return [data] if data else []


def one_byte(data: bytes, coarse: bool) -> Sequence[bytes]:
    """Cut into single bytes: all of it, or of what is long both ends; what is marked coarse into large pieces."""
    if coarse:
        return cut(data, [COARSE] * (len(data) // COARSE))
    middle = [len(data) - 2 * EDGE] if len(data) > 2 * EDGE else []
    return cut(data, [1] * EDGE + middle + [1] * EDGE)


def at_random(data: bytes, coarse: bool) -> Sequence[bytes]:
    chance, longest = random.Random(len(data)), 3 * COARSE if coarse else 40  # noqa: S311 - where to cut
    sizes: list[int] = []
    while sum(sizes) < len(data):
        sizes.append(chance.randint(1, longest))
    return cut(data, sizes)


CUTS: dict[str, Callable[[bytes, bool], Sequence[bytes]]] = {
    "one chunk": one_chunk,
    "one byte": one_byte,
    "random": at_random,
}


def reply_of(fault: Fault, pieces: Sequence[bytes]) -> Reply:
    """Return what the server does: the pieces in their framing, and what comes after them."""
    parts: list[Part] = [*pieces]
    if fault.then == DRIP:
        first = len(HI) if fault.impatient else 0
        parts = [fault.body[:first]] if first else []
        for drop in cut(fault.body[first:], [2] * len(fault.body)):
            parts += [drop, Pause(DRIPPING)]
    elif fault.framing != "chunked":
        # Without HTTP's own chunks only time keeps two pieces apart: one turn of the loop.
        spaced: list[Part] = [part for piece in pieces for part in (piece, Pause(0))]
        parts = spaced[:-1]
    if fault.then == NEVER:
        parts.append(Wait(asyncio.Event()))
    elif not isinstance(fault.then, str):
        parts.append(fault.then)
    return Reply(parts, status=fault.status, headers=fault.headers, framing=fault.framing)


async def no_wait(_: float) -> None:
    return None


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as server:
        yield server


@pytest.fixture(scope="module")
async def patient(server: OllamaServer) -> AsyncIterator[OllamaTransport]:
    transport = OllamaTransport(server.url, first_byte_timeout=8, token_timeout=8, sleep=no_wait)
    yield transport
    await transport.close()


@pytest.fixture(scope="module")
async def impatient(server: OllamaServer) -> AsyncIterator[OllamaTransport]:
    transport = OllamaTransport(server.url, first_byte_timeout=PATIENCE, token_timeout=PATIENCE, sleep=no_wait)
    yield transport
    await transport.close()


@pytest.mark.parametrize("way", list(CUTS))
@pytest.mark.parametrize("name", list(FAULTS))
async def test_every_fault_ends_in_its_own_type_however_it_is_cut(
    server: OllamaServer, patient: OllamaTransport, impatient: OllamaTransport, name: str, way: str
) -> None:
    fault = FAULTS[name]
    server.reply("/api/chat", reply_of(fault, CUTS[way](fault.body, fault.coarse)))
    asked = request("test", estimated=fault.estimated, tools=TOOLS if fault.tools else b"[]")
    chunks, error = await collect(impatient if fault.impatient else patient, asked)
    ends = [chunk.reason for chunk in chunks if isinstance(chunk, Completed)]
    assert (ends or [type(error)]) == [fault.end]
    assert error is None or fault.says in error.message
    assert error is None or len(error.message) < 1000
    assert fault.text is None or text_of(chunks) == fault.text
    assert joined_thinking(chunks) == fault.thinking
    calls = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert tuple(made.name for made in calls) == fault.calls
    assert len({made.id for made in calls}) == len(calls)


def joined_thinking(chunks: Iterable[ChatChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta))


def summary() -> str:
    """Return how many kinds there are, and how many of them end in each way."""
    ends = Counter(
        f"Completed ({fault.end})" if isinstance(fault.end, str) else fault.end.__name__ for fault in FAULTS.values()
    )
    rows = [f"{end:<24} {count:>4}" for end, count in ends.items()]
    return "\n".join([f"{len(FAULTS)} kinds x {len(CUTS)} cuts = {len(FAULTS) * len(CUTS)} cases", *sorted(rows)])


def test_summary() -> None:
    print(f"\n{summary()}")
    assert len(FAULTS) >= 110
    proven = [fault for fault in FAULTS.values() if isinstance(fault.end, str)]
    assert all(b'"done":true' in fault.body or fault.headers.get("Content-Encoding") for fault in proven)


@pytest.mark.parametrize("way", list(CUTS))
async def test_thinking_text_and_calls_keep_their_order(
    server: OllamaServer, patient: OllamaTransport, way: str
) -> None:
    body = (
        line({"thinking": "hm", "content": "a"}) + line({"tool_calls": [call("t", {"k": "é"}, call_id=None)]})
        + line({"thinking": "so"}) + done({"content": "b", "tool_calls": [call("u", "{}", call_id=None)]})
    )  # fmt: skip
    server.reply("/api/chat", stream(*CUTS[way](body, False)))
    chunks, error = await collect(patient, request("test", tools=TOOLS))
    assert error is None
    seen = [chunk.call.name + chunk.call.id for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert seen == ["tcall_1", "ucall_2"]
    order = [type(chunk) for chunk in chunks if not isinstance(chunk, Progress)]
    assert order == [
        ThinkingDelta, TextDelta, ToolCallReady, ThinkingDelta, TextDelta, ToolCallReady, Completed
    ]  # fmt: skip


async def test_a_redirect_is_not_followed(server: OllamaServer, patient: OllamaTransport) -> None:
    before = len(server.requests)
    server.reply("/api/chat", Reply([], status=302, framing="length", headers={"Location": server.url + "/elsewhere"}))
    _, error = await collect(patient, request("test"))
    assert isinstance(error, ServerError)
    assert "/elsewhere" in error.message
    assert "/elsewhere" not in [received.path for received in server.requests[before:]]
