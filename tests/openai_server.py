"""A model server on a loopback port that speaks OpenAI's wire, with scripted bytes and faults on demand.

    async with OpenAIServer() as server:
        server.reply(CHAT, says("one two"))
        transport = OpenAITransport(ServerAddress.checked(server.base_url, source="test"))

Without a scripted answer it echoes the last message. A `key` is asked for as real servers do. Asked as a proxy it
answers for every host, so that a test can see what would leave the machine.
"""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.ollama_replies import Framing, Part, Received, Reply
from tests.ollama_server import OllamaServer

CHAT = "/v1/chat/completions"
MODELS = "/v1/models"
EMBEDDINGS = "/v1/embeddings"
PROPS = "/props"
STUDIO = "/api/v0/models"
DONE = b"data: [DONE]\n\n"
STREAM = {"Content-Type": "text/event-stream"}


class OpenAIServer(OllamaServer):
    """The server. `rows` are what `/v1/models` lists; `key` "" asks for none."""

    def __init__(self, rows: Sequence[dict[str, Any]] = ({"id": "test", "owned_by": "me"},), *, key: str = "") -> None:
        super().__init__()
        self.rows = list(rows)
        self.key = key

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def _answer(self, request: Received) -> Reply:
        if request.path.startswith("http://"):
            request.path = urlsplit(request.path).path
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return fails(401, message="Invalid API Key", type="authentication_error", code=401)
        return super()._answer(request)

    def _by_default(self, request: Received) -> Reply:
        match request.path:
            case "/v1/models":
                return answers({"object": "list", "data": self.rows})
            case "/v1/embeddings":
                texts = request.json["input"]
                data = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(texts)]
                return answers({"object": "list", "data": data})
            case "/v1/chat/completions":
                return says("You said: " + request.json["messages"][-1]["content"])
            case _:
                return fails(404, message="File Not Found", type="not_found_error", code=404)


def event(**fields: Any) -> bytes:
    """Return one event of a stream."""
    return b"data: " + json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def delta(**fields: Any) -> bytes:
    """Return an event with a piece of the answer."""
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": None}])


def finish(reason: str = "stop", **fields: Any) -> bytes:
    """Return the event that says why the model ended."""
    return event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}], **fields)


def usage(prompt: int = 10, output: int = 5, **fields: Any) -> bytes:
    """Return the event with nothing but the counts."""
    return event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": output, **fields})


def fragment(index: int | None = 0, **fields: Any) -> bytes:
    """Return an event with a fragment of a tool call; `name` and `arguments` stand in its `function`."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    call: dict[str, Any] = {**({} if index is None else {"index": index}), **fields, "function": function}
    return delta(tool_calls=[call])


def words(text: str) -> list[bytes]:
    """Return an event for each word."""
    return [delta(content=word if n == 0 else f" {word}") for n, word in enumerate(text.split(" "))]


def stream(*parts: Part, framing: Framing = "chunked", headers: dict[str, str] | None = None) -> Reply:
    """Return a streamed answer made of these parts."""
    return Reply(parts, framing=framing, headers=STREAM | (headers or {}))


def says(text: str) -> Reply:
    """Return a whole answer, streamed word by word, with counts."""
    return stream(*words(text), finish(), usage(), DONE)


def answers(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Return a JSON answer that is not streamed."""
    return Reply([json.dumps(value).encode()], status=status, framing="length", headers=headers or {})


def fails(status: int, **error: Any) -> Reply:
    """Return an error as these servers word it."""
    return answers({"error": error}, status)
