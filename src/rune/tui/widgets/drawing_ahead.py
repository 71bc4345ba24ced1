"""Drawing what lies round the window while nothing else is to do, so that it is there when somebody scrolls."""

import time
from collections.abc import Callable, Iterator
from typing import Final

from textual.timer import Timer
from textual.widget import Widget

SLICE_SECONDS: Final = 0.004  # of drawing ahead at a time,
PAUSE_SECONDS: Final = 0.025  # and what others have in between


class DrawingAhead:
    """Goes through an iterator that says at each step whether it drew, for a moment at a time, on the timers of
    `widget`. `drew` is called after each moment in which something was drawn; it may call `begin`.
    """

    def __init__(self, widget: Widget, drew: Callable[[], None]) -> None:
        self._widget = widget
        self._drew = drew
        self._steps: Iterator[bool] | None = None
        self._stirred = False
        self._pause: Timer | None = None

    @property
    def busy(self) -> bool:
        """Whether something is still to be drawn."""
        return self._pause is not None

    def begin(self, steps: Iterator[bool]) -> None:
        """Go through these from now on; not at once, as something else was just to do."""
        self._steps, self._stirred = steps, True
        self._wait()

    def rest(self) -> None:
        """Draw nothing more."""
        self._steps = None
        if self._pause is not None:
            self._pause.stop()
            self._pause = None

    def _wait(self) -> None:
        if self._pause is None:
            self._pause = self._widget.set_timer(PAUSE_SECONDS, self._slice)

    def _slice(self) -> None:
        """Draw for a moment, unless something else was just to do."""
        self._pause = None
        if self._steps is None:
            return
        ends = time.perf_counter() + SLICE_SECONDS
        steps, drew, stirred = self._steps, False, self._stirred
        self._stirred = False
        done = False
        while not stirred and not done and time.perf_counter() < ends:
            step = next(steps, None)
            done = step is None
            drew = drew or bool(step)
        if drew:
            self._drew()
            self._stirred = False
        if done:
            self.rest()
        else:
            self._steps = steps
            self._wait()
