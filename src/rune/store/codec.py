"""The journal's line: how an event becomes bytes and how bytes are believed (spine.md, Form, Chain, Payload).

    line   = head + ',"crc":"' + crc32(head) as 8 hex digits + '","body":' + canon(body) + '}' + newline
    head   = canon(every envelope field but crc and body) without its closing brace
    prev   = the first 16 hex digits of sha256(head of the line before)

`,"crc":"` ends the head wherever it first occurs: the head holds no object but itself, and inside a
string a quote always has a backslash before it, so the bytes `,"` cannot come from one.
"""

import hashlib
import json
import re
import zlib
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from rune.errors import DamagedLineError, InvalidRecordError, UnstorableValueError
from rune.records.envelope import EventEnvelope, SegmentHeader
from rune.records.events import EVENT_KINDS, Event, check_event
from rune.records.record import Record, from_json

FORMAT_VERSION = 1
MAX_LINE_BYTES = 1 << 20
MAX_INLINE_BYTES = 8 << 10
MAX_DEPTH = 100
CHAIN_START = "0" * 16

_CRC_KEY = b',"crc":"'
_BODY_KEY = b'","body":'
# From the start of `,"crc":"` to the first byte of the body.
_TO_BODY = len(_CRC_KEY) + 8 + len(_BODY_KEY)
_AROUND_BODY = _TO_BODY + len(b"}")
_HASH_PREFIX = "sha256:"
_ENCODE = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
_ENCODE_SORTED = msgspec.json.Encoder(order="sorted").encode
_ENVELOPE = msgspec.json.Decoder(EventEnvelope)
_WRITE_AGAIN = msgspec.json.Encoder().encode_into
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_ERASED = re.compile(rb'\{"erased":"(evt_[0-9a-z]{26})"\}')
_BODY_DECODERS = {name: msgspec.json.Decoder(kind.body) for name, kind in EVENT_KINDS.items() if kind.body is not None}


class BlobReader(Protocol):
    """What decoding needs of the evidence store."""

    def get(self, digest: str) -> bytes:
        """Return the blob's verified bytes. Raises NotFoundError, EvidenceTamperedError."""
        ...


class ErasedBody(Record, frozen=True, kw_only=True):
    """Stands for a body that its owner erased; `erased` is the id of the `body.erased` event."""

    erased: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What the store adds to an event: its slot and order, the link to the line before, the device."""

    writer: str
    seq: int
    hlc: int
    more: int
    prev: str
    device_id: str


class PreparedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is known to read back equal. `body` is canonical; `content` is its identity's digest."""

    event: Event
    body: bytes
    payload_hash: str
    content: str

    @property
    def outgrown(self) -> bool:
        """Whether the body is too long for a line and lies in evidence."""
        return len(self.body) > MAX_INLINE_BYTES


class SealedLine(NamedTuple):
    """A line with its newline, and the `prev` of the line after it."""

    line: bytes
    chain: str


class ParsedLine(NamedTuple):
    """A verified line. `erased_by` is set for an erased body: the caller checks that this event, a
    `body.erased`, names the envelope; without it the line is damage.
    """

    envelope: EventEnvelope
    chain: str
    erased_by: str | None


def canon(value: object) -> bytes:
    """Return the one JSON text of a value: sorted keys, ASCII, no blanks, no NaN. Raises UnstorableValueError."""
    try:
        return _ENCODE(msgspec.to_builtins(value)).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableValueError(f"this value has no JSON form: {error}") from error


def digest(data: bytes) -> str:
    """Return `sha256:` and 64 hex digits."""
    return _HASH_PREFIX + hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    """Say whether `text` has the shape of a digest."""
    return _SHA256.fullmatch(text) is not None


def chain_of(head: bytes) -> str:
    """Return the `prev` of the line that follows a line with this head."""
    return hashlib.sha256(head).hexdigest()[:16]


def prepare(event: Event) -> PreparedEvent:
    """Check an event and make its body canonical. Raises ValueError (not registered), UnstorableValueError."""
    check_event(event)
    body = canon(event.body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _deeper_than(msgspec.to_builtins(event.body), MAX_DEPTH):
        raise UnstorableValueError(f"{event.event_type}: nested more than {MAX_DEPTH} levels deep")
    try:
        read_back = _BODY_DECODERS[event.event_type].decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnstorableValueError(f"{event.event_type}: the body would not read back: {error}") from error
    if read_back != event.body:
        raise UnstorableValueError(f"{event.event_type}: the body would read back as something else")
    payload_hash = digest(body)
    return PreparedEvent(event=event, body=body, payload_hash=payload_hash, content=_content(event, payload_hash))


def seal(prepared: PreparedEvent, place: Place) -> SealedLine:
    """Return the line of an event at its place, after reading it back. Raises UnstorableValueError."""
    event = prepared.event
    head = canon(
        {
            "actor_id": event.actor_id,
            "authorization": event.authorization,
            "device_id": place.device_id,
            "event_id": event.event_id,
            "event_type": event.event_type,
            "hlc": place.hlc,
            "more": place.more,
            "parent_id": event.parent_id,
            "partition_key": event.partition_key,
            "payload_hash": prepared.payload_hash,
            "prev": place.prev,
            "pseq": event.pseq,
            "schema_version": 1,
            "seq": place.seq,
            "timestamp": event.timestamp,
            "writer": place.writer,
        }
    )[:-1]
    body = evidence_form(prepared.payload_hash) if prepared.outgrown else prepared.body
    line = b"%b%b%08x%b%b}" % (head, _CRC_KEY, zlib.crc32(head), _BODY_KEY, body)
    if len(line) >= MAX_LINE_BYTES:
        raise UnstorableValueError(f"{event.event_type}: a line of {len(line):,} bytes is longer than 1 MiB")
    try:
        read_back = parse(line)
    except DamagedLineError as error:
        raise UnstorableValueError(f"{event.event_type}: it would not read back: {error.message}") from error
    if not _same(read_back.envelope, event):
        raise UnstorableValueError(f"{event.event_type}: it would read back as something else")
    return SealedLine(line + b"\n", read_back.chain)


def parse(line: bytes) -> ParsedLine:
    """Verify and decode one line without its newline: form, crc, payload. Raises DamagedLineError.

    The chain (`prev`), `seq` and `more` relate to other lines and are checked by whoever reads them in order.
    """
    return ParsedLine(*verify(line, bytearray(), plain=is_plain(line)))


def is_plain(data: bytes) -> bool:
    """Say whether no character is in it that canonical JSON always escapes and msgspec does not."""
    return data.isascii() and b"\x7f" not in data


def verify(line: bytes, scratch: bytearray, *, plain: bool) -> tuple[EventEnvelope, str, str | None]:
    """Return the fields of ParsedLine as a plain tuple: replaying a long journal is this function a line.

    `scratch` is made once by the caller; what it holds does not matter. `plain` is what `is_plain` says of the
    line, or of all the lines that are looked at together: asking once for many costs next to nothing.
    """
    if len(line) >= MAX_LINE_BYTES:
        raise DamagedLineError("it is longer than 1 MiB")
    try:
        envelope = _ENVELOPE.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DamagedLineError(f"not an event: {error}") from error
    body = bytes(envelope.body)
    head = line[: -_AROUND_BODY - len(body)]
    # Writing the envelope once more proves the form of the whole line, for less than half the cost of decoding it.
    _WRITE_AGAIN(envelope, scratch)
    if scratch != line or not plain:  # pyright: ignore[reportUnnecessaryComparison] bytes of two kinds can be equal
        _refuse_uncanonical(envelope, head, line)
    if f"{zlib.crc32(head):08x}" != envelope.crc:
        raise DamagedLineError("its checksum does not match")
    erased_by = None
    if _HASH_PREFIX + hashlib.sha256(body).hexdigest() != envelope.payload_hash:
        erased_by = _body_elsewhere(envelope, body)
    return envelope, hashlib.sha256(head).hexdigest()[:16], erased_by


def seal_header(*, boot_id: str, opened: str, prev: str, segment: int, writer: str) -> SealedLine:
    """Return the first line of a segment."""
    fields = {
        "boot_id": boot_id,
        "format": FORMAT_VERSION,
        "opened": opened,
        "prev": prev,
        "segment": segment,
        "writer": writer,
    }
    head = canon(fields)[:-1]
    return SealedLine(b'%b%b%08x"}\n' % (head, _CRC_KEY, zlib.crc32(head)), chain_of(head))


def parse_header(line: bytes) -> tuple[SegmentHeader, str]:
    """Verify and decode a segment's first line; returns it and the `prev` of the line after it.

    Raises DamagedLineError. A newer `format` is returned as it is: the caller decides.
    """
    try:
        header = from_json(line, SegmentHeader)
    except (InvalidRecordError, RecursionError) as error:
        raise DamagedLineError(f"not a segment's header: {error}") from error
    cut = line.find(_CRC_KEY)
    head = line[:cut]
    if line != b'%b%b%b"}' % (head, _CRC_KEY, header.crc.encode("utf-8", "replace")):
        raise DamagedLineError("the header's crc is not where it belongs")
    if b"%08x" % zlib.crc32(head) != header.crc.encode("utf-8", "replace"):
        raise DamagedLineError("the header's checksum does not match")
    if canon({name: value for name, value in msgspec.structs.asdict(header).items() if name != "crc"})[:-1] != head:
        raise DamagedLineError("the header is not in canonical form")
    return header, chain_of(head)


def newer_format(line: bytes) -> int | None:
    """Return the format version of a header of a later Rune, None for everything else.

    Looked at when a header does not parse: a later format may have other fields. One that bears a checksum as ours
    does must have the right one: a flipped bit in `format` is damage and no later Rune.
    """
    fields = _json_object(line)
    version = None if fields is None else fields.get("format")
    if not (isinstance(version, int) and version > FORMAT_VERSION and "writer" in (fields or {})):
        return None
    head, key, rest = line.partition(_CRC_KEY)
    return version if not key or rest[:8] == b"%08x" % zlib.crc32(head) else None


def is_foreign(line: bytes) -> bool:
    """Say whether a line is whole JSON and yet bears none of the marks of this journal's lines."""
    fields = _json_object(line)
    return fields is not None and not {"crc", "prev", "payload_hash", "event_id"} & fields.keys()


def decode_body(envelope: EventEnvelope, evidence: BlobReader) -> Record:
    """Return the typed body of a verified envelope, from evidence when it lies there.

    An erased body comes as ErasedBody. Raises InvalidRecordError (also for an event type that this
    version does not know), NotFoundError and EvidenceTamperedError.
    """
    raw = bytes(envelope.body)
    if digest(raw) != envelope.payload_hash:
        if erased := _ERASED.fullmatch(raw):
            return ErasedBody(erased=erased[1].decode("ascii"))
        raw = evidence.get(envelope.payload_hash)
    decoder = _BODY_DECODERS.get(envelope.event_type)
    if decoder is None:
        raise InvalidRecordError(
            "EventEnvelope", field="event_type", expected="a name this version stores", got=envelope.event_type
        )
    try:
        body = decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        body = None
    # What comes out must be what went in: no field missing, doubled or written differently.
    # In the common case msgspec writes the same bytes, in a fraction of the time.
    if body is not None and ((raw.isascii() and _ENCODE_SORTED(body) == raw) or canon(body) == raw):
        return body
    kind = cast("type[Record]", EVENT_KINDS[envelope.event_type].body)
    from_json(raw, kind)  # names the field
    raise InvalidRecordError(kind.__name__, field="record", expected="canonical JSON", got="another form of it")


def verify_body(envelope: EventEnvelope, evidence: BlobReader) -> None:
    """Raise NotFoundError or EvidenceTamperedError where the body lies in evidence and is not whole there.

    All other forms of a body were verified with their line.
    """
    if bytes(envelope.body) == evidence_form(envelope.payload_hash):
        evidence.get(envelope.payload_hash)


def content_of(envelope: EventEnvelope) -> str:
    """Return the digest that says whether two events of one id are the same fact.

    It covers type, partition, actor, parent, authorization, timestamp and body. Where the event was
    put (`pseq`, `seq`, `hlc`, slot, device) is not content: a retry after a restart may get another place.
    """
    return _content(envelope, envelope.payload_hash)


def evidence_form(payload_hash: str) -> bytes:
    """Return the body of a line whose true body lies in evidence."""
    return b'{"evidence":"%b"}' % payload_hash.encode("ascii")


def erased_form(erasing_id: str) -> bytes:
    """Return the body of a line whose true body was erased by the `body.erased` event of this id."""
    return b'{"erased":"%b"}' % erasing_id.encode("ascii")


def blanked(line: bytes, erasing_id: str) -> bytes:
    """Return a verified line, without its newline, with its body erased. Its head, and so the chain, stays the same."""
    return line[: line.find(_CRC_KEY) + _TO_BODY] + erased_form(erasing_id) + b"}"


def _content(event: Event | EventEnvelope, payload_hash: str) -> str:
    fields = (
        event.event_type,
        event.partition_key,
        event.actor_id,
        event.parent_id,
        event.authorization,
        event.timestamp,
        payload_hash,
    )
    try:
        texts = "".join(["" if field is None else field for field in fields])
    except TypeError:
        return digest(canon(fields))
    if texts.isascii() and texts.isprintable() and '"' not in texts and "\\" not in texts:
        # The same bytes as below where no string needs an escape, which is nearly always.
        quoted = ",".join(["null" if field is None else f'"{field}"' for field in fields])
        return digest(f"[{quoted}]".encode("ascii"))
    return digest(canon(fields))


def _same(envelope: EventEnvelope, event: Event) -> bool:
    names = ("event_id", "event_type", "partition_key", "actor_id", "timestamp", "pseq", "parent_id", "authorization")
    return all(getattr(envelope, name) == getattr(event, name) for name in names)


def _refuse_uncanonical(envelope: EventEnvelope, head: bytes, line: bytes) -> None:
    body = bytes(envelope.body)
    if b"%b%b%b%b%b}" % (head, _CRC_KEY, envelope.crc.encode("utf-8", "replace"), _BODY_KEY, body) != line:
        raise DamagedLineError("crc and body are not where they belong, or a key is there twice")
    fields = msgspec.structs.asdict(envelope)
    del fields["crc"], fields["body"]
    if canon(fields)[:-1] != head:
        raise DamagedLineError("it is not in canonical form")


def _body_elsewhere(envelope: EventEnvelope, body: bytes) -> str | None:
    """Accept the two other forms of a body; returns the erasing event's id for the second."""
    if is_digest(envelope.payload_hash) and body == evidence_form(envelope.payload_hash):
        return None
    erased = _ERASED.fullmatch(body)
    if erased is None:
        raise DamagedLineError("its body does not have the hash that its head names")
    return erased[1].decode("ascii")


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _deeper_than(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        inner = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list | tuple):
        inner = list(cast("list[object]", value))
    else:
        return False
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in inner)
