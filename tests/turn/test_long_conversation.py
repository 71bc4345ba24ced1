"""Fifty turns against a real server's wire: one set of load options, a prompt that only grows, every call claimed."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from rune.bootstrap import Services, build
from rune.models.ollama.transport import OllamaTransport
from rune.models.side_call import SideRequest
from rune.models.side_messages import SideMessage
from rune.records.traces import InferenceTraceRecord
from rune.records.turns import StopReason
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest
from tests.ollama_server import OllamaServer, Received, Reply, done, line, stream
from tests.turn.rig import closing

TURNS = 50
RESTARTED_AFTER = 25
SIDE_CALL_EVERY = 5
MODEL = "test:latest"
# What a server may be told otherwise from one call to the next without loading the model anew.
FREE = {"num_predict", "temperature"}


class Body(msgspec.Struct, frozen=True):
    """A recorded body. `messages` are its bytes as they were sent."""

    model: str
    messages: msgspec.Raw
    options: dict[str, float]
    truncate: bool
    shift: bool
    keep_alive: str | int | None = None

    @property
    def load_options(self) -> tuple[object, ...]:
        loading = tuple((name, value) for name, value in sorted(self.options.items()) if name not in FREE)
        return (self.model, self.truncate, self.shift, self.keep_alive, *loading)

    @property
    def sent(self) -> bytes:
        return bytes(self.messages)


class Growing:
    """A server's side: it answers at greater and greater length, and counts what it read, cached tokens too."""

    def __init__(self) -> None:
        self.answers = 0
        self._last = b""

    def __call__(self, request: Received) -> Reply:
        sent = bytes(msgspec.json.decode(request.body, type=Body).messages)
        same = next((at for at, (old, new) in enumerate(zip(self._last, sent, strict=False)) if old != new), len(sent))
        self._last = sent
        self.answers += 1
        words = f"river {self.answers}: " + "it flows through hills " * self.answers
        counts: dict[str, Any] = {"prompt_eval_count": len(sent) // 5, "prompt_eval_cached_count": same // 5}
        half = len(words) // 2
        return stream(line({"content": words[:half]}), line({"content": words[half:]}), done(**counts))


@asynccontextmanager
async def rune(home: Path, server: OllamaServer) -> AsyncGenerator[tuple[Services, OllamaTransport]]:
    transport = OllamaTransport(server.url)
    services = build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=(transport,), tools=())
    try:
        await services.start()
        yield services, transport
    finally:
        await services.close()


async def say(services: Services, folder: Path, number: int, conversation: str | None) -> TurnClosed:
    request = TurnRequest(text=f"name river {number}", folder=str(folder), conversation_id=conversation)
    closed = closing([event async for event in services.surface.operator.send_task(request)])
    assert closed.stop_reason is StopReason.ANSWERED, closed.error
    return closed


async def title(services: Services, transport: OllamaTransport, window: int, closed: TurnClosed) -> None:
    request = SideRequest(
        task="probe",
        messages=(SideMessage(role="user", content=f"name this: {closed.answer[:40]}"),),
        max_tokens=32,
        format=b'{"type":"object","properties":{"title":{"type":"string"}}}',
        temperature=0.0,
        conversation_id=closed.conversation_id,
        turn_id=closed.turn_id,
    )
    await services.side_calls.ask(transport, await transport.describe(MODEL), window, request)


def chats(server: OllamaServer) -> list[Body]:
    return [msgspec.json.decode(request.body, type=Body) for request in server.asked("/api/chat")]


async def talk(server: OllamaServer, home: Path) -> tuple[list[InferenceTraceRecord], list[bytes], dict[str, bytes]]:
    """Hold the conversation, with a restart in its middle; returns its traces, oldest first, the prompts of its turns,
    and every prompt as it was rebuilt, by its request's place in the traces.
    """
    folder = home.parent
    conversation: str | None = None
    turns: list[bytes] = []
    for numbers in (range(1, RESTARTED_AFTER + 1), range(RESTARTED_AFTER + 1, TURNS + 1)):
        async with rune(home, server) as (services, transport):
            for number in numbers:
                closed = await say(services, folder, number, conversation)
                conversation = closed.conversation_id
                turns.append(chats(server)[-1].sent)
                if number % SIDE_CALL_EVERY == 0:
                    window = chats(server)[-1].options["num_ctx"]
                    await title(services, transport, int(window), closed)
            views = services.surface.views
            traces = list(reversed(await views.traces(limit=1000)))
            rebuilt: dict[str, bytes] = {}
            for trace in traces:
                for prompt, recipe in zip(await views.prompts(trace), trace.requests, strict=True):
                    assert prompt.matches, prompt.problems
                    assert bool(prompt.format) is bool(recipe.format) is (trace.kind == "side")
                    rebuilt[trace.id] = prompt.messages
    return traces, turns, rebuilt


async def test_fifty_turns_load_once_only_grow_and_leave_no_call_unclaimed(tmp_path: Path) -> None:
    async with OllamaServer() as server:
        server.reply("/api/chat", Growing())
        traces, turns, rebuilt = await talk(server, tmp_path / "home")
        bodies = chats(server)

    assert len({body.load_options for body in bodies}) == 1
    assert len(bodies) == len(traces) == TURNS + TURNS // SIDE_CALL_EVERY
    assert Counter(rebuilt.values()) == Counter(body.sent for body in bodies)
    assert {trace.num_ctx for trace in traces} == {bodies[0].options["num_ctx"]}

    of_turns = [trace for trace in traces if trace.kind == "conversation"]
    assert [rebuilt[trace.id] for trace in of_turns] == turns
    assert of_turns[0].prefix_reuse is None
    breaks = 0
    for (earlier, later), trace in zip(pairwise(turns), of_turns[1:], strict=True):
        if trace.prefix_break is None:
            assert later.startswith(earlier.removesuffix(b"]") + b","), trace.id
            assert trace.prefix_reuse == 1.0
        else:
            breaks += 1
            assert trace.dropped_blocks, trace.prefix_break
            assert not later.startswith(earlier.removesuffix(b"]"))
    # It grew out of its window, and not at every turn: there is something to see on both sides.
    assert 1 <= breaks <= TURNS // 10
    assert of_turns[RESTARTED_AFTER].prefix_break is None
    assert json.loads(turns[-1])[-1] == {"role": "user", "content": f"name river {TURNS}"}
