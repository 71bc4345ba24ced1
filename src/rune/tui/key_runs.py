"""Keys that come faster than they can be looked at one by one, handed over as one event.

A paste that comes as keys is tens of thousands of them. To send each through the app to a widget takes longer than to
read it, and while that goes on nothing is painted. So what the input thread reads is gathered, and what is there when
the app gets to it goes on as one `KeyRun` to a widget that takes such runs.
"""

import os
import select
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from time import monotonic
from typing import Final, cast

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event, Key
from textual.message import Message
from textual.widget import Widget

from rune.tui.terminal_keys import typed_character

_READ_BYTES: Final = 4096
_WAIT_SECONDS: Final = 0.1


class KeyRun(Event, bubble=False):
    """Keys in the order in which they were read, at least two. Each is text, Enter or Tab, and knows its time."""

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self.keys = keys


class TakesKeyRuns:
    """A widget that has a handler of its own for `KeyRun`, and acts itself on every key that is bound to something:
    one that acted before it came to the widget would act before what was typed earlier.
    """


class GatheringDriver(LinuxDriver):
    """Textual's own, but for how what was read goes on to the app: all that one read brought at once.

    Keys of one read have one time, and so have those of reads between which the terminal never had to be waited for:
    they came together, however long it took to look at them.
    """

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]  # any app
        self._lock = threading.Lock()
        self._gathered: list[Message] = []
        self._reads = False

    @property
    def has_more(self) -> bool:
        """Whether there is input that the app was not given yet. To be asked on the app's thread."""
        return self._reads or bool(self._gathered) or self._is_ready(0)

    def run_input_thread(self) -> None:
        """Read until the app ends. Called on a thread of its own."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        at = monotonic()
        while not self.exit_event.is_set():
            if not self._reads and self._is_ready(_WAIT_SECONDS):
                at = monotonic()
                self._reads = True
            if self._reads:
                data = os.read(self.fileno, _READ_BYTES)
                if not data:
                    return  # the terminal is gone
                self._take(parser.feed(decode(data)), at)
            self._take(parser.tick(), monotonic())
            self._reads = self._reads and self._is_ready(0)

    def send_message(self, message: Message) -> None:
        """Gather what is on its way to the app."""
        with self._lock:
            first = not self._gathered
            self._gathered.append(message)
        if first:
            self._loop.call_soon_threadsafe(self._hand_over)

    def _take(self, messages: Iterable[Message], at: float) -> None:
        for message in list(messages):
            message.time = at
            self.process_message(message)

    def _is_ready(self, seconds: float) -> bool:
        return bool(select.select([self.fileno], [], [], seconds)[0])

    def _hand_over(self) -> None:
        with self._lock:
            gathered, self._gathered = self._gathered, []
        for message in in_runs(gathered):
            self._app.post_message(message)


class KeyRunApp(App[None]):
    """An app that hands runs of keys on. To be the class above an app of Rune's."""

    def get_driver_class(self) -> type[Driver]:
        """Return the driver that gathers keys, where the terminal is one that it can read."""
        found = super().get_driver_class()
        return GatheringDriver if found is LinuxDriver else found

    @property
    def has_more_keys(self) -> bool:
        """Whether there is input that the app was not given yet."""
        return isinstance(self._driver, GatheringDriver) and self._driver.has_more

    async def on_event(self, event: Event) -> None:
        """Give keys to the widget in front as they came: to one that takes no runs one by one, as Textual does."""
        widget = self.focused if isinstance(event, Key | KeyRun) and not event.is_forwarded else None
        if isinstance(widget, TakesKeyRuns):
            if not self.app_focus:
                self.app_focus = True
            # Marked as given: a key that means nothing to the widget comes back up to here.
            event._set_forwarded()  # pyright: ignore[reportPrivateUsage]  # there is no public way
            widget.post_message(event)
        elif isinstance(event, KeyRun):
            for key in event.keys:
                await super().on_event(key)
        else:
            await super().on_event(event)


def more_waits(widget: Widget) -> bool:
    """Say whether there is input that the widget's app was not given yet."""
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]  # of any type there
    return isinstance(app, KeyRunApp) and app.has_more_keys


async def act_on(widget: Widget, key: str) -> bool:
    """Do what a key is bound to in a widget or around it; False when it is bound to nothing.

    For the widget's handler of keys: once a key has come back to the app, what was typed after it is in the text.
    """
    bound = widget.screen.active_bindings.get(key)
    app = cast("App[object]", widget.app)  # pyright: ignore[reportUnknownMemberType]  # of any type there
    return bound is not None and await app.run_action(bound.binding.action, bound.node)


def in_runs(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages in order, keys that are text next to each other as one run."""
    for is_text, group in groupby(messages, _is_text):
        found = list(group)
        if is_text and len(found) > 1:
            yield KeyRun(cast("list[Key]", found))
        else:
            yield from found


def _is_text(message: Message) -> bool:
    return isinstance(message, Key) and (message.key in ("enter", "tab") or typed_character(message) is not None)
