"""What takes long beside the talk: a model is fetched, or measured. Knows the surface and no widget."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from rune.errors import RuneError, UsageError
from rune.surface.model_list import bytes_text
from rune.surface.model_text import probe_line, probe_table, pull_line
from rune.surface.model_values import ProbeRow, PullRow
from rune.surface.models import Models
from rune.surface.results import ModelWork
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign
from rune.tui.hints import in_the_app
from rune.tui.talk import Talk

_DOES: Final = {"pull": "fetching", "probe": "measuring"}


class ModelErrands:
    """Does one at a time, and tells the talk that asked for it what came of it.

    `changed` is called on the event loop when one begins and when it ends; how far it is, is there to be looked at.
    """

    def __init__(self, models: Models, *, changed: Callable[[Talk], None]) -> None:
        self._models = models
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._row: PullRow | ProbeRow | None = None
        self.running: ModelWork | None = None

    def start(self, talk: Talk, work: ModelWork) -> None:
        """Begin it. Raises UsageError while another one is done: a server does them one after the other at best, and
        a measurement beside it would say nothing.
        """
        if self.running is not None:
            running = self.running
            raise UsageError(
                f"{running.model} is just being {'fetched' if running.kind == 'pull' else 'measured'}",
                hint="Wait for its end, or stop it with F8; this was not begun.",
            )
        self.running, self._row = work, None
        self._task = asyncio.create_task(self._do(talk, work), name=f"{work.kind} {work.model}")
        self._changed(talk)

    def stop(self) -> bool:
        """Stop what is done; False when there is nothing."""
        if self._task is None or self.running is None:
            return False
        self._task.cancel()
        return True

    async def close(self) -> None:
        """Stop what is done, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def line(self, cells: int) -> SafeText:
        """Return how far it is in at most so many cells; empty when nothing is done."""
        match self._row:
            case PullRow() as row:
                return pull_line(row, cells)
            case ProbeRow() as row:
                return foreign(f"{self.running.model if self.running else ''}  {probe_line(row)}", cells)
            case None:
                work = self.running
                return foreign(f"{_DOES[work.kind]} {work.model} ..." if work else "", cells)

    async def _do(self, talk: Talk, work: ModelWork) -> None:
        line = f"/model {work.kind} {work.model}"
        try:
            await (self._pull(talk, work) if work.kind == "pull" else self._probe(talk, work, line))
        except asyncio.CancelledError:
            self._stopped(talk, work)
            raise
        except RuneError as error:
            hint = in_the_app(error.hint)
            talk.output(line, f"{error.message}\n{hint}" if hint else error.message, ok=False)
        except Exception as error:
            logging.getLogger(__name__).exception("%s", line)
            talk.output(line, f"a fault of Rune's own: {type(error).__name__}: {error}", ok=False)
        finally:
            self.running, self._row = None, None
            self._changed(talk)

    def _stopped(self, talk: Talk, work: ModelWork) -> None:
        if work.kind == "pull":
            share = ""
            if isinstance(self._row, PullRow) and self._row.done is not None and self._row.total:
                share = f" at {int(100 * self._row.done / self._row.total)} %"
            talk.tell(f"fetching {work.model} was stopped{share}", f"/model pull {work.model} goes on from there.")
        else:
            talk.tell(f"measuring {work.model} was stopped; nothing of it is kept")

    async def _pull(self, talk: Talk, work: ModelWork) -> None:
        async with aclosing(self._models.pull(work.model)) as rows:
            async for row in rows:
                self._row = row
        done = self._row
        size = f", {bytes_text(done.total)}" if isinstance(done, PullRow) and done.total else ""
        talk.tell(f"{work.model} is fetched{size}", f"/model {work.model} or Ctrl+L chooses it.")

    async def _probe(self, talk: Talk, work: ModelWork, line: str) -> None:
        async with aclosing(self._models.probe(work.model)) as rows:
            async for row in rows:
                self._row = row
        details = await self._models.show(work.model)
        acts = f"{details.row.name} acts by the {details.row.protocol} protocol from now on"
        talk.output(line, f"{probe_table(details.probe)}\n\n{acts}", ok=True)
