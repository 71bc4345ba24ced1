"""What is said to llama.cpp's server inside and what it says: `/v1/chat/completions` as a stream.

A complete answer is a `finish_reason` followed by `[DONE]`; anything less is not proof. Shapes were
taken from llama.cpp itself (docs/decisions/embedded-model.md); fields that Rune does not use are ignored.
"""

from collections.abc import Mapping
from typing import Any

from rune.errors import ModelError, Phase, ServerError
from rune.models.transport import ChatRequest
from rune.models.wire.chat_events import ChatAnswer
from rune.models.wire.chat_failures import TEXT_SHOWN, Said, overflow, read_body
from rune.models.wire.chat_request import request_body
from rune.models.wire.http import Asked


def chat_body(request: ChatRequest, sampling: Mapping[str, float]) -> bytes:
    """Return the request's body; messages, tools and format stand in it byte for byte."""
    fields: dict[str, Any] = {
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "cache_prompt": True,
        **sampling,
    }
    if request.think is not None:
        fields["chat_template_kwargs"] = {"enable_thinking": request.think != "off"}
    return request_body(request, fields)


def refusal(status: int, body: bytes, *, phase: Phase, estimated: int) -> ModelError:
    """Return the typed end for an answer that is not 200. `estimated` is the prompt's, in tokens."""
    return _typed(read_body(body), status=status, phase=phase, estimated=estimated)


def _typed(said: Said, *, status: int, phase: Phase, estimated: int) -> ModelError:
    asked = Asked(model="", estimated=estimated)
    return overflow(said, asked) or ServerError(said.text[:TEXT_SHOWN], status=status, phase=phase)


class AnswerReader(ChatAnswer):
    """One answer of the embedded model; `estimated` is its prompt's size, in tokens."""

    def __init__(self, *, estimated: int) -> None:
        super().__init__(self._failed)
        self._estimated = estimated

    def _failed(self, said: Said) -> ModelError:
        return _typed(said, status=0, phase="token" if self.begun else "first_byte", estimated=self._estimated)
