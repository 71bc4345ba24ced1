"""Runs each turn as its own task and hands its events to whoever watches.

A turn belongs to the engine, not to the screen: a consumer that stops, sleeps or dies changes
nothing about the turn (architecture.md, The way of one turn).
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from rune.turn.events import TextDelta, ThinkingDelta, TurnClosed, TurnEvent
from rune.turn.flight import CancelToken

CAPACITY = 256
CLOSING_SECONDS = 2.0


class TurnStream:
    """A queue of one turn's events. When it is full, deltas are joined; nothing is dropped and the
    turn never waits for its consumer.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._events: deque[TurnEvent] = deque()
        self._ended = False
        self._failure: BaseException | None = None
        self._detached = False
        self._wake = asyncio.Event()

    def put(self, event: TurnEvent) -> None:
        """Queue an event, or join it with the last one when the queue is full."""
        if self._detached:
            return
        if len(self._events) >= self._capacity and (joined := _join(self._events[-1], event)) is not None:
            self._events[-1] = joined
        else:
            self._events.append(event)
        self._wake.set()

    def end(self, failure: BaseException | None = None) -> None:
        """Say that nothing follows; `failure` is raised to the consumer after what is queued."""
        self._ended = True
        self._failure = failure
        self._wake.set()

    async def events(self) -> AsyncGenerator[TurnEvent]:
        """Yield what comes until the end. Closing this early only detaches the consumer."""
        try:
            while True:
                while self._events:
                    yield self._events.popleft()
                if self._ended:
                    if self._failure is not None:
                        raise self._failure
                    return
                self._wake.clear()
                await self._wake.wait()
        finally:
            self._detached = True
            self._events.clear()


def _join(last: TurnEvent, new: TurnEvent) -> TurnEvent | None:
    match last, new:
        case TextDelta(), TextDelta():
            return TextDelta(turn_id=new.turn_id, text=last.text + new.text, pieces=last.pieces + new.pieces)
        case ThinkingDelta(), ThinkingDelta():
            return ThinkingDelta(turn_id=new.turn_id, text=last.text + new.text, pieces=last.pieces + new.pieces)
        case _:
            return None


class TurnEngine:
    """Owns the tasks of running turns."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[asyncio.Task[None], CancelToken]] = {}

    def start(
        self,
        turn_id: str,
        token: CancelToken,
        drive: Callable[[Callable[[TurnEvent], None]], Coroutine[Any, Any, TurnClosed]],
    ) -> TurnStream:
        """Start a turn; `drive` gets the function that shows events and returns the closing one."""
        stream = TurnStream()

        async def run() -> None:
            try:
                stream.put(await drive(stream.put))
            except BaseException as error:  # whatever it is, the consumer must see it instead of waiting for ever
                stream.end(error)
                if not isinstance(error, Exception):
                    raise
            else:
                stream.end()
            finally:
                self._running.pop(turn_id, None)

        self._running[turn_id] = (asyncio.create_task(run(), name=f"turn {turn_id}"), token)
        return stream

    def cancel(self, turn_id: str) -> bool:
        """Ask a turn to stop; False when it is not running."""
        entry = self._running.get(turn_id)
        if entry is None:
            return False
        entry[1].cancel()
        return True

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of the turns that run now."""
        return tuple(self._running)

    async def close(self) -> bool:
        """Cancel every turn and wait for their closing writes; False when some did not end in time."""
        for _, token in self._running.values():
            token.cancel()
        tasks = [task for task, _ in self._running.values()]
        if not tasks:
            return True
        _, late = await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
        return not late
