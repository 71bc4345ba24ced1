"""A model file's header, from files written here."""

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ModelUnavailableError
from rune.models.embedded.gguf import read_header


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _file(*pairs: bytes, version: int = 3, count: int | None = None, tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, len(pairs) if count is None else count) + b"".join(pairs)


_WHOLE = _file(
    _pair("general.architecture", 8, _text("qwen2")),
    _pair("general.size_label", 8, _text("1.5B")),
    _pair("qwen2.context_length", 4, struct.pack("<I", 32768)),
    _pair("general.file_type", 4, struct.pack("<I", 15)),
    _pair("tokenizer.ggml.add_bos_token", 7, b"\x00"),
    _pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 3) + _text("a") + _text("") + _text("\u65e5")),
    _pair("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, 2) + bytes(8)),
    _pair("tokenizer.chat_template", 8, _text("{{ tools }}")),
)


def test_a_header_says_what_the_model_is(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(_WHOLE + b"tensors follow")
    header = read_header(path)
    assert (header.architecture, header.size_label, header.quantisation) == ("qwen2", "1.5B", "Q4_K_M")
    assert header.context_length == 32768
    assert header.chat_template == "{{ tools }}"


def test_what_a_header_does_not_say_stays_unknown(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(_file(_pair("general.file_type", 4, struct.pack("<I", 999))))
    header = read_header(path)
    assert (header.architecture, header.context_length, header.quantisation) == ("", None, "")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"GGUF",
        _file(version=9),
        _file(count=2**60),
        _file(_pair("a", 8, struct.pack("<Q", 2**62))),
        _file(_pair("a", 77, b"")),
        _file(_pair("a", 9, struct.pack("<IQ", 8, 2**50))),
        _file(_pair("a", 9, struct.pack("<IQ", 9, 1))),
    ],
)
def test_what_is_no_model_file_is_a_typed_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnavailableError, match="not a usable GGUF"):
        read_header(path)


@pytest.mark.parametrize(("kind", "size"), [(0, 4 * 512), (2, 18 * 16), (12, 144 * 2)])
def test_a_file_that_was_cut_is_not_taken_for_a_model(tmp_path: Path, kind: int, size: int) -> None:
    tensor = _text("w") + struct.pack("<IQQIQ", 2, 256, 2, kind, 64)
    head = _file(_pair("general.architecture", 8, _text("qwen2")), tensors=1) + tensor
    whole = head + bytes(-len(head) % 32) + bytes(64 + size)
    path = tmp_path / "m.gguf"
    path.write_bytes(whole)
    assert read_header(path).architecture == "qwen2"
    path.write_bytes(whole[:-1])
    with pytest.raises(ModelUnavailableError, match="not whole: at least 1 bytes are missing"):
        read_header(path)


def test_a_file_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="cannot be read"):
        read_header(tmp_path / "none.gguf")


@given(st.integers(0, len(_WHOLE) - 1), st.binary(max_size=16))
def test_a_damaged_header_is_read_or_refused_and_never_anything_else(at: int, damage: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        path.write_bytes(_WHOLE[:at] + damage + _WHOLE[at + len(damage) :])
        try:
            read_header(path)
        except ModelUnavailableError as error:
            assert str(path) in error.message
