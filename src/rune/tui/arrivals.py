"""Has models that come and go seen while the app is open: what answers next changes in sight, never in silence."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from rune.errors import RuneError
from rune.surface.model_values import Arrivals
from rune.surface.models import Models
from rune.tui.talk import Model, Talk


class ArrivalWatch:
    """Looks on for `talks`; `front` gives the one before the person. Nothing is asked before it is begun."""

    def __init__(self, models: Models, talks: Sequence[Talk], front: Callable[[], Talk]) -> None:
        self._models = models
        self._talks = talks
        self._front = front
        self._offered: set[tuple[str, str]] = set()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look on from now on; a second time changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="watch for models")

    async def close(self) -> None:
        """Look on no longer."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        try:
            async with aclosing(self._models.arrivals()) as news:
                async for each in news:
                    await self._heed(each)
        except RuneError as error:
            self._lost(error.message, error.hint)
        except Exception as error:
            logging.getLogger(__name__).exception("watching for models ended")
            self._lost(f"a fault of Rune's own: {type(error).__name__}: {error}")

    def _lost(self, why: str, hint: str = "") -> None:
        self._front().tell(f"models that come and go are not seen any more: {why}", hint, tier=1)

    async def _heed(self, news: Arrivals) -> None:
        for talk in self._talks:
            if news.first and (talk.model is None or _real(talk.model)):
                continue  # it was looked for a moment ago
            if talk.busy:
                talk.stale_model = True  # it is looked for when the turn has ended
                continue
            before = talk.model
            await talk.look_for_model()
            if talk.conversation_id is not None or talk is self._front():
                self._tell(talk, before, news)

    def _tell(self, talk: Talk, before: Model | None, news: Arrivals) -> None:
        after = talk.model or Model()
        if _real(after):
            if before is None or before.name != after.name:
                gone = f"{before.name} is not there any more; " if before and before.name in news.went else ""
                leaves = "; it is remote: what you send leaves this machine" if after.remote else ""
                there = f"{after.name} answers from the next message on"
                talk.tell(f"{gone}{there}{leaves}" if gone else f"{after.name} is there now; {_rest(there)}{leaves}")
        elif before is not None and _real(before):
            if before.name in news.went and news.serving:
                answers = f"; {after.name} answers meanwhile" if after.name else ""
                talk.tell(f"{before.name} is not there any more{answers}", "Ctrl+L chooses another.")
                return
            meanwhile = f"a small stand-in answers meanwhile: {after.name}" if after.name else "nothing can answer"
            why = f": {news.unseen[0]}" if news.unseen else ""
            talk.tell(f"{before.name} cannot be asked now{why}; {meanwhile}", "It is used again when it is back.")
        elif talk.conversation_id is not None and after.stand_in and news.answers and not news.stand_in:
            offer = (talk.conversation_id, news.answers)
            if not news.first and offer not in self._offered:
                self._offered.add(offer)
                talk.tell(f"{news.answers} is there now", f"/model {news.answers} takes over from the stand-in.")


def _real(model: Model) -> bool:
    return bool(model.name) and not model.stand_in


def _rest(sentence: str) -> str:
    """Return a sentence with `it` for its first word, a name that was just said."""
    return f"it {sentence.split(' ', maxsplit=1)[1]}"
