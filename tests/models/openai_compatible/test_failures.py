"""What servers say when they cannot answer, in their own words, and what it becomes."""

import json
from typing import Any

import pytest

from rune.errors import (
    BusyError,
    CallCancelledError,
    CapabilityMissingError,
    ContextTruncatedError,
    ModelError,
    ModelNotFoundError,
    ServerError,
)
from rune.models.openai_compatible.address import ServerAddress
from rune.models.openai_compatible.failures import ServerWords
from rune.models.wire.http import Asked

ASKED = Asked(model="m", estimated=40)
WINDOW = "This model's maximum context length is 4096 tokens."


def typed(status: int, body: bytes, url: str = "http://127.0.0.1:8080/v1") -> ModelError:
    return ServerWords(ServerAddress.checked(url, source="test")).from_status(status, body, asked=ASKED)


def said(status: int, message: str, **fields: Any) -> ModelError:
    return typed(status, json.dumps({"error": {"message": message, **fields}}).encode())


@pytest.mark.parametrize(
    ("message", "fields", "served", "window"),
    [
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096},
            5000,
            4096,
        ),
        ("request (5000 tokens) exceeds the available context size (4096 tokens)", {}, 5000, 4096),
        (f"{WINDOW} However, you requested 5000 tokens (4488 in the messages, 512 in the completion).", {}, 5000, 4096),
        (f"{WINDOW} However, your request has 5000 input tokens. Please reduce the length.", {}, 5000, 4096),
        (f"{WINDOW} However, your messages resulted in 5000 tokens.", {"code": "context_length_exceeded"}, 5000, 4096),
        ("too long", {"code": "context_length_exceeded"}, None, None),
        (
            f"'max_tokens' is too large: 9. {WINDOW[:-1]} and your request has 5000 input tokens (9 > 4096 - 5000).",
            {},
            5000,
            4096,
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", {}, 5000, 4096),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", {}, 5000, 4096),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of"
            " 5000 tokens: 4488 tokens from the input messages and 512 tokens for the completion.",
            {},
            5000,
            4096,
        ),
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context"
            " length of only 4096 tokens, which is not enough.",
            {},
            5000,
            4096,
        ),
        (
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>="
            " n_ctx: 4096).",
            {},
            5000,
            4096,
        ),
        ("prompt is too long: 5,000 tokens > 4,096 maximum", {}, 5000, 4096),
        ("Prompt contains 5000 tokens, too large for model with 4096 maximum context length", {}, 5000, 4096),
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_prompt_that_does_not_fit_is_told_with_both_numbers(
    status: int, message: str, fields: dict[str, Any], served: int | None, window: int | None
) -> None:
    error = said(status, message, **fields)
    assert isinstance(error, ContextTruncatedError)
    assert (error.estimated, error.served, error.window) == (40, served, window)


@pytest.mark.parametrize(
    ("message", "capability", "hint"),
    [
        ("tools param requires --jinja flag", "tools", "--jinja"),
        (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "tools",
            "--enable-auto-tool-choice",
        ),
        ("No endpoints found that support tool use.", "tools", ""),
        ("m does not support tools", "tools", ""),
        ("Function calling is not supported with this model", "tools", ""),
        ("This model does not support reasoning", "thinking", ""),
        ("thinking is not supported by this model", "thinking", ""),
        ("image input is not supported", "vision", ""),
        ("The model does not support Embeddings API", "embedding", ""),
        ("The model does not support Chat Completions API", "chat", ""),
    ],
)
def test_what_a_model_or_its_server_cannot_do_is_told_apart(message: str, capability: str, hint: str) -> None:
    error = said(400, message)
    assert isinstance(error, CapabilityMissingError)
    assert error.capability == capability
    assert hint in error.hint


@pytest.mark.parametrize(
    ("status", "message", "fields", "kind"),
    [
        (404, "The model `m` does not exist.", {"type": "NotFoundError", "code": 404}, ModelNotFoundError),
        (404, "x", {"code": "model_not_found"}, ModelNotFoundError),
        (400, "Model 'm' not found", {}, ModelNotFoundError),
        (404, "File Not Found", {"type": "not_found_error"}, ServerError),
        (500, "the model file was not found", {}, ServerError),
        (401, "Invalid API Key", {}, ServerError),
        (403, "", {}, ServerError),
        (429, "slow down", {}, BusyError),
        (503, "", {}, BusyError),
        (529, "Overloaded", {}, BusyError),
        (429, "You exceeded your quota, check billing", {"type": "insufficient_quota"}, ServerError),
        (499, "", {}, CallCancelledError),
        (502, "Bad gateway", {}, ServerError),
        (400, "bad schema", {}, ServerError),
    ],
)
def test_a_status_and_its_words_become_one_typed_error(
    status: int, message: str, fields: dict[str, Any], kind: type[ModelError]
) -> None:
    assert type(said(status, message, **fields)) is kind


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 418, 429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>no</body></html>", b"\xff\xfe", b'{"error":"text"}', b'{"error":null}', b"[]", b'"text"',
     b'{"detail":"Not Found"}', b'{"detail":[{"loc":["body","x"],"msg":"wrong"}]}', b'{"message":"m","object":"error"}',
     b'{"error":{"message":["a"]}}', b'{"error":"{\\"message\\":\\"inner\\"}"}', b'{"error":{"code":[]}}', b"{"],
)  # fmt: skip
def test_a_body_of_any_form_becomes_a_typed_error_that_can_be_shown(status: int, body: bytes) -> None:
    error = typed(status, body)
    assert isinstance(error, ModelError)
    assert error.message.isprintable()
    assert "<html>" not in error.message


def test_a_route_that_is_not_there_is_told_with_what_may_be_missing() -> None:
    assert "Is `/v1` missing" in typed(404, b"not found", "http://127.0.0.1:8080/api").hint
    assert "server of chat models" in typed(404, b"not found").hint


def test_where_the_settings_are_to_blame_the_address_is_named() -> None:
    assert "http://127.0.0.1:8080/v1" in said(401, "Invalid API Key").message
    assert "RUNE_OPENAI_KEY" in said(401, "Invalid API Key").hint


def test_a_server_without_key_env_is_told_where_to_name_one() -> None:
    address = ServerAddress.checked("http://127.0.0.1:1", source="test", name="lab", key_variable="")
    error = ServerWords(address).from_status(401, b"", asked=ASKED)
    assert "`key_env`" in error.hint
    assert "lab" in error.hint
