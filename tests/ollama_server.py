"""A model server on a loopback port that speaks Ollama's wire, with faults on demand.

It replays recordings of a real Ollama byte for byte, gives scripted answers otherwise, and keeps every
request's body as it came. In a test:

    async with OllamaServer() as server:
        server.reply("/api/chat", recorded("chat_stream_smollm2"))
        transport = OllamaTransport(server.url)

As a process of its own, for journeys and kill tests:

    python -m tests.ollama_server [--script FILE] [--record DIR]

It prints `listening on http://127.0.0.1:PORT` and serves until it is ended. Without a script it echoes, word
by word. The script is JSON, each key optional:

    {"models": ["name", {"name": "n", "capabilities": ["completion", "tools"], "context_length": 8192}],
     "loaded": {"name": 8192},
     "fetchable": {"name": {"size": 1000000, "step": 50000, "delay_ms": 20}},
     "answers": [{"text": "one two", "thinking": "", "delay_ms": 5, "die_after": 2},
                 {"tool_calls": [{"name": "read", "arguments": {}}]},
                 {"status": 503, "error": "server busy"}, {"text": "one two", "drop_after": 1},
                 {"recording": "chat_utf8"}]}

Answers are given in order, the last one again and again. `die_after` ends the whole process after so many
words, `drop_after` only its connection. `--record DIR` keeps each body as `DIR/0001_api_chat.bin`.
"""

import argparse
import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.ollama_connection import Connection
from tests.ollama_replies import (
    CREATED,
    Die,
    Do,
    Drop,
    Fetchable,
    Part,
    Pause,
    Received,
    Reply,
    Reset,
    ServedModel,
    Wait,
    answers,
    call,
    cut,
    done,
    fails,
    fetching,
    line,
    no_such_model,
    page,
    recorded,
    says,
    status_line,
    stream,
    text_lines,
)

__all__ = [
    "Do",
    "Drop",
    "Fetchable",
    "OllamaServer",
    "Part",
    "Pause",
    "Received",
    "Reply",
    "Reset",
    "ServedModel",
    "Wait",
    "answers",
    "call",
    "cut",
    "done",
    "fails",
    "line",
    "page",
    "recorded",
    "says",
    "status_line",
    "stream",
    "text_lines",
]

Answerer = Callable[[Received], Reply]


class OllamaServer:
    """The server. `models` and `loaded` are what it has; `requests` what it was asked, in order.

    `fetchable` is what `/api/pull` can fetch and `fetched` how many bytes of each part are here, so that a pull which
    was called off goes on where it was. `reply` puts answers for a path in a queue; the last one stays. Without any,
    `/api/chat` echoes the last message and the other paths tell what there is.
    """

    def __init__(self, models: Sequence[ServedModel] = (ServedModel("test:latest"),)) -> None:
        self.models = list(models)
        self.loaded: dict[str, int] = {}
        self.fetchable: dict[str, Fetchable] = {}
        self.fetched: dict[str, int] = {}
        self.requests: list[Received] = []
        self.connections = 0
        self.on_request: Callable[[Received], None] | None = None
        self._queues: dict[str, list[Reply | Answerer]] = {}
        self._server: asyncio.Server | None = None
        self._open: set[Connection] = set()
        self._arrived = asyncio.Event()

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, path: str, *replies: Reply | Answerer) -> None:
        """Answer `path` with these, in order, the last one again and again."""
        self._queues[path] = list(replies)

    def asked(self, path: str) -> list[Received]:
        """Return the requests for a path, in order."""
        return [request for request in self.requests if request.path == path]

    async def next_request(self, path: str, count: int = 1, seconds: float = 5.0) -> Received:
        """Wait until `path` was asked for `count` times and return that request."""
        async with asyncio.timeout(seconds):
            while len(self.asked(path)) < count:
                await self._arrived.wait()
        return self.asked(path)[count - 1]

    async def start(self, port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self._serve), "127.0.0.1", port)

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.abort()
        await asyncio.gather(*(connection.task for connection in list(self._open)), return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _serve(self, connection: "Connection") -> None:
        self._open.add(connection)
        self.connections += 1
        try:
            while (request := await connection.read_request()) is not None:
                self.requests.append(request)
                if self.on_request is not None:
                    self.on_request(request)
                self._arrived.set()
                self._arrived = asyncio.Event()
                if not await connection.write_reply(self._answer(request)):
                    return
        finally:
            self._open.discard(connection)
            connection.close()

    def _answer(self, request: Received) -> Reply:
        queue = self._queues.get(request.path)
        if queue:
            reply = queue.pop(0) if len(queue) > 1 else queue[0]
            return reply(request) if callable(reply) else reply
        return self._by_default(request)

    def _by_default(self, request: Received) -> Reply:
        match request.path:
            case "/":
                return page(200, "Ollama is running", "text/plain")
            case "/api/version":
                return answers({"version": "0.33.0"})
            case "/api/tags":
                return answers({"models": [model.as_listed() for model in self.models]})
            case "/api/ps":
                return answers({"models": [self._as_running(name) for name in self.loaded]})
            case "/api/show" | "/api/embed" | "/api/chat" | "/api/delete" | "/api/pull":
                return self._about_a_model(request)
            case _:
                return page(404, "404 page not found", "text/plain")

    def _about_a_model(self, request: Received) -> Reply:
        if request.path == "/api/pull":
            return self._pull(request.json["model"])
        model = self._find(request.json["model"])
        if model is None:
            return no_such_model(request.json["model"])
        if request.path == "/api/show":
            return answers(model.as_shown())
        if request.path == "/api/delete":
            self.models.remove(model)
            self.loaded.pop(model.name, None)
            return Reply([], framing="length")
        if request.path == "/api/embed":
            return answers({"embeddings": [[float(len(text)), 1.0] for text in request.json["input"]]})
        return self._echo(request)

    def _pull(self, name: str) -> Reply:
        model = self.fetchable.get(name)
        if model is None:
            unknown = json.dumps({"error": "pull model manifest: file does not exist"}).encode() + b"\n"
            return stream(status_line("pulling manifest"), unknown)

        def finished() -> None:
            if self._find(name) is None:
                self.models.insert(0, ServedModel(name, size=sum(model.parts.values())))

        return fetching(model, self.fetched, finished)

    def _echo(self, request: Received) -> Reply:
        messages = request.json["messages"]
        if not messages:
            return Reply([line({}, done=True, done_reason="load")])
        self.loaded.setdefault(request.json["model"], request.json.get("options", {}).get("num_ctx", 4096))
        return says("You said: " + messages[-1]["content"])

    def _find(self, name: str) -> ServedModel | None:
        return next((model for model in self.models if model.name in {name, f"{name}:latest"}), None)

    def _as_running(self, name: str) -> dict[str, Any]:
        found = self._find(name)
        listed = found.as_listed() if found else {"name": name, "model": name}
        return {**listed, "size_vram": 0, "context_length": self.loaded[name], "expires_at": CREATED}


def _scripted(entry: dict[str, Any]) -> Reply:
    """Return the answer that one entry of a script's `answers` asks for."""
    if "recording" in entry:
        return recorded(entry["recording"])
    if "error" in entry:
        return fails(entry.get("status", 500), entry["error"])
    if "tool_calls" in entry:
        calls = [
            call(item["name"], item["arguments"], call_id=f"call_{n}") for n, item in enumerate(entry["tool_calls"])
        ]
        return stream(line({"content": entry.get("text", ""), "tool_calls": calls}), done())
    thinking = [line({"thinking": entry["thinking"]})] if entry.get("thinking") else []
    lines = text_lines(entry["text"])
    parts: list[Part] = [*thinking]
    for number, word in enumerate(lines):
        if number == entry.get("die_after"):
            parts.append(Die())
        if number == entry.get("drop_after"):
            parts.append(Drop())
        if entry.get("delay_ms"):
            parts.append(Pause(entry["delay_ms"] / 1000))
        parts.append(word)
    return stream(*parts)


def _keep_in(folder: Path) -> Callable[[Received], None]:
    count = 0

    def keep(request: Received) -> None:
        nonlocal count
        count += 1
        (folder / f"{count:04}{request.path.replace('/', '_')}.bin").write_bytes(request.body)

    return keep


async def serve(script: Mapping[str, Any], *, record: Path | None, port: int) -> None:
    """Serve until the process is ended."""
    given: list[str | dict[str, Any]] = script.get("models", ["test:latest"])
    server = OllamaServer([ServedModel(model) if isinstance(model, str) else ServedModel(**model) for model in given])
    server.loaded.update(script.get("loaded", {}))
    for name, given_size in script.get("fetchable", {}).items():
        pause = Pause(given_size.get("delay_ms", 0) / 1000)
        size = {"sha256:" + "a" * 64: given_size["size"]}
        server.fetchable[name] = Fetchable(name, size, given_size.get("step", given_size["size"]), pause)
    if "answers" in script:
        server.reply("/api/chat", *(_scripted(entry) for entry in script["answers"]))
    if record is not None:
        server.on_request = _keep_in(record)
    await server.start(port)
    print(f"listening on {server.url}", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A loopback server that speaks Ollama's wire.")
    parser.add_argument("--script", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    script: dict[str, Any] = json.loads(arguments.script.read_text()) if arguments.script else {}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(script, record=arguments.record, port=arguments.port))


if __name__ == "__main__":
    main()
