import json

import pytest

from rune.store.imports.arrivals import LeftOutError
from rune.store.imports.foreign_json import read_object
from tests.store.imports.older import SECRET, mask


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a":"\0"}', "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a":"\xff"}', "not UTF-8: byte 7 of it is 0xff"),
        (b'{"a":1,"a":2}', "'a' is there twice"),
        (b'{"b":{"a":1,"a":2}}', "'a' is there twice"),
        (deep(101), "levels deep"),
        (deep(200_000), "levels deep"),
        (b"[" * 200_000, "levels deep"),
        (b'{"a":' + b"9" * 5000 + b"}", "5,000 digits"),
    ],
    ids=["empty", "cut", "nul", "list", "null", "latin1", "twice", "twice-inside", "deep", "deeper", "lists", "digits"],
)
def test_a_line_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(LeftOutError) as left:
        read_object(data, len(data), mask)
    assert reason in left.value.reason


def test_what_is_too_long_was_not_even_read() -> None:
    with pytest.raises(LeftOutError, match="104,857,600 bytes"):
        read_object(b"", 100 << 20, mask)


@pytest.mark.parametrize(
    "data",
    [b'{"a": NaN, "b": 1e999}', b'{"a":"\\ud800"}', b'{"a":"\\u0000"}', b' {"a" : 1 }\r', deep(99)],
    ids=["nan", "surrogate", "nul", "blanks", "deep"],
)
def test_what_is_odd_and_harmless_is_kept_byte_for_byte(data: bytes) -> None:
    assert read_object(data, len(data), mask).kept == data


@pytest.mark.parametrize(
    "fields",
    [
        {"text": f"key {SECRET}"},
        {"text": f"a\n{SECRET}\tb"},
        {"deep": [{"x": [SECRET]}]},
        {SECRET: 1},
        {"password": "".join(("Zx9kQ2mP", "7vR4tW8b"))},
    ],
    ids=["plain", "behind-an-escape", "deep", "key", "by-its-name"],
)
@pytest.mark.parametrize("escaped", [False, True], ids=["plain", "escaped"])
def test_evidence_holds_no_secret_that_the_journal_masks(fields: dict[str, object], escaped: bool) -> None:
    data = json.dumps(fields)
    if escaped:
        data = data.replace("ghp_", "\\u0067hp_")
    foreign = read_object(data.encode(), len(data), mask)
    planted = "Zx9kQ2mP7vR4tW8b" if "password" in fields else "abcdefghijklmnopqrstuvwxyz0123456789"
    assert planted not in foreign.kept.decode()
    assert json.loads(foreign.kept)


def test_two_keys_that_are_secrets_keep_both_values() -> None:
    data = json.dumps({SECRET: 1, SECRET[::-1] + SECRET: 2, SECRET.replace("z", "y"): 3}).encode()
    assert sorted(json.loads(read_object(data, len(data), mask).kept).values()) == [1, 2, 3]
