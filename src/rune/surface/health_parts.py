"""The parts of Rune, a line each, as `/health` shows them."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from rune.errors import StorageError
from rune.surface.sizes import counted
from rune.surface.views import Views

PartState = Literal["ok", "recovered", "failing", "reading only", "not yet"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part: how it is, and what there is of it."""

    name: str
    state: PartState
    detail: str


class HealthParts:
    """Asks each part how it is. `slot` is what this process writes (None: it only reads), `refusal` why nothing can
    be written, `events` counts those that the views know.
    """

    def __init__(
        self,
        views: Views,
        *,
        slot: Callable[[], str | None],
        refusal: Callable[[], StorageError | None],
        events: Callable[[], Awaitable[int]],
    ) -> None:
        self._views = views
        self._slot = slot
        self._refusal = refusal
        self._events = events

    async def look(self) -> tuple[Part, ...]:
        """Return all parts. Raises nothing because one of them fails: that is its state."""
        return (*await self._stored(), await self._models(), _sandbox())

    async def _stored(self) -> tuple[Part, ...]:
        slot, why = self._slot(), self._refusal()
        try:
            events = counted(await self._events(), "event")
        except StorageError as error:
            views = Part(name="views", state="failing", detail=error.message)
            events = "how many events there are is not known"
        else:
            views = Part(name="views", state=self._state("views"), detail=f"{events} in step with the journal")
        if why is not None:
            return Part(name="journal", state="reading only", detail=why.message), views
        where = f"slot {slot}" if slot is not None else "open for reading"
        return Part(name="journal", state=self._state("journal"), detail=f"{where}, {events}"), views

    async def _models(self) -> Part:
        found, failures = await self._views.models()
        told = [failure.message for failure in failures]
        if not found:
            detail = "; ".join(told) or "there is no model"
            return Part(name="model server", state="failing", detail=detail)
        servers = ", ".join(dict.fromkeys(model.provider for model in found))
        detail = "; ".join([f"{counted(len(found), 'model')} ({servers})", *told])
        return Part(name="model server", state=self._state("model"), detail=detail)

    def _state(self, subsystem: str) -> PartState:
        row = next((row for row in self._views.health() if row.subsystem == subsystem), None)
        if row is None:
            return "ok"
        if row.healthy_since is None:
            return "failing"
        return "recovered" if row.recovered else "ok"


def _sandbox() -> Part:
    return Part(name="sandbox", state="not yet", detail="no tool runs anything yet")
