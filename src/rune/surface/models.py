"""Everything a person does with models beside talking to them: see, fetch, remove, measure, and notice new ones."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

import msgspec

from rune.context.window import WindowBook
from rune.errors import (
    ModelError,
    ModelUnavailableError,
    RemoteRefusedError,
    StorageError,
    StreamBrokenError,
    UsageError,
)
from rune.host.clock import Clock
from rune.models.catalog import EMBEDDED, Catalog, Offer, can_chat, is_stand_in
from rune.models.discovery import Discovery
from rune.models.ollama.catalog import leaves_the_machine
from rune.models.probe import Prober
from rune.models.router import Router
from rune.models.scorecard import Scorecard
from rune.models.transport import ModelInfo, ModelLibrary
from rune.records.models import ActionProtocol
from rune.surface.model_list import in_memory, listed, row_of, where_and_why
from rune.surface.model_values import Arrivals, ModelDetails, ProbeRow, PullRow, Removed
from rune.surface.pulling import PullMeter, check_name
from rune.surface.rows import ModelRow

_DONE: Final = "success"
_NO_LIBRARY: Final = "Install Ollama (https://ollama.com/download) and start it: `ollama serve`."
_OWN_FILE: Final = (
    "It is a file of its own: RUNE_EMBEDDED_MODEL or `model.embedded_model` names it, else it lies in the folder "
    "`models` of Rune's data (`rune doctor` says where); delete it there."
)


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds the use of models. `configured` is the name in the settings, "" when there is none; `max_context`
    the largest window in tokens; `memory` tells how many bytes a model may take now, None: unknown.
    """

    local_only: bool
    configured: str
    max_context: int
    memory: Callable[[], int | None]


class Models:
    """What surfaces get of models. Nothing here chooses who answers: that is the operator's."""

    def __init__(
        self,
        router: Router,
        *,
        discovery: Discovery,
        windows: WindowBook,
        scorecard: Scorecard,
        prober: Prober,
        limits: ModelLimits,
        clock: Clock,
    ) -> None:
        self._router = router
        self._discovery = discovery
        self._windows = windows
        self._scorecard = scorecard
        self._prober = prober
        self._limits = limits
        self._clock = clock
        self._known: tuple[ModelRow, ...] | None = None

    @property
    def known(self) -> Sequence[ModelRow] | None:
        """What `rows` said last, to be drawn at once; None before it was asked."""
        return self._known

    async def rows(self) -> tuple[Sequence[ModelRow], Sequence[ModelError]]:
        """List all models that can be seen now, with what is loaded and how each is asked to act, also those that may
        not be used as things are set; and what kept others from being seen. Raises nothing because a server does not
        answer, and no StorageError.
        """
        catalog = await self._discovery.look()
        found = await listed(catalog, local_only=self._limits.local_only)
        self._known = tuple([await self._acting(info, row) for info, row in found])
        return self._known, catalog.failures

    async def show(self, name: str) -> ModelDetails:
        """Return everything about one model. Raises ModelNotFoundError, ModelUnavailableError, else a ModelError, and
        StorageError.
        """
        offer, _ = await self._router.find(name)
        return await self._details(offer)

    async def pull(self, name: str) -> AsyncGenerator[PullRow]:
        """Fetch a model; the last row is `finished`. Closing the generator stops it, and the next pull of the same
        model goes on where it was. Raises UsageError (no name of a model), RemoteRefusedError (a cloud model while
        `local_only`), ModelUnavailableError (no server that fetches), ModelNotFoundError, else a ModelError.
        """
        library, wanted = self._library(check_name(name))
        if self._limits.local_only and leaves_the_machine(wanted, {}):
            raise RemoteRefusedError(
                f"{wanted} is a cloud model: what you write would be sent elsewhere",
                hint="Fetch one without `cloud` in its name, or set `model.local_only: false`.",
            )
        meter = PullMeter(wanted)
        row: PullRow | None = None
        async with aclosing(library.pull(wanted)) as steps:
            async for progress in steps:
                row = meter.row(progress, self._clock.monotonic())
                if progress.status == _DONE:
                    break
                yield row
        if row is None or row.status != _DONE:
            raise StreamBrokenError(
                f"the server ended without saying that {wanted} is there",
                hint="Fetch it again: that goes on where it was.",
            )
        self._discovery.hurry()
        yield msgspec.structs.replace(row, finished=True, seconds_left=None)

    async def remove(self, name: str) -> Removed:
        """Remove a model from its server's disk. Raises UsageError for one that cannot be removed (the stand-in, a
        server that removes none), ModelNotFoundError, ModelUnavailableError, else a ModelError.
        """
        offer, catalog = await self._router.find(name)
        info = offer.info
        if info.provider == EMBEDDED:
            raise UsageError(f"{info.name} is no model of a server: Rune runs it itself", hint=_OWN_FILE)
        if not isinstance(offer.transport, ModelLibrary):
            raise UsageError(
                f"{info.name} cannot be removed from here: its server ({info.provider}) knows no such thing",
                hint="Remove its file where that server keeps it.",
            )
        await offer.transport.remove(info.name)
        self._discovery.hurry()
        shared = _same_weights(info, catalog)
        return Removed(
            model=info.name, provider=info.provider, freed=0 if shared else info.size, shared_with=tuple(shared)
        )

    async def probe(self, name: str) -> AsyncGenerator[ProbeRow]:
        """Measure how a model acts better, and keep it. Closing the generator stops it, nothing is kept then. Raises
        what `show` and `Prober.probe` raise, and StorageUnavailableError.
        """
        offer, _ = await self._router.find(name)
        if self._limits.local_only and offer.info.remote:
            raise RemoteRefusedError(
                f"{offer.info.name} is not on this machine: the tasks of the probe would be sent elsewhere",
                hint="Set `model.local_only: false` to allow it.",
            )
        window = self._windows.choose(offer.info, self._limits.max_context, self._limits.memory())
        async with aclosing(self._prober.probe(offer.transport, offer.info, window.num_ctx)) as steps:
            async for step in steps:
                yield ProbeRow(
                    done=step.done,
                    total=step.total,
                    task=step.task,
                    protocol=step.protocol,
                    outcome=step.outcome,
                    kept=step.score.protocol if step.score is not None else None,
                )

    async def fix_protocol(self, name: str, protocol: ActionProtocol | None) -> ModelDetails:
        """Ask a model to act in this way from now on, whatever was measured; None: as was measured or guessed. Raises
        what `show` raises, and StorageUnavailableError.
        """
        offer, _ = await self._router.find(name)
        await self._scorecard.fix(offer.info, protocol)
        return await self._details(offer)

    def look_soon(self) -> None:
        """Have whoever listens to `arrivals` hear at once what has changed: a model or its server seems to be gone."""
        self._discovery.hurry()

    async def arrivals(self) -> AsyncGenerator[Arrivals]:
        """Give what can be asked now, then each change, as long as it is listened to. Begun after the first frame it
        adds nothing to that: a server that is down costs a refused connection.
        """
        before: Catalog | None = None
        async with aclosing(self._discovery.changes()) as changes:
            async for catalog in changes:
                yield await self._arrived(catalog, before)
                before = catalog

    async def _arrived(self, catalog: Catalog, before: Catalog | None) -> Arrivals:
        now, then = _real(catalog), _real(before) if before is not None else ()
        try:
            choice = await self._router.choose(
                requested=None, conversation_model=None, configured=self._limits.configured or None
            )
            answers, stand_in = choice.info.name, is_stand_in(choice.info)
        except ModelError:  # why none would answer is said by whoever sends a message; here it is that none would
            answers, stand_in = "", False
        silent = len(catalog.failures)
        return Arrivals(
            first=before is None,
            models=catalog.names(),
            came=() if before is None else tuple(name for name in now if name not in then),
            went=tuple(name for name in then if name not in now),
            answers=answers,
            stand_in=stand_in,
            unseen=tuple(failure.message for failure in catalog.failures),
            serving=bool(now) or not silent,
        )

    async def _details(self, offer: Offer) -> ModelDetails:
        info = offer.info
        row = row_of(info, await in_memory(offer.transport), local_only=self._limits.local_only)
        choice = await self._scorecard.protocol_for(info)
        score = await self._scorecard.known(info)
        window = self._windows.expect(info, self._limits.max_context, self._limits.memory())
        return ModelDetails(
            row=msgspec.structs.replace(row, protocol=choice.protocol, protocol_basis=choice.basis),
            where=where_and_why(info),
            family=info.family,
            digest=info.digest,
            window=window.num_ctx,
            window_why=window.reason,
            protocol_why=choice.why,
            probe=score.probe if score else (),
            valid=score.valid if score else 0,
            repaired=score.repaired if score else 0,
            failed=score.failed if score else 0,
        )

    async def _acting(self, info: ModelInfo, row: ModelRow) -> ModelRow:
        if not can_chat(info):
            return row
        try:
            choice = await self._scorecard.protocol_for(info)
        except StorageError:  # the list is shown all the same; whoever asks for one model is told
            return row
        return msgspec.structs.replace(row, protocol=choice.protocol, protocol_basis=choice.basis)

    def _library(self, name: str) -> tuple[ModelLibrary, str]:
        """Return the server that fetches, and the name without that server's own in front of it."""
        libraries = self._router.libraries
        if not libraries:
            raise ModelUnavailableError("there is no model server that fetches models", hint=_NO_LIBRARY)
        for provider, library in libraries:
            if name.startswith(f"{provider}/"):
                return library, name.removeprefix(f"{provider}/")
        return libraries[0][1], name


def _real(catalog: Catalog) -> tuple[str, ...]:
    return tuple(offer.info.name for offer in catalog.offers if offer.info.provider != EMBEDDED)


def _same_weights(info: ModelInfo, catalog: Catalog) -> list[str]:
    return [
        offer.info.name
        for offer in catalog.offers
        if info.digest and offer.info.digest == info.digest and offer.info.name != info.name
    ]
