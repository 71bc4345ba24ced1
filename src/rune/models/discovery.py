"""Watches, beside everything else, for what can answer: servers that come and go, models that appear and vanish.

Nothing is asked before somebody listens, and nothing once nobody does any more: the looking is the listener's own
generator. A refused connection to a loopback address costs next to nothing, so a server that is started after Rune is
seen within seconds.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from typing import Final

from rune.models.catalog import EMBEDDED, Catalog

# Whoever has just begun Rune may be about to start a server: so often, and so many times in a row.
_SOON: Final = 2.0
_EAGER_LOOKS: Final = 15
_SLOWER: Final = 1.5
_SELDOM: Final = 15.0
# A server is there: what was pulled or removed elsewhere is worth no more than that.
_SETTLED: Final = 30.0

# What httpx imports itself only when it opens its first connection is named as well.
_FIRST_NEEDED: Final = ("httpx", "httpcore", "anyio._backends._asyncio")

Sleep = Callable[[float], Awaitable[None]]
Survey = Callable[[], Awaitable[Catalog]]


class Discovery:
    """Looks with `survey`, which asks all transports (`Router.survey`); `sleep` waits between two looks, in seconds."""

    def __init__(self, survey: Survey, *, sleep: Sleep = asyncio.sleep) -> None:
        self._survey = survey
        self._sleep = sleep
        self._wanted: set[asyncio.Event] = set()
        self.last: Catalog | None = None
        """What was there when somebody looked last; None before the first look."""

    async def look(self) -> Catalog:
        """Look now, and keep what there is. Raises nothing of a server's: it stands in the catalog's failures."""
        if self.last is None:
            await asyncio.to_thread(_load)
        self.last = await self._survey()
        return self.last

    def hurry(self) -> None:
        """Have every listener look at once: something is known to have changed."""
        for wanted in self._wanted:
            wanted.set()

    async def changes(self) -> AsyncGenerator[Catalog]:
        """Give what is there, then each time another set of models or of silent servers. Ends only when it is closed;
        until its next value is asked for, nothing is looked at.
        """
        wanted = asyncio.Event()
        self._wanted.add(wanted)
        try:
            seen: Hashable = None
            looks = 0
            while True:
                wanted.clear()
                catalog = await self.look()
                looks += 1
                found = _likeness(catalog)
                if found != seen:
                    seen, looks = found, 1
                    yield catalog
                await self._pause(pause(catalog, looks), wanted)
        finally:
            self._wanted.discard(wanted)

    async def _pause(self, seconds: float, wanted: asyncio.Event) -> None:
        waits = asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(wanted.wait())
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if waits[0].done():
                waits[0].result()
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


def _load() -> None:
    """Import what the first request needs: on the event loop that would hold up a key for 200 ms."""
    for module in _FIRST_NEEDED:
        importlib.import_module(module)


def pause(catalog: Catalog, looks: int) -> float:
    """Return how many seconds to wait before the next look, after `looks` (at least 1) that saw the same."""
    if any(offer.info.provider != EMBEDDED for offer in catalog.offers):
        return _SETTLED
    # The exponent is bounded: a Rune that stays open for weeks must not compute a number without end.
    slower = min(max(looks - _EAGER_LOOKS, 0), _EAGER_LOOKS)
    return min(_SOON * _SLOWER**slower, _SELDOM)


def _likeness(catalog: Catalog) -> Hashable:
    """Return what makes two catalogs the same: the models by their weights, and who was silent."""
    models = frozenset((offer.info.provider, offer.info.name, offer.info.digest) for offer in catalog.offers)
    return models, frozenset((type(failure), failure.message) for failure in catalog.failures)
