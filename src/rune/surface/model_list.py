"""The models of all servers as rows: what each is, what is loaded, and why it may not be used as things are set."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from rune.errors import ModelError
from rune.models.catalog import EMBEDDED, Catalog, Offer, can_chat, is_stand_in
from rune.models.ollama.catalog import leaves_the_machine, same_model
from rune.models.transport import ChatTransport, LoadedModel, ModelInfo
from rune.surface.rows import ModelRow

# A list leaves things out that a model's own description has; of a long list the first are asked, shortly.
_DESCRIBED: Final = 32
_PATIENCE_SECONDS: Final = 2.0
# Below this many bytes a size in GB would round to nothing.
_SMALL: Final = 100_000_000

REMOTE_REFUSED: Final = "not on this machine, and `model.local_only` is on"
CANNOT_CHAT: Final = "it does not chat"


async def listed(catalog: Catalog, *, local_only: bool) -> list[tuple[ModelInfo, ModelRow]]:
    """Return each model of a catalog as its server describes it, and as a row, in order."""
    transports = dict.fromkeys(offer.transport for offer in catalog.offers)
    loading = asyncio.gather(*(in_memory(transport) for transport in transports))
    infos = await asyncio.gather(*(_described(offer) for offer in catalog.offers[:_DESCRIBED]))
    infos += [offer.info for offer in catalog.offers[_DESCRIBED:]]
    loaded = dict(zip(transports, await loading, strict=True))
    return [
        (info, row_of(info, loaded[offer.transport], local_only=local_only))
        for offer, info in zip(catalog.offers, infos, strict=True)
    ]


async def in_memory(transport: ChatTransport) -> Sequence[LoadedModel]:
    """Return what a server has loaded; nothing when it does not say so soon."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await transport.loaded()
    except (ModelError, TimeoutError):  # the list itself says what there is; that nothing is loaded is no claim
        return ()


def row_of(info: ModelInfo, loaded: Iterable[LoadedModel], *, local_only: bool) -> ModelRow:
    """Return a model as a row; `loaded` is what its server has in memory."""
    now = next((each for each in loaded if same_model(each.name, info.name)), None)
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
        stand_in=is_stand_in(info),
        refused=refused,
        loaded=now is not None,
        loaded_window=now.window if now else None,
        loaded_size=now.size if now else None,
        on_gpu=_share(now) if now else None,
        expires_at=now.expires_at if now else "",
        thinks="thinking" in info.capabilities,
    )


def where_and_why(info: ModelInfo) -> str:
    """Return where a model runs and why that counts as local or remote (models.md, Choosing)."""
    if info.provider == EMBEDDED:
        return "local: a process of Rune's own on this machine"
    if not info.remote:
        return "local: its server is this machine, or a private address that you named"
    if leaves_the_machine(info.name, {}):
        return "remote: a cloud model; its server passes on what you send"
    return "remote: its server, or the host it passes on to, is neither this machine nor in your own network"


def is_named(row: ModelRow, name: str) -> bool:
    """Say whether a person who writes `name` means this model: a tag left out means `latest`."""
    return bool(name) and (row.name == name or same_model(row.name, name))


def size_text(row: ModelRow) -> str:
    """Return a model's size as a person reads it: `2.5 GB`."""
    return "unknown" if row.size is None else bytes_text(row.size)


def bytes_text(size: int) -> str:
    """Return bytes as models are sold: `2.5 GB`, `98 MB`."""
    return f"{size / 1e9:.1f} GB" if size >= _SMALL else f"{size / 1e6:.0f} MB"


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


def _share(loaded: LoadedModel) -> float | None:
    if loaded.on_gpu is None or not loaded.size:
        return None
    return min(loaded.on_gpu / loaded.size, 1.0)
