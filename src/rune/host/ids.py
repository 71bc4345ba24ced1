"""New ids, as a port: ULIDs in the product, counted ones in tests."""

import secrets
from typing import Protocol

from rune.host.clock import Clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class IdSource(Protocol):
    """Gives ids of the form `msg_01kb9y3c7m...`."""

    def new_id(self, kind: str) -> str:
        """Return an id that no other call, in any process, returns. Kinds: `records.ids.IdKind`."""
        ...


class UlidSource:
    """ULIDs: 48 bits of wall milliseconds, 80 random bits, in Crockford's base 32, lower case.

    Ids of one process sort in the order in which they were made, also within one millisecond and
    when the clock steps back: the random part is then counted up.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ms = 0
        self._last_random = 0

    def new_id(self, kind: str) -> str:
        """Return a fresh id of that kind."""
        now = self._clock.now_ms()
        if now > self._last_ms:
            self._last_ms, self._last_random = now, secrets.randbits(79)
        else:
            self._last_random += 1 + secrets.randbits(16)
        value = (self._last_ms << 80) | self._last_random
        return f"{kind}_" + "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
