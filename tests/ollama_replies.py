"""Answers of the loopback Ollama server: recordings, scripted ones, and faults."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

RECORDINGS = Path(__file__).parent / "data" / "ollama"
CREATED = "2026-11-30T12:41:25.737464115Z"
REASONS = {200: "OK", 302: "Found", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Not Allowed"}


@dataclass(frozen=True)
class Wait:
    """Send nothing until the event is set."""

    event: asyncio.Event


@dataclass(frozen=True)
class Pause:
    """Send nothing for so many seconds; for processes of their own, where no event can be set."""

    seconds: float


@dataclass(frozen=True)
class Do:
    """Do this when what stands before it has been written."""

    act: Callable[[], None]


@dataclass(frozen=True)
class Drop:
    """Close the connection here, without the body's end."""


@dataclass(frozen=True)
class Reset:
    """Cut the connection here with a TCP reset."""


@dataclass(frozen=True)
class Die:
    """End the whole process here, as kill -9 would."""


Part = bytes | Wait | Pause | Do | Drop | Reset | Die
Framing = Literal["chunked", "length", "close", "raw"]


@dataclass(frozen=True)
class Reply:
    """One answer. `parts` are written one by one, each as its own chunk; `raw` parts hold the head too."""

    parts: Sequence[Part]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    framing: Framing = "chunked"


@dataclass
class Received:
    """One request as it came. `gone` is set when the client closes its side."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    gone: asyncio.Event

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ServedModel:
    """A model that the server has; `listed` None: the list says what `/api/show` says."""

    name: str
    capabilities: tuple[str, ...] = ("completion", "tools")
    context_length: int = 8192
    size: int = 98_362_809
    digest: str = "d" * 64
    listed: tuple[str, ...] | None = None
    remote_host: str = ""
    family: str = "llama"

    def as_listed(self) -> dict[str, Any]:
        capabilities = self.capabilities if self.listed is None else self.listed
        remote = {"remote_host": self.remote_host, "remote_model": self.name} if self.remote_host else {}
        return {
            "name": self.name, "model": self.name, "modified_at": CREATED, "size": self.size, "digest": self.digest,
            "details": self.details() | {"context_length": self.context_length},
            "capabilities": list(capabilities), **remote,
        }  # fmt: skip

    def as_shown(self) -> dict[str, Any]:
        info = {"general.architecture": self.family, f"{self.family}.context_length": self.context_length}
        remote = {"remote_host": self.remote_host} if self.remote_host else {}
        return {"details": self.details(), "model_info": info, "capabilities": list(self.capabilities), **remote}

    def details(self) -> dict[str, Any]:
        return {
            "parent_model": "", "format": "gguf", "family": self.family, "families": None,
            "parameter_size": "134.52M", "quantization_level": "Q4_1",
        }  # fmt: skip


@dataclass
class Fetchable:
    """A model that the server can fetch: the sizes of its parts by digest, in bytes, and how much comes at once.
    `between` stands after each of these steps.
    """

    name: str
    parts: dict[str, int] = field(default_factory=lambda: {"sha256:" + "a" * 64: 1000, "sha256:" + "b" * 64: 50})
    step: int = 250
    between: Part | None = None


def fetching(model: Fetchable, have: dict[str, int], finished: Callable[[], None]) -> Reply:
    """Return the answer to a pull; `have` is what is on the disk of each part, and grows."""
    parts: list[Part] = [status_line("pulling manifest")]
    for digest, total in model.parts.items():
        for completed in [*range(have.get(digest, 0), total, model.step), total]:
            known: dict[str, Any] = {"completed": completed} if completed else {}
            parts.append(Do(partial(have.__setitem__, digest, completed)))
            parts.append(status_line(f"pulling {digest[7:19]}", digest=digest, total=total, **known))
            if model.between is not None:
                parts.append(model.between)
    parts += [status_line("verifying sha256 digest"), status_line("writing manifest"), Do(finished)]
    return Reply([*parts, status_line("success")])


def status_line(status: str, **fields: Any) -> bytes:
    """Return one line of an answer that tells how far something is."""
    return json.dumps({"status": status, **fields}, separators=(",", ":")).encode() + b"\n"


def line(message: Mapping[str, Any] | None = None, **fields: Any) -> bytes:
    """Return one line of a chat stream; `done` is False unless it is given."""
    value: dict[str, Any] = {"model": "test", "created_at": CREATED}
    if message is not None:
        value["message"] = {"role": "assistant", "content": "", **message}
    return json.dumps({**value, "done": False, **fields}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def done(message: Mapping[str, Any] | None = None, **fields: Any) -> bytes:
    """Return the last line of a whole answer, with counts."""
    counts = {"done_reason": "stop", "total_duration": 5_000_000, "prompt_eval_count": 10, "eval_count": 5}
    return line(message or {}, done=True, **{**counts, **fields})


def text_lines(text: str, **fields: Any) -> list[bytes]:
    """Return the lines of an answer, one for each word, and its last line."""
    words = text.split(" ")
    pieces = [word if index == 0 else f" {word}" for index, word in enumerate(words)] if text else []
    return [line({"content": piece}) for piece in pieces] + [done(eval_count=len(pieces), **fields)]


def call(name: str, arguments: Any, *, call_id: str | None = "call_abc12345", index: int = 0) -> dict[str, Any]:
    """Return one tool call as it stands in a message."""
    function = {"index": index, "name": name, "arguments": arguments}
    return {"function": function} if call_id is None else {"id": call_id, "function": function}


def says(text: str, **fields: Any) -> Reply:
    """Return an answer that is `text`, streamed word by word."""
    return Reply(text_lines(text, **fields))


def stream(*parts: Part, framing: Framing = "chunked", headers: Mapping[str, str] | None = None) -> Reply:
    """Return an answer made of these parts."""
    return Reply(parts, framing=framing, headers=headers or {})


def fails(status: int, error: str) -> Reply:
    """Return an error as the server words it."""
    return Reply([json.dumps({"error": error}).encode()], status=status, framing="length")


def answers(value: Any) -> Reply:
    """Return a JSON answer that is not streamed."""
    return Reply([json.dumps(value).encode()], framing="length")


def page(status: int, text: str, content_type: str = "text/html", **headers: str) -> Reply:
    """Return an answer that is not JSON."""
    return Reply([text.encode()], status=status, framing="length", headers={"Content-Type": content_type, **headers})


def recorded(name: str) -> Reply:
    """Return a recording of a real server, head and chunk framing included, as it was on the wire."""
    return Reply([(RECORDINGS / f"{name}.wire.response.bin").read_bytes()], framing="raw")


def cut(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Cut `data` into pieces of these sizes, the rest in one."""
    pieces: list[bytes] = []
    start = 0
    for size in sizes:
        if start >= len(data):
            break
        pieces.append(data[start : start + size])
        start += size
    return [*pieces, data[start:]] if start < len(data) else pieces


def no_such_model(model: str) -> Reply:
    """Return what the server says about a model that it does not have."""
    return fails(404, f"model '{model}' not found")
