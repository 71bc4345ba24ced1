"""Following a screen's layout: where a widget is changes without its having changed."""

from collections.abc import Callable
from typing import cast

from textual.signal import Signal
from textual.widget import Widget


def when_laid_out(widget: Widget, callback: Callable[[object], None]) -> None:
    """Have `callback` called each time the mounted widget's screen has been laid out."""
    signal = cast(
        "Signal[object]",
        widget.screen.screen_layout_refresh_signal,  # pyright: ignore[reportUnknownMemberType]  # what it gives is open
    )
    signal.subscribe(widget, callback)
