"""A path as text: any name of bytes has one, no two have the same, and it leads back."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.host.paths import real_path, storable_path

NAMES = st.lists(
    st.binary(min_size=1, max_size=4).filter(lambda name: b"\0" not in name)
    | st.sampled_from([b"%", b"%FF", b"%25", b"%2525", b"%ff", b"%C3%BC", b"\xff", b"\xc3", b"\xbc", "ü".encode()]),
    min_size=1,
    max_size=6,
).map(b"".join)


def path_of(name: bytes) -> Path:
    return Path(os.fsdecode(b"/" + name))


@given(NAMES)
@example(b"\xed\xa0\x80")
def test_any_path_has_a_text_that_can_be_stored_and_leads_back(name: bytes) -> None:
    path = path_of(name)
    text = storable_path(path)
    text.encode("utf-8")
    assert real_path(text) == path


@given(NAMES, NAMES)
def test_no_two_paths_have_the_same_text(one: bytes, other: bytes) -> None:
    assert (storable_path(path_of(one)) == storable_path(path_of(other))) == (path_of(one) == path_of(other))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"/home/ada/work", "/home/ada/work"),
        ("/Größe".encode(), "/Größe"),
        (b"/100% sure %20", "/100% sure %20"),
        (b"/pr\xffj", "/pr%FFj"),
        (b"/pr%FFj", "/pr%25FFj"),
        (b"/%25", "/%2525"),
    ],
)
def test_what_is_text_stays_as_it_is(name: bytes, text: str) -> None:
    assert storable_path(Path(os.fsdecode(name))) == text
