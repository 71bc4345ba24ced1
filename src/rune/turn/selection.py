"""Which model answers a turn, and with which window."""

import asyncio
from collections.abc import Awaitable, Callable

from rune.config.settings import Settings
from rune.context.budget import MIN_WINDOW
from rune.context.window import WindowBook
from rune.errors import ModelError, StorageError
from rune.models.router import Choice, Router
from rune.models.transport import ModelInfo
from rune.models.truncation import was_cut
from rune.records.models import ActionProtocol
from rune.turn.failures import TurnFailures
from rune.turn.flight import CallCounts, Flight, ModelRun
from rune.turn.model_health import ModelHealth
from rune.turn.outcome import Outcome

PATIENCE_SECONDS = 1.0

# How a model asks for tools. It raises nothing: what cannot be looked up is guessed, and no turn fails for it.
ProtocolFor = Callable[[ModelInfo], Awaitable[ActionProtocol]]
# Adds one turn's calls, of which there may be none, to what is known of a model. Raises StorageError.
CountCalls = Callable[[ModelInfo, CallCounts], Awaitable[None]]


async def _native(info: ModelInfo) -> ActionProtocol:
    del info
    return "native"


class ModelSelection:
    """Chooses through the router, and fixes the window once for each model. `protocol` says how one asks for tools,
    `count` is told how its calls came out.
    """

    def __init__(
        self,
        *,
        router: Router,
        windows: WindowBook,
        memory: Callable[[], int | None],
        failures: TurnFailures,
        protocol: ProtocolFor = _native,
        count: CountCalls | None = None,
    ) -> None:
        self._router = router
        self._windows = windows
        self._memory = memory
        self._failures = failures
        self._protocol = protocol
        self._count = count
        self._health = ModelHealth(failures)
        self._checked: set[str] = set()

    async def choose(self, *, requested: str | None, conversation_model: str, settings: Settings) -> ModelRun:
        """Return the model for a turn. Raises the ModelError that says why there is none: the turn's end, which
        `landed` is told.
        """
        choice = await self._router.choose(
            requested=requested,
            conversation_model=conversation_model or None,
            configured=settings.model.name or None,
        )
        self._health.found()
        window = self._windows.choose(choice.info, settings.context.max_context, self._memory())
        if not window.discovered:
            failure = ModelError(
                f"{choice.info.name}: its server does not say how large its window is; using {window.num_ctx:,}"
            )
            self._failures.degraded("context_discovery", failure)
        if window.problem:
            self._failures.degraded("window_file", ModelError(window.problem))
        return ModelRun(
            transport=choice.transport,
            info=choice.info,
            num_ctx=window.num_ctx,
            protocol=await self._protocol(choice.info),
            notice=choice.notice,
            stand_in=choice.reason == "embedded_stand_in",
        )

    async def expect(self, *, requested: str | None, conversation_model: str, configured: str) -> ModelInfo:
        """Return what `choose` would choose now, without choosing a window for it. Raises as that does."""
        return (await self._looked(requested, conversation_model, configured)).info

    async def find(self, name: str) -> ModelInfo:
        """Return the model that a person means, when it may answer as things are set.

        Raises ModelNotFoundError, RemoteRefusedError, CapabilityMissingError, ModelUnavailableError.
        """
        return (await self._looked(name, "", "")).info

    def landed(self, flight: Flight, outcome: Outcome) -> None:
        """Take in how a turn's work ended: whether the model answered, or failed."""
        self._health.landed(flight, outcome)

    async def _looked(self, requested: str | None, conversation_model: str, configured: str) -> Choice:
        try:
            choice = await self._router.choose(
                requested=requested, conversation_model=conversation_model or None, configured=configured or None
            )
        except ModelError as error:
            self._health.missing(error, named=bool(requested))
            raise
        self._health.found()
        return choice

    async def afterwards(self, flight: Flight) -> str:
        """Take in, once a turn's end is written, what its calls show of the model; returns what to tell the person."""
        run = flight.model
        if run is None:
            return ""
        if self._count is not None:
            try:
                await self._count(run.info, run.calls)
            except StorageError as error:
                self._failures.background("scorecard", error)
        if run.read is None and (flight.answer is None or not flight.answer.complete):
            # Nothing shows that the model is loaded.
            return ""
        return await self.check_window(run, flight.settings.context.max_context)

    async def check_window(self, run: ModelRun, max_context: int) -> str:
        """Compare once, after a model's first answer, the window in force with the one asked for.

        Returns what to tell the person when the server gave less, and that the answer, which is stored by then, may
        rest on part of its prompt; the smaller window holds from now on. A server that does not answer at once is
        asked again after the next answer: nobody waits for this.
        """
        key = f"{run.info.provider}/{run.info.name}"
        if key in self._checked:
            return ""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                served = await run.transport.window_in_force(run.info.name)
        except (ModelError, TimeoutError) as error:
            self._failures.background("context_discovery", error)
            return ""
        self._checked.add(key)
        if served is None or served >= run.num_ctx:
            return ""
        if served < MIN_WINDOW:
            # Kept, so small a number would end every conversation with this model.
            odd = ModelError(f"the server says that {run.info.name} has a window of {served:,} tokens; ignored")
            self._failures.degraded("context_discovery", odd)
            return ""
        self._windows.lower(run.info, served, max_context)
        lowered = (
            f"{run.info.name} was loaded with a window of {served:,} tokens instead of {run.num_ctx:,}; "
            "the smaller one counts from now on"
        )
        if run.read is None or not was_cut(run.estimated, run.read, served):
            return lowered
        return (
            f"{lowered}. The prompt of this answer was most likely cut: about {run.estimated:,} tokens were sent, "
            f"{run.read:,} were read"
        )
