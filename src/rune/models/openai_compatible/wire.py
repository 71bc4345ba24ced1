"""What is said to an OpenAI-style server: the chat request with what only some servers know, and embeddings."""

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rune.errors import ProtocolError
from rune.models.transport import ChatRequest
from rune.models.wire.chat_request import request_body
from rune.models.wire.ndjson import as_list

_LEVELS: Final = frozenset({"low", "medium", "high"})


def chat_fields(request: ChatRequest, *, llama: bool) -> dict[str, Any]:
    """Return the fields that not every server knows; one that refuses them is asked without.

    `llama`: this is llama.cpp's server, which says how far it has read the prompt. Thinking is switched through the
    chat template (llama.cpp, vLLM, LM Studio), and a level has a field of its own besides, which hosted servers know.
    """
    fields: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if llama:
        fields["return_progress"] = True
    if request.think is not None:
        switches: dict[str, Any] = {"enable_thinking": request.think != "off"}
        if request.think in _LEVELS:
            switches["reasoning_effort"] = fields["reasoning_effort"] = request.think
        fields["chat_template_kwargs"] = switches
    return fields


def chat_body(request: ChatRequest, fields: dict[str, Any]) -> bytes:
    """Return the request's body. There is no `num_ctx` in it: the server has its own window."""
    return request_body(request, fields)


def embed_body(model: str, texts: Sequence[str]) -> bytes:
    """Return the body for `/embeddings`; numbers, not packed bytes."""
    return msgspec.json.encode({"model": model, "input": list(texts), "encoding_format": "float"})


class _Row(msgspec.Struct, frozen=True):
    index: int
    embedding: list[float]


def read_vectors(answer: dict[str, Any], *, expected: int) -> list[list[float]]:
    """Return the vectors in the order of the texts; the server may give them in any, each with its `index`.

    Raises ProtocolError unless there is one a text, all of one length, of finite numbers.
    """
    rows = as_list(answer.get("data"))
    if rows is None:
        raise ProtocolError("the answer holds no embeddings")
    try:
        checked = msgspec.convert(rows, list[_Row])
    except msgspec.ValidationError as error:
        raise ProtocolError(f"an embedding is not a list of numbers with its index ({error})") from error
    if sorted(row.index for row in checked) != list(range(expected)):
        raise ProtocolError(f"{expected} texts were sent and {len(checked)} vectors came back, not one for each")
    vectors = [row.embedding for row in sorted(checked, key=lambda row: row.index)]
    if any(not vector for vector in vectors) or len({len(vector) for vector in vectors}) > 1:
        raise ProtocolError("the embeddings are empty or of different lengths")
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise ProtocolError("an embedding holds a number that is none")
    return vectors
