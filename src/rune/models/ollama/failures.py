"""What Ollama says when it cannot answer, as typed errors (models.md, rules 3, 8 and 14).

The wording differs between versions and between its engines; each pattern was seen in a recorded answer
or in its source.
"""

import re
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec

from rune.errors import (
    BusyError,
    CallCancelledError,
    CapabilityMissingError,
    ContextTruncatedError,
    ModelError,
    ModelNotFoundError,
    Phase,
    ProtocolError,
    ServerError,
)
from rune.models.wire.http import Asked
from rune.models.wire.ndjson import as_object, decode_object, excerpt

_NESTING: Final = 2
_TEXT_SHOWN: Final = 600
# Not a status of HTTP: the server writes it for a call whose client went away.
_CALLED_OFF: Final = 499

_OVERFLOW: Final = re.compile(
    r"exceed_context_size|exceeds the (available )?context|longer than the context length", re.IGNORECASE
)
_OVERFLOW_NUMBERS: Final = re.compile(r"\((\d+) tokens\).*?\((\d+) tokens\)", re.DOTALL)
_CAPABILITY: Final = re.compile(
    r"does not support (chat|completion|generate|tools|thinking|vision|images?|embeddings?)\b", re.IGNORECASE
)
_CAPABILITIES: Final[dict[str, Literal["chat", "tools", "thinking", "vision", "embedding"]]] = {
    "chat": "chat",
    "completion": "chat",
    "generate": "chat",
    "tools": "tools",
    "thinking": "thinking",
    "vision": "vision",
    "image": "vision",
    "images": "vision",
    "embedding": "embedding",
    "embeddings": "embedding",
}
# What a model wrote as a call and the server could not read; the last two are its engine's and one parser's words.
_UNREADABLE_CALL: Final = re.compile(
    r"error parsing tool call|returned invalid tool call|tool call parsing failed", re.IGNORECASE
)
# Servers from before there were levels of thinking know a truth value only.
_NO_LEVEL: Final = re.compile(r"invalid think value|cannot unmarshal string .*\bthink\b", re.IGNORECASE)
_MEMORY: Final = re.compile(r"resource limitations|out of memory|more system memory", re.IGNORECASE)
_NO_SUCH_MODEL: Final = re.compile(r"model .*not found|try pulling it", re.IGNORECASE | re.DOTALL)
_NOT_OLLAMA: Final = "Is that an Ollama server? Check the address in OLLAMA_HOST or `model.host`."


class ErrorText(msgspec.Struct, frozen=True, kw_only=True):
    """An error's sentence, and what a JSON object round it held besides."""

    text: str
    details: dict[str, Any]


def unwrap(error: object) -> ErrorText:
    """Return the sentence inside an `error` value: text, an object, or either as JSON inside a string."""
    details: dict[str, Any] = {}
    for _ in range(2 * _NESTING + 1):
        if isinstance(error, str) and error.lstrip().startswith("{"):
            try:
                error = decode_object(error.strip().encode("utf-8", "replace"))
            except ProtocolError:
                break  # text that only looks like JSON: it is the sentence
        fields = as_object(error)
        if fields is None:
            break
        details = details | fields
        error = fields.get("error") or fields.get("message") or ""
    return ErrorText(text=error if isinstance(error, str) else msgspec.json.encode(error).decode(), details=details)


def from_status(status: int, body: bytes, *, asked: Asked, location: str = "") -> ModelError:
    """Type an answer that is not a 200; its body may be JSON, text, HTML or nothing."""
    try:
        said = unwrap(decode_object(body))
    except ProtocolError:
        said = ErrorText(text=excerpt(body), details={})
    from_server = bool(said.details)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        text = f"it redirects to {location or 'another address'}, which Rune does not follow"
        return ServerError(text, status=status, phase="first_byte", hint="Set OLLAMA_HOST to the final address.")
    if status == HTTPStatus.NOT_FOUND and not (from_server and _NO_SUCH_MODEL.search(said.text)):
        return ServerError(said.text, status=status, phase="first_byte", hint=_NOT_OLLAMA)
    return typed(said, status=status, phase="first_byte", asked=asked)


def typed(said: ErrorText, *, status: int, phase: Phase, asked: Asked) -> ModelError:
    """Type an error by what it says; `status` is 0 for a line inside a running stream."""
    if _OVERFLOW.search(said.text) or said.details.get("type") == "exceed_context_size_error":
        return _overflow(said, asked)
    if missing := _CAPABILITY.search(said.text):
        return CapabilityMissingError(asked.model, _CAPABILITIES[missing[1].lower()])
    if status == HTTPStatus.NOT_FOUND or (status == 0 and _NO_SUCH_MODEL.search(said.text)):
        hint = f"Get it with `rune models pull {asked.model}`, or choose another: /model."
        return ModelNotFoundError(f"model {asked.model!r} not found", hint=hint)
    if status == HTTPStatus.SERVICE_UNAVAILABLE or "server busy" in said.text:
        return BusyError(f"the model server is busy: {said.text}" if said.text else "the model server is busy")
    if status == _CALLED_OFF:
        return CallCancelledError(said.text or "the server says that the call was cancelled")
    return ServerError(said.text[:_TEXT_SHOWN], status=status, phase=phase, hint=_hint(said, status))


def is_unreadable_call(error: ModelError) -> bool:
    """Whether the server gave up because it could not read the call that the model wrote (rule 14)."""
    return isinstance(error, ServerError) and bool(_UNREADABLE_CALL.search(error.text))


def knows_no_level(error: ModelError) -> bool:
    """Whether the server refused a level of thinking that it does not know, and may take plain on."""
    return (
        isinstance(error, ServerError) and error.status == HTTPStatus.BAD_REQUEST and bool(_NO_LEVEL.search(error.text))
    )


def _overflow(said: ErrorText, asked: Asked) -> ContextTruncatedError:
    prompt, window = said.details.get("n_prompt_tokens"), said.details.get("n_ctx")
    if numbers := _OVERFLOW_NUMBERS.search(said.text):
        prompt, window = prompt or int(numbers[1]), window or int(numbers[2])
    prompt = prompt if type(prompt) is int else None
    window = window if type(window) is int else asked.window
    size = f"{prompt:,} tokens" if prompt is not None else "more"
    limit = f"the window of {window:,}" if window is not None else "the model's window"
    return ContextTruncatedError(
        f"the prompt does not fit: {size}, over {limit}" if prompt is None else f"the prompt is {size}, over {limit}",
        estimated=asked.estimated,
        served=prompt,
        window=window,
    )


def _hint(said: ErrorText, status: int) -> str:
    signin = said.details.get("signin_url")
    if isinstance(signin, str) and signin:
        return f"Sign in at {signin} or choose a model on this machine."
    if status == HTTPStatus.FORBIDDEN and not said.text:
        return "The server refuses this host name: set OLLAMA_HOST to one that it accepts (OLLAMA_ORIGINS there)."
    if _MEMORY.search(said.text):
        return "Choose a smaller model, or a smaller window (`context.max_context`)."
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "It wants a key, which Ollama does not: a server of OpenAI's kind is set as RUNE_OPENAI_URL."
    if _UNREADABLE_CALL.search(said.text):
        return "The model wrote a tool call that its server could not read. Ask again, or choose another model."
    return ""
