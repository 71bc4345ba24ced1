import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import DamagedLineError, InvalidRecordError, NotFoundError, UnstorableValueError
from rune.records.envelope import EventEnvelope
from rune.records.events import EVENT_KINDS, Event, event_of
from rune.records.messages import ConversationMessageRecord
from rune.store import codec
from rune.store.evidence_store import MemoryEvidenceStore
from rune.text.storable import storable
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import forged
from tests.store.samples import CONVERSATION, DEVICE, MOMENT, ended, message, said

DATA = Path(__file__).parent.parent / "data" / "journal"
EXAMPLE = (DATA / "example.jsonl").read_bytes().splitlines(keepends=True)
GOLDEN = (DATA / "w000-000001.jsonl").read_bytes().split(b"\n")[:-1]

any_text = st.text(st.characters(codec=None, categories=("L", "M", "N", "P", "S", "Z", "C")), max_size=200)
# Text in which the codec's own marks are frequent.
marked_text = st.lists(st.sampled_from([',"crc":"', '","body":', '{"actor_id":"', "\\", '"', "}", "\n", "\x7f", "é"]))


def evidence() -> MemoryEvidenceStore:
    return MemoryEvidenceStore(CountedClock())


def place(**fields: Any) -> codec.Place:
    whole: dict[str, Any] = {
        "writer": "w000",
        "seq": 1,
        "hlc": 1_796_047_200_123,
        "more": 0,
        "prev": codec.CHAIN_START,
        "device_id": DEVICE,
    }
    return codec.Place(**whole | fields)


def sealed(event: Event) -> bytes:
    return codec.seal(codec.prepare(event), place()).line[:-1]


def read_event(envelope: EventEnvelope, source: codec.BlobReader) -> Event:
    return event_of(envelope, codec.decode_body(envelope, source))


def test_header_and_message_are_the_bytes_of_the_published_example() -> None:
    header = codec.seal_header(
        boot_id="1f3d9a52-7c41-4a0e-9b7d-2f6c1e8a5d10",
        opened=MOMENT,
        prev=codec.CHAIN_START,
        segment=1,
        writer="w000",
    )
    event = Event(
        event_id="evt_01kb9y3c7m0000000000000006",
        event_type="user.message",
        partition_key=CONVERSATION,
        actor_id="owner",
        timestamp=MOMENT,
        body=message("café: name three rivers"),
        pseq=4,
    )
    line = codec.seal(codec.prepare(event), place(seq=4, prev=header.chain))
    assert [header.line, line.line] == EXAMPLE
    assert line.chain == "279c1056f50177aa"


def test_there_is_a_golden_line_of_every_kind_that_is_stored() -> None:
    kinds = [codec.parse(line).envelope.event_type for line in GOLDEN[1:]]
    assert kinds == [name for name, kind in EVENT_KINDS.items() if kind.body is not None]


def test_a_golden_line_read_and_sealed_again_is_the_same_bytes() -> None:
    header, chain = codec.parse_header(GOLDEN[0])
    fields = {name: getattr(header, name) for name in ("boot_id", "opened", "prev", "segment", "writer")}
    assert codec.seal_header(**fields).line == GOLDEN[0] + b"\n"
    for line in GOLDEN[1:]:
        envelope = codec.parse(line).envelope
        assert envelope.prev == chain
        where = place(seq=envelope.seq, hlc=envelope.hlc, more=envelope.more, prev=chain, device_id=envelope.device_id)
        again, chain = codec.seal(codec.prepare(read_event(envelope, evidence())), where)
        assert again == line + b"\n"


@given(any_text)
def test_any_text_is_storable_and_what_is_storable_reads_back(text: str) -> None:
    kept = storable(text)
    event = said(CountedIds(), kept)
    source = evidence()
    source.put(codec.prepare(event).body, source="test")
    assert read_event(codec.parse(sealed(event)).envelope, source) == event
    assert len(kept) == len(text)
    if text.isascii():
        assert kept == text


@given(any_text)
def test_text_is_refused_exactly_when_it_holds_a_surrogate(text: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        with pytest.raises(UnstorableValueError):
            codec.prepare(said(CountedIds(), text))
    else:
        assert storable(text) == text
        codec.prepare(said(CountedIds(), text))


@given(marked_text, marked_text)
def test_no_text_in_the_head_or_the_body_is_taken_for_the_lines_own_marks(head: list[str], body: list[str]) -> None:
    event = msgspec.structs.replace(said(CountedIds(), "".join(body)), actor_id="".join(head), timestamp="".join(head))
    line = sealed(event)
    assert read_event(codec.parse(line).envelope, evidence()) == event
    fields: dict[str, Any] = json.loads(line)
    assert line.startswith(codec.canon({k: v for k, v in fields.items() if k not in {"crc", "body"}})[:-1] + b',"crc"')


def test_a_surrogate_in_the_head_is_refused() -> None:
    with pytest.raises(UnstorableValueError):
        sealed(msgspec.structs.replace(ended(CountedIds()), actor_id="tool:\udce9"))


def test_a_field_of_another_type_is_refused() -> None:
    for wrong in ({"pseq": True}, {"pseq": "1"}, {"timestamp": 5}, {"body": message("x", token_estimate=1.5)}):
        with pytest.raises(UnstorableValueError):
            sealed(msgspec.structs.replace(said(CountedIds()), **wrong))


def test_every_byte_of_the_head_and_the_body_is_covered() -> None:
    line = sealed(said(CountedIds(), "café"))
    for at in range(len(line)):
        for bit in range(8):
            flipped = line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
            with pytest.raises(DamagedLineError):
                codec.parse(flipped)


def test_every_shorter_line_is_damaged() -> None:
    line = sealed(said(CountedIds()))
    for length in range(len(line)):
        with pytest.raises(DamagedLineError):
            codec.parse(line[:length])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"authorization":null', b'"authorization":null,"authorization":null'),
        (b'"schema_version":1,', b""),
        (b'"seq":1', b'"seq":1,"seq":1'),
        (b'"seq":1', b'"seq": 1'),
        (b'"seq":1', b'"seq":1.0'),
        (b'"seq":1', b'"seq":NaN'),
        (b'"seq":1', b'"seq":"1"'),
        (b'"seq":1', b'"seq":1,"extra":1'),
        (b'"more":0', b'"more":-0'),
        (b'"actor_id":"owner"', b'"actor_id":"\\u006fwner"'),
        (b'"actor_id":"owner"', b'"actor_id":"caf\xc3\xa9"'),
        (b'"actor_id":"owner"', b'"actor_id":"caf\\u00E9"'),
        (b'"actor_id":"owner"', b'"actor_id":"a\\/b"'),
        (b'"actor_id":"owner"', b'"actor_id":"\\ud800"'),
        (b'"actor_id":"owner"', b'"actor_id":"\xff"'),
        (b'{"actor_id":"owner",', b'{"actor_id":"owner","actor_id":"rune",'),
        (b'{"actor_id":"owner","authorization":null', b'{"authorization":null,"actor_id":"owner"'),
        (b'"payload_hash":"sha256:', b'"payload_hash":"sha256:0'),
    ],
)
def test_a_head_that_is_not_canonical_is_refused_although_its_checksum_is_right(old: bytes, new: bytes) -> None:
    line = sealed(said(CountedIds()))
    assert old in line
    with pytest.raises(DamagedLineError):
        codec.parse(forged(line, old, new))


def test_a_second_body_is_refused_although_the_hash_covers_it() -> None:
    line = sealed(ended(CountedIds()))
    envelope = codec.parse(line).envelope
    doubled = bytes(envelope.body) + b',"body":' + bytes(envelope.body)
    hashed = "sha256:" + hashlib.sha256(doubled).hexdigest()
    line = forged(line, envelope.payload_hash.encode(), hashed.encode())
    with pytest.raises(DamagedLineError, match="twice"):
        codec.parse(line[: -len(bytes(envelope.body)) - 1] + doubled + b"}")


def test_a_body_is_believed_in_exactly_three_forms() -> None:
    event = said(CountedIds())
    line = sealed(event)
    envelope = codec.parse(line).envelope
    inline, own = bytes(envelope.body), envelope.payload_hash.encode()
    other = b"sha256:" + b"0" * 64
    eraser = b"evt_01kb9y3c7m0000000000000006"
    assert codec.parse(line.replace(inline, b'{"evidence":"%b"}' % own)).erased_by is None
    assert codec.parse(line.replace(inline, b'{"erased":"%b"}' % eraser)).erased_by == eraser.decode()
    for body in (
        b'{"evidence":"%b"}' % other,
        b'{"evidence": "%b"}' % own,
        b'{"evidence":"%b","x":1}' % own,
        b'{"erased":"%b","x":1}' % eraser,
        b'{"erased":"msg_01kb9y3c7m0000000000000006"}',
        b'{"erased":null}',
        b"null",
        b"",
        b" " + inline,
    ):
        with pytest.raises(DamagedLineError):
            codec.parse(line.replace(inline, body))


def test_an_erased_body_comes_as_such() -> None:
    line = sealed(said(CountedIds()))
    inline = bytes(codec.parse(line).envelope.body)
    erased = codec.parse(line.replace(inline, b'{"erased":"evt_01kb9y3c7m0000000000000006"}')).envelope
    body = codec.decode_body(erased, evidence())
    assert body == codec.ErasedBody(erased="evt_01kb9y3c7m0000000000000006")


def test_a_body_in_evidence_that_is_not_there_says_so() -> None:
    line = sealed(said(CountedIds(), "r" * 10_000))
    with pytest.raises(NotFoundError):
        codec.decode_body(codec.parse(line).envelope, evidence())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"id":"ses_1"}', "schema_version"),
        (b'{"id":1,"schema_version":1}', "id"),
        (b'{"id":"ses_1","new":1,"schema_version":1}', "new"),
        (b'{"id":"ses_1","id":"ses_2","schema_version":1}', "record"),
        (b'{"schema_version":1,"id":"ses_1"}', "record"),
        (b'{"id":"ses_1", "schema_version":1}', "record"),
        (b"[]", "record"),
    ],
)
def test_a_body_with_the_right_hash_and_wrong_fields_names_the_field(body: bytes, field: str) -> None:
    line = sealed(ended(CountedIds()))
    envelope = codec.parse(line).envelope
    hashed = "sha256:" + hashlib.sha256(body).hexdigest()
    line = forged(line, envelope.payload_hash.encode(), hashed.encode()).replace(bytes(envelope.body), body)
    with pytest.raises(InvalidRecordError) as caught:
        codec.decode_body(codec.parse(line).envelope, evidence())
    assert caught.value.field == field


def test_an_event_type_of_a_later_version_verifies_and_its_body_is_a_typed_error() -> None:
    line = forged(sealed(ended(CountedIds())), b'"session.ended"', b'"river.named"')
    with pytest.raises(InvalidRecordError, match="event_type"):
        codec.decode_body(codec.parse(line).envelope, evidence())


def test_nesting_bombs_and_other_garbage_are_damaged_lines() -> None:
    line = sealed(ended(CountedIds()))
    inline = bytes(codec.parse(line).envelope.body)
    bomb = b'{"id":' + b"[" * 200_000 + b"]" * 200_000 + b',"schema_version":1}'
    for bad in (
        line.replace(inline, bomb),
        b"[" * 500_000,
        b"",
        b"\0" * 512,
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        line + b"x",
        line[:-1] + b" }",
        b"1" * 5000,
        line.replace(inline, b'{"id":"' + b"x" * (1 << 20) + b'","schema_version":1}'),
    ):
        with pytest.raises(DamagedLineError):
            codec.parse(bad)
        with pytest.raises(DamagedLineError):
            codec.parse_header(bad)


def test_a_header_is_covered_and_canonical() -> None:
    line = GOLDEN[0]
    for at in range(len(line)):
        for bit in range(8):
            with pytest.raises(DamagedLineError):
                codec.parse_header(line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :])
    for old, new in ((b'"format":1', b'"format": 1'), (b'"segment":1', b'"segment":1,"segment":1')):
        with pytest.raises(DamagedLineError):
            codec.parse_header(forged(line, old, new))


def test_a_newer_header_is_told_from_damage() -> None:
    newer = forged(GOLDEN[0], b'"format":1', b'"format":2,"new":[]')
    assert codec.newer_format(newer) == 2
    assert codec.newer_format(GOLDEN[0]) is None
    assert codec.newer_format(b'{"format":2}') is None
    assert codec.newer_format(b"garbage") is None


def test_a_foreign_line_is_told_from_damage() -> None:
    assert codec.is_foreign(b'{"id":"1","type":"message","v":1,"data":{}}')
    assert not codec.is_foreign(b'{"id":"1","type":"mess')
    assert not codec.is_foreign(GOLDEN[1])
    assert not codec.is_foreign(GOLDEN[0])
    assert not codec.is_foreign(b"[1]")


def test_content_leaves_out_where_an_event_was_put() -> None:
    event = said(CountedIds())
    here = codec.parse(sealed(event)).envelope
    moved = msgspec.structs.replace(event, pseq=7)
    there = codec.parse(codec.seal(codec.prepare(moved), place(writer="w001", seq=9, hlc=5)).line[:-1]).envelope
    assert codec.content_of(here) == codec.content_of(there) == codec.prepare(event).content


def test_canon_is_the_plain_text_that_the_format_names() -> None:
    value: dict[str, object] = {"b": [1, 2.5, None, True], "a": "café\u2028\x00", "é": {}}
    expected = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    assert codec.canon(value) == expected.encode()
    assert isinstance(codec.decode_body(codec.parse(EXAMPLE[1][:-1]).envelope, evidence()), ConversationMessageRecord)
