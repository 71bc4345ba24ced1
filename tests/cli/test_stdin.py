"""What may be piped in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.cli.stdin import decode
from rune.errors import UsageError


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_text_comes_through_but_for_a_byte_order_mark(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@pytest.mark.parametrize(("data", "says"), [(b"a\0b", "NUL byte at 1"), (b"ab\xff", "byte 2 is 0xff")])
def test_what_is_no_text_is_refused_with_its_place(data: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        decode(data)
