"""A model that says what it was told to say: for canaries and tests, with the same port as the real ones."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from rune.errors import (
    BusyError,
    CallCancelledError,
    CapabilityMissingError,
    ConfigError,
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    CompletionReason,
    LoadedModel,
    ModelInfo,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.records.tools import ToolCall
from rune.records.traces import Dialect
from rune.records.usage import Usage

PROVIDER: Final = "scripted"
MODEL: Final = "scripted"
WINDOW: Final = 8192

_WORD: Final = re.compile(r"\s*\S+|\s+")


class Pause(msgspec.Struct, frozen=True):
    """Say nothing for so many seconds."""

    seconds: float


Step = ChatChunk | ModelError | asyncio.Event | Pause
"""A chunk to give, an error to raise, an event to wait for, or a pause."""

Answer = Sequence[Step]
Answers = Sequence[Answer] | Callable[[ChatRequest], Answer]
Sleep = Callable[[float], Awaitable[None]]


def says(
    text: str,
    *,
    thinking: str = "",
    calls: Sequence[ToolCall] = (),
    reason: CompletionReason | None = None,
    delay: float = 0.0,
) -> list[Step]:
    """Return a whole answer: one delta for each word, the calls, and its end. `delay` in seconds, a delta.

    Its usage counts words as output tokens and leaves the prompt uncounted.
    """
    chunks: list[ChatChunk] = [ThinkingDelta(word) for word in words(thinking)]
    chunks += [TextDelta(word) for word in words(text)]
    chunks += [ToolCallReady(call) for call in calls]
    steps: list[Step] = []
    for chunk in chunks:
        steps += [Pause(delay), chunk] if delay else [chunk]
    usage = Usage(calls=1, output_tokens=len(chunks))
    return [*steps, Completed(reason or ("tool_calls" if calls else "stop"), usage)]


def breaks(text: str, error: ModelError, *, delay: float = 0.0) -> list[Step]:
    """Return an answer that ends in `error` after `text`."""
    return [*says(text, delay=delay)[:-1], error]


def words(text: str) -> list[str]:
    """Split `text` into words with the space before them; joined they are `text`."""
    return _WORD.findall(text)


class ScriptedTransport:
    """Gives prepared answers in order, or computes each from its request; keeps the requests it got.

    An answer that has no end of its own ends in StreamBrokenError; what stands after its end is never
    given. Asked for more answers than there are, it raises ModelUnavailableError, unless `repeat_last`.
    `closed` counts the answers that were called off before their end.
    """

    def __init__(
        self,
        answers: Answers = (),
        *,
        models: Sequence[ModelInfo] = (),
        window: int = WINDOW,
        repeat_last: bool = False,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._answers = answers
        self._models = list(models) or [_model(MODEL, window)]
        self._window = window
        self._repeat_last = repeat_last
        self._sleep = sleep
        self.requests: list[ChatRequest] = []
        self.closed = 0

    @classmethod
    def from_file(cls, path: Path, *, sleep: Sleep = asyncio.sleep) -> Self:
        """Read a JSON script: a list of answers, or `{"answers": [...], "model": NAME, "window": TOKENS}`.

        An answer is `{"text": ..., "thinking": ..., "tool_calls": [{"name": ..., "arguments": {...}}],
        "error": KIND, "delay_ms": N}`, each key optional; the last one is given again and again. Kinds of
        error: see `ERRORS`. Raises ConfigError that names the file.
        """
        try:
            script = msgspec.json.decode(path.read_bytes(), type=_Script | list[_ScriptedAnswer])
            if isinstance(script, list):
                script = _Script(answers=script)
            answers = [_steps(answer) for answer in script.answers]
        except OSError as error:
            raise ConfigError(f"the script cannot be read: {error.strerror}", file=str(path)) from error
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"the script cannot be used: {error}", file=str(path)) from error
        if not answers:
            raise ConfigError("the script holds no answer", file=str(path))
        models = [_model(script.model, script.window)]
        return cls(answers, models=models, window=script.window, repeat_last=True, sleep=sleep)

    @property
    def provider(self) -> str:
        """`scripted`."""
        return PROVIDER

    @property
    def dialect(self) -> Dialect:
        """`ollama`."""
        return "ollama"

    async def models(self) -> list[ModelInfo]:
        """List the models it was given, or the one called `scripted`."""
        return list(self._models)

    async def describe(self, model: str) -> ModelInfo:
        """Describe one of them. Raises ModelNotFoundError."""
        for info in self._models:
            if info.name == model:
                return info
        raise ModelNotFoundError(f"the script has no model {model!r}")

    async def window_in_force(self, model: str) -> int | None:
        """Return the scripted window, in tokens."""
        await self.describe(model)
        return self._window

    async def loaded(self) -> list[LoadedModel]:
        """Say that all of its models are in memory, with the scripted window."""
        return [LoadedModel(name=info.name, window=self._window, size=info.size, on_gpu=None) for info in self._models]

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Raise CapabilityMissingError: a script has no vectors."""
        raise CapabilityMissingError(model, "embedding")

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
        """Give the next answer."""
        self.requests.append(request)
        ended = False
        try:
            for step in self._next(request):
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Pause):
                    await self._sleep(step.seconds)
                elif isinstance(step, ModelError):
                    ended = True
                    raise step
                else:
                    ended = isinstance(step, Completed)
                    yield step
                    if ended:
                        return
            ended = True
            raise StreamBrokenError("the script's answer has no end")
        finally:
            self.closed += not ended

    def _next(self, request: ChatRequest) -> Answer:
        if callable(self._answers):
            return self._answers(request)
        number = len(self.requests)
        if self._repeat_last and self._answers:
            number = min(number, len(self._answers))
        if number > len(self._answers):
            return [ModelUnavailableError(f"the script has {len(self._answers)} answers, this is call {number}")]
        return self._answers[number - 1]


ERRORS: Final[dict[str, Callable[[], ModelError]]] = {
    "busy": lambda: BusyError("the model server is busy"),
    "cancelled": lambda: CallCancelledError("the call was cancelled"),
    "capability_missing": lambda: CapabilityMissingError(MODEL, "tools"),
    "context_truncated": lambda: ContextTruncatedError(
        "the prompt does not fit", estimated=None, served=None, window=None
    ),
    "empty_output": lambda: EmptyOutputError(generated=None),
    "first_byte_timeout": lambda: ModelTimeoutError("no first token in time", phase="first_byte"),
    "model_not_found": lambda: ModelNotFoundError(f"model {MODEL!r} not found"),
    "protocol": lambda: ProtocolError("not the protocol"),
    "server": lambda: ServerError("it failed", status=500, phase="first_byte"),
    "stream_broken": lambda: StreamBrokenError("the answer ended before the model server said that it is complete"),
    "timeout": lambda: ModelTimeoutError("silent in mid-answer", phase="token"),
    "unavailable": lambda: ModelUnavailableError("nobody answers"),
}


class _ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class _ScriptedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[_ScriptedCall, ...] = ()
    error: str = ""
    delay_ms: float = 0.0
    reason: CompletionReason | None = None


class _Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answers: list[_ScriptedAnswer]
    model: str = MODEL
    window: int = WINDOW


def _steps(answer: _ScriptedAnswer) -> list[Step]:
    calls = [
        ToolCall(id=call.id or f"call_{number}", name=call.name, arguments=call.arguments)
        for number, call in enumerate(answer.tool_calls, start=1)
    ]
    steps = says(answer.text, thinking=answer.thinking, calls=calls, reason=answer.reason, delay=answer.delay_ms / 1000)
    if not answer.error:
        return steps
    if answer.error not in ERRORS:
        raise ValueError(f"no error is called {answer.error!r} (there are: {', '.join(ERRORS)})")
    return [*steps[:-1], ERRORS[answer.error]()]


def _model(name: str, window: int) -> ModelInfo:
    return ModelInfo(
        name=name,
        provider=PROVIDER,
        capabilities=frozenset({"chat", "tools", "thinking"}),
        context_length=window,
        digest=name,
    )
