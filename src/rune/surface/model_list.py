"""The models of all servers as rows: what each is, and why it may not be used as things are set."""

import asyncio
from typing import Final

from rune.errors import ModelError
from rune.models.catalog import EMBEDDED, Offer, can_chat
from rune.models.ollama.catalog import same_model
from rune.models.router import Router
from rune.models.transport import ModelInfo
from rune.surface.rows import ModelRow

# A list leaves things out that a model's own description has; of a long list the first are asked, shortly.
_DESCRIBED: Final = 32
_PATIENCE_SECONDS: Final = 2.0
# Below this many bytes a size in GB would round to nothing.
_SMALL: Final = 100_000_000

REMOTE_REFUSED: Final = "not on this machine, and `model.local_only` is on"
CANNOT_CHAT: Final = "it does not chat"


async def model_rows(router: Router, *, local_only: bool) -> tuple[tuple[ModelRow, ...], tuple[ModelError, ...]]:
    """Return all models that can be seen now, in the servers' order, and what kept others from being seen."""
    catalog = await router.survey()
    infos = await asyncio.gather(
        *(_described(offer) for offer in catalog.offers[:_DESCRIBED]),
    )
    infos += [offer.info for offer in catalog.offers[_DESCRIBED:]]
    return tuple(_row(info, local_only=local_only) for info in infos), catalog.failures


def is_named(row: ModelRow, name: str) -> bool:
    """Say whether a person who writes `name` means this model: a tag left out means `latest`."""
    return bool(name) and (row.name == name or same_model(row.name, name))


def size_text(row: ModelRow) -> str:
    """Return a model's size as a person reads it: `2.5 GB`."""
    if row.size is None:
        return "unknown"
    return f"{row.size / 1e9:.1f} GB" if row.size >= _SMALL else f"{row.size / 1e6:.0f} MB"


def window_text(row: ModelRow) -> str:
    """Return the window a model was trained for, in tokens: `32,768`."""
    return "unknown" if row.window is None else f"{row.window:,}"


def where_text(row: ModelRow) -> str:
    """Return where a model runs, in one word."""
    return "stand-in" if row.stand_in else "remote" if row.remote else "local"


async def _described(offer: Offer) -> ModelInfo:
    if offer.info.context_length is not None and offer.info.capabilities:
        return offer.info
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await offer.transport.describe(offer.info.name)
    except (ModelError, TimeoutError):  # the list itself says what it is; the rest shows as unknown
        return offer.info


def _row(info: ModelInfo, *, local_only: bool) -> ModelRow:
    refused = REMOTE_REFUSED if info.remote and local_only else "" if can_chat(info) else CANNOT_CHAT
    return ModelRow(
        name=info.name,
        provider=info.provider,
        remote=info.remote,
        size=info.size,
        parameters=info.parameters,
        quantisation=info.quantisation,
        window=info.context_length,
        capabilities=tuple(sorted(info.capabilities)),
        stand_in=info.provider == EMBEDDED,
        refused=refused,
    )
