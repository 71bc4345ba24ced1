import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.blocks import FrozenBlock, FrozenPrefix, LeftOutBlock
from rune.context.prefix import decode_prefix, encode_prefix
from rune.errors import InvalidRecordError

TEXT = st.text(max_size=40)
BLOCK = st.builds(
    FrozenBlock, name=TEXT, content=TEXT, source=TEXT, provenance=st.just("file"), evictable=st.booleans()
)
LEFT_OUT = st.builds(LeftOutBlock, name=TEXT, content=TEXT, window=st.integers(0, 10**6))
PREFIXES = st.builds(
    FrozenPrefix,
    blocks=st.lists(BLOCK, max_size=4).map(tuple),
    tools=TEXT,
    left_out=st.lists(LEFT_OUT, max_size=2).map(tuple),
)


@given(prefix=PREFIXES)
def test_a_prefix_reads_back_as_it_was_and_has_one_form(prefix: FrozenPrefix) -> None:
    data = encode_prefix(prefix)
    assert decode_prefix(data) == prefix
    assert encode_prefix(decode_prefix(data)) == data
    assert data.isascii()
    assert json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode() == data


@pytest.mark.parametrize("data", [b"", b"{}", b'{"blocks":[],"tools":[]}', b'{"blocks":[{}],"tools":"[]"}', b"\xff"])
def test_what_is_no_prefix_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        decode_prefix(data)
