"""The embedded transport keeps the contract: a real worker process around a scripted llama.cpp server."""

import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rune.errors import (
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelUnavailableError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.embedded.transport import EmbeddedTransport
from tests.models.transport_contract import TransportContract, collect, request, text_of

_FAKES = Path(__file__).parents[2] / "fakes" / "llama"


def _event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def _pieces(text: str) -> bytes:
    words = text.replace(" ", "\0 ").split("\0")
    return b"".join(_event(choices=[{"index": 0, "delta": {"content": word}}]) for word in words)


def _end(reason: str) -> bytes:
    return _event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}]) + b"data: [DONE]\n\n"


def _model_file(path: Path) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = (("general.architecture", "llama"), ("tokenizer.chat_template", "{{ tools }}"))
    body = b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in pairs)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + body)
    return path


class EmbeddedStage:
    """A transport, and the folder through which the scripted server in its worker is told what to say."""

    def __init__(self, tmp_path: Path, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        for name in ("answers", "sent"):
            folder.joinpath(name).mkdir()
        self.model = "small"
        self.transport = EmbeddedTransport(
            _model_file(tmp_path / "Small.gguf"), log_path=tmp_path / "model.log", environ={}
        )

    def will_answer(self, stream: bytes) -> None:
        self._count += 1
        self._folder.joinpath("answers", f"{self._count:03}").write_bytes(stream)

    def will_say(self, *texts: str) -> None:
        for text in texts:
            self.will_answer(_pieces(text) + _end("stop"))

    def will_break(self, text: str) -> None:
        self.will_answer(_pieces(text))

    def will_call(self, name: str) -> None:
        call = {"index": 0, "id": "a1", "type": "function", "function": {"name": name, "arguments": "{}"}}
        self.will_answer(_event(choices=[{"index": 0, "delta": {"tool_calls": [call]}}]) + _end("tool_calls"))

    def will_hang(self, text: str) -> None:
        self.will_answer(_pieces(text) + b"HANG")

    async def called_off(self) -> None:
        assert self._folder.joinpath("called_off").exists() or self.transport.worker_pid() is None

    def sent(self) -> bytes:
        return max(self._folder.joinpath("sent").iterdir()).read_bytes()


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedStage]:
    folder = tmp_path / "llama"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(_FAKES))
    monkeypatch.setenv("RUNE_FAKE_LLAMA", str(folder))
    stage = EmbeddedStage(tmp_path, folder)
    yield stage
    await stage.transport.close()


class TestEmbeddedTransport(TransportContract):
    pass


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (_pieces("one two"), StreamBrokenError, "one two"),
        (_pieces("one") + b"DIE", StreamBrokenError, "one"),
        (b": ping\n\nDIE", ModelUnavailableError, ""),
        (_pieces("one") + _event(error={"code": 500, "message": "m"}), ServerError, "one"),
        (_pieces("one") + b"data: <html>\n\n", ProtocolError, "one"),
        (_end("stop"), EmptyOutputError, ""),
        (b"503 " + json.dumps({"error": {"message": "Loading model"}}).encode(), ServerError, ""),
        (
            b"400 "
            + json.dumps({"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}}).encode(),
            ContextTruncatedError,
            "",
        ),
    ],
)
async def test_every_bad_answer_ends_in_its_typed_error_and_the_next_call_is_answered(
    stage: EmbeddedStage, answer: bytes, error: type[ModelError], said: str
) -> None:
    stage.will_answer(answer)
    chunks, ended = await collect(stage.transport, request(stage.model))
    assert type(ended) is error
    assert text_of(chunks) == said
    stage.will_say("two")
    chunks, ended = await collect(stage.transport, request(stage.model))
    assert ended is None
    assert text_of(chunks) == "two"


async def test_a_worker_that_dies_before_it_says_anything_is_started_again_once(stage: EmbeddedStage) -> None:
    stage.will_answer(b"DIE")
    stage.will_say("two")
    chunks, ended = await collect(stage.transport, request(stage.model))
    assert (text_of(chunks), ended) == ("two", None)
    for _ in range(2):
        stage.will_answer(b"DIE")
    _, ended = await collect(stage.transport, request(stage.model))
    assert isinstance(ended, ModelUnavailableError)


async def test_a_comment_that_keeps_the_line_open_is_no_progress(stage: EmbeddedStage) -> None:
    stage.will_answer(_pieces("one") + b": ping\n\n" + _pieces(" two") + _end("stop"))
    chunks, _ = await collect(stage.transport, request(stage.model))
    assert text_of(chunks) == "one two"


async def test_a_broken_library_is_told_with_what_it_said(
    stage: EmbeddedStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('wrong libc')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    _, ended = await collect(stage.transport, request(stage.model))
    assert isinstance(ended, ModelUnavailableError)
    assert "pip install" in ended.hint
    assert "wrong libc" in ended.message
