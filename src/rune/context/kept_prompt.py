"""A rendered prompt as it is kept while its turn waits for the person: all that `ContextBroker.extend` needs.

What was said stands in it as it was sent, never in base64: an erasure looks for words in the bytes of evidence. First
comes a line of JSON, then the contents whose lengths it names, one behind another.
"""

import msgspec

from rune.context.blocks import Capsule
from rune.errors import InvalidRecordError


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line. `capsule` lacks the contents; lengths in bytes."""

    capsule: Capsule
    messages: int
    tools: int
    blobs: tuple[tuple[str, int], ...]


def encode_capsule(capsule: Capsule) -> bytes:
    """Return the bytes under which a prompt is kept as evidence."""
    blobs = sorted(capsule.trace.blobs.items())
    bare = msgspec.structs.replace(
        capsule, messages=b"", tools=b"", trace=msgspec.structs.replace(capsule.trace, blobs={})
    )
    head = _Head(
        capsule=bare,
        messages=len(capsule.messages),
        tools=len(capsule.tools),
        blobs=tuple((name, len(data)) for name, data in blobs),
    )
    contents = (capsule.messages, capsule.tools, *(data for _, data in blobs))
    return b"".join((msgspec.json.encode(head, order="sorted"), b"\n", *contents))


def decode_capsule(data: bytes) -> Capsule:
    """Return a kept prompt. Raises InvalidRecordError."""
    line, _, contents = data.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRecordError("Capsule", field="capsule", expected="a prompt", got=str(error)) from error
    lengths = (head.messages, head.tools, *(length for _, length in head.blobs))
    if min(lengths) < 0 or sum(lengths) != len(contents):
        raise InvalidRecordError("Capsule", field="contents", expected=f"{sum(lengths)} bytes", got=str(len(contents)))
    pieces: list[bytes] = []
    for length in lengths:
        pieces.append(contents[:length])
        contents = contents[length:]
    messages, tools, *blobs = pieces
    names = (name for name, _ in head.blobs)
    trace = msgspec.structs.replace(head.capsule.trace, blobs=dict(zip(names, blobs, strict=True)))
    return msgspec.structs.replace(head.capsule, messages=messages, tools=tools, trace=trace)
