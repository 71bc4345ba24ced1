"""The port to whatever answers, and the values that cross it.

A transport sends the broker's bytes as they are: `ChatRequest.messages` and `.tools` are JSON arrays
already rendered in the transport's own `dialect`, and stand in the body byte for byte.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from rune.records.models import ThinkLevel
from rune.records.tools import ToolCall
from rune.records.traces import Dialect
from rune.records.usage import Usage

Capability = Literal["chat", "tools", "thinking", "vision", "embedding"]
CompletionReason = Literal["stop", "length", "tool_calls"]


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model as its server describes it. Sizes in bytes, `context_length` in tokens (what it was
    trained for); None where the server does not say. `digest` names the exact weights, "" unknown.
    """

    name: str
    provider: str
    capabilities: frozenset[Capability]
    context_length: int | None = None
    size: int | None = None
    parameters: str = ""
    quantisation: str = ""
    digest: str = ""
    family: str = ""
    remote: bool = False


class LoadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a server (re)load a model: one set for each model in a session, side calls
    included (models.md, rule 9). `num_ctx` is the window in tokens.
    """

    num_ctx: int


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One model call. `messages` and `tools` are rendered JSON arrays (`tools` is `b"[]"` when none);
    `format` a JSON schema that constrains the answer. `think` None leaves it to the model, which for Ollama
    means on; a server that knows no levels takes any of them as on. `max_tokens` None: as many as fit.
    `temperature` None leaves sampling to the model, 0 asks for its likeliest words. `estimated` is the prompt by the
    estimator.
    """

    model: str
    messages: bytes
    tools: bytes
    options: LoadOptions
    estimated: int
    format: bytes | None = None
    think: ThinkLevel | None = None
    max_tokens: int | None = None
    temperature: float | None = None


class LoadedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is in memory now. Bytes and tokens; None where the server does not say. `on_gpu` is how much of
    `size` lies on the GPU; `expires_at` is RFC 3339, "" for never or not known.
    """

    name: str
    window: int | None
    size: int | None
    on_gpu: int | None
    expires_at: str = ""


class PullProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far fetching a model is: `status` as the server words it, bytes of the part `part` ("": no part)."""

    status: str
    part: str = ""
    done: int | None = None
    total: int | None = None


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """The model is being loaded, or reads the prompt. Tokens; `total` None when unknown."""

    phase: Literal["loading", "reading"]
    done: int
    total: int | None


class TextDelta(msgspec.Struct, frozen=True, tag="text_delta"):
    """A piece of the answer; never empty."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag="thinking_delta"):
    """A piece of what the model thinks before it answers; never empty."""

    text: str


class ToolCallReady(msgspec.Struct, frozen=True, tag="tool_call_ready"):
    """One whole call."""

    call: ToolCall


class Completed(msgspec.Struct, frozen=True, tag="completed"):
    """The one good end of an iteration; nothing follows it."""

    reason: CompletionReason
    usage: Usage


ChatChunk = Progress | TextDelta | ThinkingDelta | ToolCallReady | Completed


class ChatTransport(Protocol):
    """What answers. An iteration of `chat` ends with exactly one Completed or raises exactly one
    ModelError; closing the iterator (or cancelling its task) calls the model off.
    """

    @property
    def provider(self) -> str:
        """`ollama`, `embedded`, `scripted`, `openai-compatible`, or the name that a person gave such a server."""
        ...

    @property
    def dialect(self) -> Dialect:
        """The form in which messages and tools must be rendered for it."""
        ...

    async def models(self) -> list[ModelInfo]:
        """List what can be used. Raises ModelUnavailableError when nobody answers."""
        ...

    async def describe(self, model: str) -> ModelInfo:
        """Describe one model. Raises ModelNotFoundError, ModelUnavailableError."""
        ...

    async def window_in_force(self, model: str) -> int | None:
        """Return the window that the loaded model really has, in tokens; None when unknown or not loaded."""
        ...

    async def loaded(self) -> list[LoadedModel]:
        """List what is in memory now; empty where the server does not say. Raises ModelUnavailableError."""
        ...

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """Stream one answer; an async generator, so that closing it early is a defined act."""
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text. Raises CapabilityMissingError where there is none."""
        ...

    async def close(self) -> None:
        """Let go of connections and children; may be called twice."""
        ...


@runtime_checkable
class ModelLibrary(Protocol):
    """A server that fetches and removes models; a ChatTransport that is none cannot (`isinstance` tells)."""

    def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Fetch a model; the last progress has the status `success`. Closing the iterator stops it, and the next
        pull goes on where it was. Raises ModelNotFoundError, ModelUnavailableError, else another ModelError.
        """
        ...

    async def remove(self, model: str) -> None:
        """Remove a model from the server's disk. Raises ModelNotFoundError, ModelUnavailableError."""
        ...
