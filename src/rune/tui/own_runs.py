"""What the person runs by themselves (`!cmd`) beside the talk: one at a time in each channel. Knows no widget."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rune.errors import RuneError
from rune.surface.surface import Surface
from rune.tui.entries import ToolCard
from rune.tui.flushes import Flushes
from rune.tui.hints import in_the_app
from rune.tui.talk import Talk
from rune.tui.transcript_state import own_changed, told
from rune.turn.own_commands import OwnCommandResult

_OF_A_FAULT: Final = "a fault of Rune's own: "


class OwnRuns:
    """Runs in `folder`. `changed` is called on the event loop when one begins and when it ends."""

    def __init__(self, surface: Surface, folder: str, *, changed: Callable[[Talk], None]) -> None:
        self._surface = surface
        self._folder = folder
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.running: Talk | None = None

    def start(self, talk: Talk, command: str) -> None:
        """Run a command and show it in `talk`; that it cannot be run is shown too."""
        if self.running is not None:
            talk.output(
                f"!{command}", "a command of yours runs already: wait for its end, or stop it with Esc", ok=False
            )
            return
        self.running, self._stop = talk, asyncio.Event()
        self._task = asyncio.create_task(self._run(talk, command), name="own command")

    def stop(self) -> bool:
        """Stop what runs; False when there is nothing."""
        if self.running is None:
            return False
        self._stop.set()
        return True

    async def close(self) -> None:
        """Stop what runs, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, talk: Talk, command: str) -> None:
        key = talk.new_key()
        now = asyncio.get_running_loop().time()
        card = ToolCard(key=key, call_id=key, name="", effect=command, state="running", since=now, own=True)
        talk.transcript = told(talk.transcript, card)

        def show(texts: list[str]) -> None:
            talk.transcript = own_changed(talk.transcript, key, {"output": texts[-1]})
            talk.changed()

        shown: Flushes[str] = Flushes(show)
        talk.changed()
        self._changed(talk)
        try:
            result = await self._ran(talk, command, shown.put)
        except asyncio.CancelledError:
            self._end(talk, key, shown, {"state": "cancelled"})
            raise
        except RuneError as error:
            self._end(
                talk, key, shown, {"state": "failed", "summary": f"{error.message} {in_the_app(error.hint)}".strip()}
            )
        except Exception as error:
            logging.getLogger(__name__).exception("own command")
            self._end(talk, key, shown, {"state": "failed", "summary": f"{_OF_A_FAULT}{type(error).__name__}: {error}"})
        else:
            self._end(talk, key, shown, _fields(result))

    async def _ran(self, talk: Talk, command: str, show: Callable[[str], None]) -> OwnCommandResult:
        identity = talk.conversation_id
        # What cannot be written down runs all the same: it is the person's own.
        kept = identity is not None and self._surface.operator.holds(identity) and self._surface.refusal() is None
        return await self._surface.own_commands.run(
            command,
            folder=Path(self._folder),
            conversation_id=identity if kept else None,
            on_output=show,
            stop=self._stop,
        )

    def _end(self, talk: Talk, key: str, shown: Flushes[str], fields: dict[str, object]) -> None:
        shown.flush()
        talk.transcript = own_changed(talk.transcript, key, fields | {"since": None})
        self.running = None
        talk.changed()
        self._changed(talk)


def _fields(result: OwnCommandResult) -> dict[str, object]:
    states = {"ok": "done", "failed": "failed", "cancelled": "cancelled"}
    return {
        "effect": result.command,
        "state": states.get(result.outcome, "failed"),
        "milliseconds": result.milliseconds,
        "summary": "; ".join(result.notes) if result.exit_code is not None else result.summary,
        "output": result.text,
        "kept": result.output is not None and len(result.notes) > 0,
        "exit_code": result.exit_code,
    }
