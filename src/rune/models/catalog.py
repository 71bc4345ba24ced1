"""What can be asked right now: the models of every transport, found by name and put in order."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from rune.errors import ModelError
from rune.models.ollama.catalog import same_model
from rune.models.transport import ChatTransport, ModelInfo

EMBEDDED: Final = "embedded"
STAND_IN: Final = "smollm2-135m-instruct"
"""The small model that Rune brings along; another file in its place was named by the owner and stands in for none."""

# What a loaded model takes beside its weights: cache and working memory, as a share of them.
_OVERHEAD: Final = 1.25


class Offer(msgspec.Struct, frozen=True):
    """One model and what it is asked through."""

    transport: ChatTransport
    info: ModelInfo


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """All offers, in the transports' order and each one's own; `failures` are those that did not answer."""

    offers: tuple[Offer, ...]
    failures: tuple[ModelError, ...]

    def find(self, name: str) -> Offer | None:
        """Return the offer that a person means by `name`.

        That is a model's name (a tag left out means `latest`), `provider/name`, the bare name of one that is listed
        as `server/name` (the first server that has it), or `embedded` alone or with
        `:name` or `:file.gguf` for the one that Rune brings along.
        """
        for offer in self.offers:
            if offer.info.name == name or same_model(offer.info.name, name):
                return offer
        for offer in self.offers:
            if same_model(f"{offer.info.provider}/{offer.info.name}", name):
                return offer
        for offer in self.offers:
            bare = offer.info.name.removeprefix(f"{offer.info.provider}/")
            if bare != offer.info.name and same_model(bare, name):
                return offer
        provider, _, rest = name.partition(":")
        if provider != EMBEDDED:
            return None
        embedded = [offer for offer in self.offers if offer.info.provider == EMBEDDED]
        return next((offer for offer in embedded if rest.removesuffix(".gguf") in {"", offer.info.name}), None)

    def names(self) -> tuple[str, ...]:
        """Return every model's name, as `find` takes it."""
        return tuple(offer.info.name for offer in self.offers)


async def survey(transports: Sequence[ChatTransport]) -> Catalog:
    """Ask all transports at once what they have. Raises nothing of theirs: it stands in `failures`."""
    listings = await asyncio.gather(*(_listing(transport) for transport in transports))
    offers = [
        Offer(transport, info)
        for transport, listing in zip(transports, listings, strict=True)
        if not isinstance(listing, ModelError)
        for info in listing
    ]
    return Catalog(offers=tuple(offers), failures=tuple(found for found in listings if isinstance(found, ModelError)))


def by_preference(offers: Iterable[Offer], *, memory: int | None) -> list[Offer]:
    """Return the offers, best first: on this machine, fits into `memory` (bytes; None unknown), has tools.

    Among equals the transport's own order holds; Ollama's is newest first.
    """
    return sorted(offers, key=lambda offer: (offer.info.remote, not fits(offer.info, memory), not _acts(offer.info)))


def fits(info: ModelInfo, memory: int | None) -> bool:
    """Whether the model should fit into `memory` bytes; True where either is unknown."""
    return memory is None or info.size is None or info.size * _OVERHEAD <= memory


def is_stand_in(info: ModelInfo) -> bool:
    """Whether it is the small model that answers for want of another."""
    return info.provider == EMBEDDED and info.name == STAND_IN


def can_chat(info: ModelInfo) -> bool:
    """Whether it answers; one that lists no capability at all may."""
    return not info.capabilities or "chat" in info.capabilities


def _acts(info: ModelInfo) -> bool:
    return "tools" in info.capabilities


async def _listing(transport: ChatTransport) -> list[ModelInfo] | ModelError:
    try:
        return await transport.models()
    except ModelError as error:
        return error
