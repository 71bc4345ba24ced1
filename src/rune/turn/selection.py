"""Which model answers a turn, and with which window."""

import asyncio
from collections.abc import Awaitable, Callable

from rune.config.settings import Settings
from rune.context.budget import MIN_WINDOW
from rune.context.window import WindowBook
from rune.errors import ModelError
from rune.models.router import Choice, Router
from rune.models.transport import ModelInfo
from rune.records.models import ActionProtocol
from rune.turn.failures import TurnFailures
from rune.turn.flight import Flight, ModelRun
from rune.turn.model_health import ModelHealth
from rune.turn.outcome import Outcome

PATIENCE_SECONDS = 1.0

# How a model asks for tools. It raises nothing: what cannot be looked up is guessed, and no turn fails for it.
ProtocolFor = Callable[[ModelInfo], Awaitable[ActionProtocol]]


async def _native(info: ModelInfo) -> ActionProtocol:
    del info
    return "native"


class ModelSelection:
    """Chooses through the router, and fixes the window once for each model. `protocol` says how one asks for tools."""

    def __init__(
        self,
        *,
        router: Router,
        windows: WindowBook,
        memory: Callable[[], int | None],
        failures: TurnFailures,
        protocol: ProtocolFor = _native,
    ) -> None:
        self._router = router
        self._windows = windows
        self._memory = memory
        self._failures = failures
        self._protocol = protocol
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

    async def check_window(self, run: ModelRun, max_context: int) -> str:
        """Compare once, after a model's first answer, the window in force with the one asked for.

        Returns what to tell the person when the server gave less; the smaller one holds from now on. A
        server that does not answer at once is asked again after the next answer: nobody waits for this.
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
        return (
            f"{run.info.name} was loaded with a window of {served:,} tokens instead of {run.num_ctx:,}; "
            "the smaller one counts from now on"
        )
