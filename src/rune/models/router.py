"""Which model answers: the named one, the conversation's, the configured one, else the first usable
(models.md, Choosing). A model is never switched in silence.
"""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final, Literal, NoReturn

import msgspec

from rune.errors import (
    CHOOSE_ANOTHER,
    CapabilityMissingError,
    ModelError,
    ModelNotFoundError,
    ModelUnavailableError,
    RemoteRefusedError,
    ServerError,
)
from rune.models.catalog import EMBEDDED, Catalog, Offer, by_preference, can_chat, is_stand_in, survey
from rune.models.transport import ChatTransport, ModelInfo, ModelLibrary

_Named = Literal["requested", "conversation", "configured"]
Reason = Literal[_Named, "only", "first_usable", "embedded_stand_in"]

_INSTALL: Final = (
    "Install Ollama (https://ollama.com/download) and get a model with `ollama pull qwen3:4b`, "
    "or fetch the small stand-in with `rune models fetch-embedded`."
)
_REAL_ONE: Final = "For a real one: install Ollama (https://ollama.com/download), then `ollama pull qwen3:4b`."
_ALLOW: Final = "Choose a model on this machine, or set `model.local_only: false`."
_WHOSE: Final[dict[_Named, str]] = {
    "requested": "model",
    "conversation": "this conversation's model",
    "configured": "the configured model",
}
_NAMES_SHOWN: Final = 12
_DESCRIBED: Final = 16


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answers and why; `notice` is one sentence for the person, "" when there is none."""

    transport: ChatTransport
    info: ModelInfo
    reason: Reason
    notice: str = ""


class Router:
    """Chooses among `transports`, tried in their order; the embedded one, if any, is only a stand-in.

    `local_only` refuses every model that is not on this machine or the person's own network. `memory` is
    what a model may take, in bytes; None: unknown.
    """

    def __init__(
        self, transports: Sequence[ChatTransport], *, local_only: bool = True, memory: int | None = None
    ) -> None:
        self._transports = tuple(transports)
        self._local_only = local_only
        self._memory = memory

    async def survey(self) -> Catalog:
        """Return all models that can be seen now."""
        return await survey(self._transports)

    @property
    def libraries(self) -> tuple[tuple[str, ModelLibrary], ...]:
        """The servers that fetch and remove models, each with its provider, in the transports' order."""
        return tuple((each.provider, each) for each in self._transports if isinstance(each, ModelLibrary))

    async def find(self, name: str) -> tuple[Offer, Catalog]:
        """Return the model that a person means, as its server describes it, and all that can be seen; unlike
        `choose` also one that may not answer as things are set. Raises as that does for a model that is not there.
        """
        catalog = await survey(self._transports)
        offer = catalog.find(name)
        if offer is None:
            _refuse_unknown(name, "requested", catalog)
        described = await _described(offer)
        if isinstance(described, ModelError):
            raise described
        return described, catalog

    async def choose(self, *, requested: str | None, conversation_model: str | None, configured: str | None) -> Choice:
        """Return the model for a turn; None or "" where nothing is named.

        Raises ModelNotFoundError (a named model is not there: it says what is), RemoteRefusedError,
        CapabilityMissingError (it does not chat), ModelUnavailableError (there is no model at all, or the named
        one is not to be seen while a server does not answer).
        """
        catalog = await survey(self._transports)
        named: list[tuple[str | None, _Named]] = [
            (requested, "requested"),
            (conversation_model, "conversation"),
            (configured, "configured"),
        ]
        for name, reason in named:
            if name:
                return await self._by_name(name, reason, catalog)
        return await self._by_itself(catalog)

    async def _by_name(self, name: str, reason: _Named, catalog: Catalog) -> Choice:
        offer = catalog.find(name)
        if offer is None:
            _refuse_unknown(name, reason, catalog)
        described = await _described(offer)
        if isinstance(described, ModelError):
            raise described
        if self._local_only and described.info.remote:
            raise RemoteRefusedError(
                f"{described.info.name} is not on this machine: what you write would be sent elsewhere", hint=_ALLOW
            )
        if not can_chat(described.info):
            raise CapabilityMissingError(described.info.name, "chat")
        notice = self._better_one(catalog) if reason == "conversation" and is_stand_in(described.info) else ""
        return Choice(transport=described.transport, info=described.info, reason=reason, notice=notice)

    def _better_one(self, catalog: Catalog) -> str:
        """Say that a conversation which began on the stand-in could go on with a real model; "" if there is none."""
        real = [offer for offer in self._allowed(catalog) if can_chat(offer.info)]
        if not real:
            return ""
        best = by_preference(real, memory=self._memory)[0].info.name
        return (
            f"This conversation goes on with the small stand-in it began with. "
            f"A real model takes over with /model {best} in the app, -m {best} on the command line."
        )

    def _allowed(self, catalog: Catalog) -> list[Offer]:
        return [
            offer
            for offer in catalog.offers
            if offer.info.provider != EMBEDDED and not (self._local_only and offer.info.remote)
        ]

    async def _by_itself(self, catalog: Catalog) -> Choice:
        real = [offer for offer in catalog.offers if offer.info.provider != EMBEDDED]
        allowed = self._allowed(catalog)
        first = by_preference(allowed, memory=self._memory)[:_DESCRIBED]
        # Only a model's own description is reliable: a list may leave tools out or name them wrongly.
        descriptions = await asyncio.gather(*(_described(offer) for offer in first))
        usable = [
            offer
            for offer in descriptions
            if not isinstance(offer, ModelError)
            and can_chat(offer.info)
            and not (self._local_only and offer.info.remote)
        ]
        if usable:
            best = by_preference(usable, memory=self._memory)[0]
            reason: Reason = "only" if len(usable) == 1 else "first_usable"
            return Choice(transport=best.transport, info=best.info, reason=reason)
        stand_in = next((offer for offer in catalog.offers if offer.info.provider == EMBEDDED), None)
        why = _why_nothing(catalog, real=real, allowed=allowed)
        if stand_in is None:
            raise ModelUnavailableError(f"there is no model to ask: {why}", hint=_remedy(catalog))
        described = await _described(stand_in)
        if isinstance(described, ModelError):
            raise described
        notice = _notice_of(described.info, why, _remedy(catalog, _REAL_ONE))
        return Choice(transport=described.transport, info=described.info, reason="embedded_stand_in", notice=notice)


async def _described(offer: Offer) -> Offer | ModelError:
    try:
        return Offer(offer.transport, await offer.transport.describe(offer.info.name))
    except ModelError as error:
        return error


def _refuse_unknown(name: str, reason: _Named, catalog: Catalog) -> NoReturn:
    refused = [failure for failure in catalog.failures if isinstance(failure, RemoteRefusedError)]
    if refused and len(refused) == len(catalog.failures):
        # Wherever it may be on this machine it is not; nobody else was asked.
        raise RemoteRefusedError(
            f"{_WHOSE[reason]} {name!r} is not here, and {refused[0].message}", hint=refused[0].hint
        )
    if not catalog.offers:
        seen = "; ".join(failure.message for failure in catalog.failures) or "no model is installed"
        raise ModelUnavailableError(f"{_WHOSE[reason]} {name!r} cannot be asked: {seen}", hint=_remedy(catalog))
    names = tuple(offer.info.name for offer in catalog.offers if can_chat(offer.info))
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    shown = ", ".join(names[:_NAMES_SHOWN]) + (
        f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    )
    hint = f"{meant}{CHOOSE_ANOTHER} There are: {shown}."
    if any(isinstance(offer.transport, ModelLibrary) for offer in catalog.offers):
        hint += " /model pull NAME, or `rune models pull NAME`, fetches one."
    if catalog.failures:
        # It may well be there: whoever has it could not say so.
        silent = "; ".join(failure.message for failure in catalog.failures)
        begin = " ".join(failure.hint for failure in catalog.failures if failure.hint)
        raise ModelUnavailableError(
            f"{_WHOSE[reason]} {name!r} cannot be asked now: {silent}", hint=f"{begin} {hint}".strip()
        )
    gone = "is not there any more" if reason == "conversation" else "is not there"
    raise ModelNotFoundError(f"{_WHOSE[reason]} {name!r} {gone}", hint=hint)


def _notice_of(info: ModelInfo, why: str, remedy: str) -> str:
    """Say that no server answers; of a file that the owner named there is nothing to excuse."""
    if not is_stand_in(info):
        return ""
    return f"No model server could be used ({why}); a small stand-in answers: {info.name}. {remedy}"


def _remedy(catalog: Catalog, otherwise: str = _INSTALL) -> str:
    """Return what a person can do where there is no model: a server that answers and refuses says it best."""
    refused = [
        failure.hint
        for failure in catalog.failures
        if isinstance(failure, ServerError | RemoteRefusedError) and failure.hint
    ]
    return " ".join(refused) or otherwise


def _why_nothing(catalog: Catalog, *, real: Sequence[Offer], allowed: Sequence[Offer]) -> str:
    if real and not allowed:
        return "the only models found are not on this machine and `model.local_only` is on"
    if real:
        return "no model that was found can chat"
    return "; ".join(failure.message for failure in catalog.failures) or "no model is installed"
