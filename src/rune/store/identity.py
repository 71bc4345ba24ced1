"""One id, one content: what makes an append idempotent."""

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from rune.errors import IdentityCollisionError
from rune.store.event_store import Offset

_KEPT = 4096


class StoredIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event id was stored first, and the digest of its content (`codec.content_of`)."""

    offset: Offset
    content: str


Lookup = Callable[[str], StoredIdentity | None]


class IdentityIndex:
    """What is known of stored ids: the ids this process appended, then the views' table by `lookup`.

    `lookup` is called on the thread that writes. Own ids are let go, oldest first, once there are more than
    a few thousand of them and the views know them too: a long session does not grow.
    """

    def __init__(self, lookup: Lookup | None = None) -> None:
        self._lookup = lookup
        self._own: OrderedDict[str, StoredIdentity] = OrderedDict()

    def __len__(self) -> int:
        return len(self._own)

    def find(self, event_id: str, content: str) -> Offset | None:
        """Return where the same fact is stored, None for a new id. Raises IdentityCollisionError."""
        known = self._own.get(event_id)
        if known is None and self._lookup is not None:
            known = self._lookup(event_id)
        return None if known is None else same_fact(event_id, known, content)

    def remember(self, event_id: str, identity: StoredIdentity) -> None:
        """Note an id that has just been stored."""
        self._own[event_id] = identity
        if self._lookup is not None and len(self._own) > _KEPT:
            oldest = next(iter(self._own))
            if self._lookup(oldest) is not None:
                del self._own[oldest]


def same_fact(event_id: str, known: StoredIdentity, content: str) -> Offset:
    """Return the first offset when the content is the same. Raises IdentityCollisionError otherwise."""
    if known.content != content:
        raise IdentityCollisionError(f"event {event_id} is already stored with another content")
    return known.offset
