import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import UsageError
from rune.store.imports.arrivals import EVIDENCE_LIMIT
from rune.store.imports.json_lists import ListElement, list_elements

NAME = Path("tasks.json")

values = st.recursive(
    st.none() | st.integers() | st.text('ab"\\[]{},\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\', max_size=2), inner, max_size=3),
    max_leaves=8,
)


def cut(text: bytes, size: int = 1 << 20) -> list[ListElement]:
    return list(list_elements((text[at : at + size] for at in range(0, len(text), size)), NAME))


@given(st.lists(values, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_any_list_is_cut_into_its_elements_however_it_is_read(
    given: list[object], size: int, indent: int | None
) -> None:
    found = cut(b"\n " + json.dumps(given, indent=indent).encode() + b"\n", size)
    assert [json.loads(element.data) for element in found] == given
    assert not any(element.trouble for element in found)


def test_an_element_knows_its_number_and_line() -> None:
    assert [(each.number, each.line, each.data) for each in cut(b"[\n1,\n2\n]")] == [(1, 2, b"1"), (2, 4, b"2")]


@pytest.mark.parametrize(
    "text", [b"", b" \n", b'{"a": 1}', b"5", b"not json"], ids=["empty", "blank", "object", "number", "words"]
)
def test_what_holds_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(UsageError):
        cut(text)


@pytest.mark.parametrize(
    ("text", "whole", "trouble"),
    [
        (b'[1, {"a": "b', [b"1"], "breaks off"),
        (b"[1, 2", [b"1"], "breaks off"),
        (b"[1] and more", [b"1"], "behind the end"),
        (b"[1,,2]", [b"1", b"2"], "between two commas"),
        (b"[1,]", [b"1"], "between two commas"),
    ],
    ids=["in-a-string", "no-end", "behind", "empty", "last-comma"],
)
def test_a_list_that_is_not_whole_gives_what_is(text: bytes, whole: list[bytes], trouble: str) -> None:
    found = cut(text)
    assert [each.data for each in found if not each.trouble] == whole
    assert [trouble in each.trouble for each in found if each.trouble] == [True]


def test_an_element_that_is_too_long_is_counted_and_not_kept() -> None:
    long = b'["' + b"x" * (EVIDENCE_LIMIT + 1) + b'", 2]'
    assert [(each.number, each.too_long, each.data) for each in cut(long)] == [(1, True, b""), (2, False, b"2")]
