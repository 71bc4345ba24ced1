"""Ids of what is brought in: the same for the same original, on every machine and at every run."""

import hashlib

from rune.records.ids import IdKind

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_BITS = 128


def derived(kind: IdKind, *parts: str) -> str:
    """Return the id of that kind that stands for these parts, by hash: nothing of a ULID's time is in it."""
    text = "\0".join(("rune.import", kind, *(part.replace("\0", "\0\0") for part in parts)))
    value = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[: _BITS // 8], "big")
    return f"{kind}_" + "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
