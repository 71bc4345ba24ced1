"""What OpenAI-style servers say when they cannot answer, as typed errors.

Every server words it in its own way, and the status is no guide: the patterns below are the words of llama.cpp, vLLM,
SGLang, LM Studio, OpenAI, Mistral and what stands in front of them. An error may be an object, a text, JSON inside a
text, FastAPI's `detail`, or a web page.
"""

import re
from typing import Any, Final, Literal

import msgspec

from rune.errors import CapabilityMissingError, ContextTruncatedError, ProtocolError
from rune.models.wire.http import Asked
from rune.models.wire.ndjson import as_list, as_object, decode_object, excerpt

TEXT_SHOWN: Final = 600
"""So much of a server's sentence is shown, in characters; whoever takes a key out of it must do so first."""

_NESTING: Final = 4
_TEXT_READ: Final = 4096
_MOST_DETAILS: Final = 5

_OVERFLOW: Final = re.compile(
    r"exceed_context_size|context_length_exceeded|maximum context length|max(imum)? model length"
    r"|exceeds? the (available |model's |maximum )?context|longer than the (model's )?context|context length of only"
    r"|greater than the context length|reached context length|prompt is too long|maximum prompt length"
    r"|too large for model with \d+ maximum context",
    re.IGNORECASE,
)
# First the ones that name a number for what it is; the window and what was asked for may stand in either order.
_WINDOWS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"context length (?:is|of)(?: only)? (\d[\d,]*)",
        r"maximum model length of (\d[\d,]*)",
        r"context (?:length|size|window) \((\d[\d,]*)",
        r"n_ctx: ?(\d+)",
        r"with (\d[\d,]*) maximum context",
        r"> ?(\d[\d,]*) maximum",
        r"maximum prompt length is (\d[\d,]*)",
    )
)
_PROMPTS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"requested (?:a total of |about )?(\d[\d,]*) tokens",
        r"resulted in (\d[\d,]*) tokens",
        r"(?:request|prompt|input) (?:has|contains)(?: at least)? (\d[\d,]*)",
        r"(?:request|input|prompt) \((?:length )?(\d[\d,]*)",
        r"keep the first (\d[\d,]*) tokens",
        r"n_keep: ?(\d+)",
        r"too long: (\d[\d,]*)",
        r"request contains (\d[\d,]*)",
    )
)
_NO_TOOLS: Final = re.compile(
    r"tools? param requires|requires --enable-auto-tool-choice|support (for )?(tools?|tool use|tool calling|function"
    r" calling)\b|(tools?|tool use|tool calling|function calling|functions) (is|are) not (supported|enabled|available)",
    re.IGNORECASE,
)
_NO_THINKING: Final = re.compile(
    r"not support (thinking|reasoning)|(thinking|reasoning) is not supported", re.IGNORECASE
)
_NO_VISION: Final = re.compile(
    r"not support (vision|images?|multimodal)|image input is not supported|not a multimodal", re.IGNORECASE
)
_NO_EMBEDDING: Final = re.compile(r"not support embeddings?|not an embedding", re.IGNORECASE)
_NO_CHAT: Final = re.compile(
    r"not (support|a) (chat|completion)|does not support generation|not support the chat completions", re.IGNORECASE
)

Capability = Literal["chat", "tools", "thinking", "vision", "embedding"]
_CAPABILITIES: Final[tuple[tuple[re.Pattern[str], Capability], ...]] = (
    (_NO_TOOLS, "tools"),
    (_NO_THINKING, "thinking"),
    (_NO_VISION, "vision"),
    (_NO_EMBEDDING, "embedding"),
    (_NO_CHAT, "chat"),
)
_FLAGS: Final = {
    "--jinja": "Start llama.cpp's server with `--jinja`, or choose another model with /model.",
    "--enable-auto-tool-choice": "Start vLLM with `--enable-auto-tool-choice --tool-call-parser NAME`.",
    "--embeddings": "Start llama.cpp's server with `--embeddings`.",
}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """An error as the server says it: its sentence, its kind and code as words, a status it names (0: none), and
    whatever else stood with it. `structured` is False for plain text or a web page.
    """

    text: str
    kind: str = ""
    status: int = 0
    structured: bool = True
    details: dict[str, Any] = {}


def read_body(body: bytes) -> Said:
    """Read the body of an answer that is not a 200, whatever it is."""
    try:
        return read_error(decode_object(body))
    except ProtocolError:
        text = body.lstrip()[:200].lower()
        if text.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
            return Said(text="a web page, not an answer", structured=False)
        return Said(text=excerpt(body), structured=False)


def read_error(value: object) -> Said:
    """Read the value of `error`, or a whole object that holds one."""
    details: dict[str, Any] = {}
    for _ in range(_NESTING):
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = decode_object(value.strip().encode("utf-8", "replace"))
            except ProtocolError:
                break  # text that only looks like JSON: it is the sentence
        fields = as_object(value)
        if fields is None:
            break
        details = details | {key: held for key, held in fields.items() if key not in {"error", "message", "detail"}}
        value = next((fields[key] for key in ("error", "message", "detail") if fields.get(key)), "")
    code, status = details.get("code"), details.get("status")
    words = [word for word in (details.get("type"), code) if isinstance(word, str)]
    numbers = [number for number in (code, status) if type(number) is int]
    numbers += [int(word) for word in words if word.isascii() and word.isdigit() and len(word) == len("400")]
    return Said(
        text=_sentence(value)[:_TEXT_READ],
        kind=" ".join(words),
        status=next((number for number in numbers if 100 <= number < 600), 0),  # noqa: PLR2004 - HTTP's range
        details=details,
    )


def overflow(said: Said, asked: Asked) -> ContextTruncatedError | None:
    """Return the error for a prompt that does not fit, with the numbers that were given; None if it is not that."""
    if not _OVERFLOW.search(f"{said.kind} {said.text}"):
        return None
    served = _whole(said.details.get("n_prompt_tokens")) or _first(_PROMPTS, said.text)
    window = _whole(said.details.get("n_ctx")) or _first(_WINDOWS, said.text)
    size = "too many" if served is None else f"{served:,}"
    limit = "the model's window" if window is None else f"a window of {window:,}"
    return ContextTruncatedError(
        f"the prompt has {size} tokens for {limit}: nothing was answered",
        estimated=asked.estimated,
        served=served,
        window=window,
    )


def missing_capability(said: Said, asked: Asked) -> CapabilityMissingError | None:
    """Return the error for what the model or its server cannot do; None if it is not that."""
    for pattern, capability in _CAPABILITIES:
        if pattern.search(said.text):
            error = CapabilityMissingError(asked.model, capability)
            error.hint = next((hint for flag, hint in _FLAGS.items() if flag in said.text), error.hint)
            return error
    return None


def _sentence(value: object) -> str:
    """Return an error's sentence; FastAPI gives a list of what is wrong and where."""
    if isinstance(value, str):
        return " ".join(value.split())
    rows = [fields for item in as_list(value) or () if (fields := as_object(item)) is not None]
    if not rows:
        return "" if value is None else msgspec.json.encode(value).decode()
    said: list[str] = []
    for row in rows[:_MOST_DETAILS]:
        where = ".".join(str(part) for part in as_list(row.get("loc")) or ())
        said.append(f"{where}: {row.get('msg', '')}" if where else str(row.get("msg", "")))
    return "; ".join(said)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    found = next((match for pattern in patterns if (match := pattern.search(text))), None)
    return None if found is None else int(found[1].replace(",", ""))


def _whole(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
