"""Keys act in the order in which they were pressed, also when many of them come at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from textual.events import Key

from rune.models.scripted import says
from rune.tui.key_runs import KeyRunApp, in_runs
from tests.tui.prompt_app import PromptApp
from tests.tui.stage import stage

# What a terminal's parser makes of DEL, ESC [ D, ESC [ 3 ~, NAK, ETB, SOH, VT, ETX.
NAMES: Final = {
    "\x7f": "backspace",
    "←": "left",
    "⌦": "delete",
    "\x15": "ctrl+u",
    "\x17": "ctrl+w",
    "\x01": "ctrl+a",
    "\x0b": "ctrl+k",
    "\x03": "ctrl+c",
    "\x04": "ctrl+d",
    "\x1a": "ctrl+z",
    "↑": "up",
    "\r": "enter",
    "\n": "ctrl+j",
    "→": "f4",
    "⇤": "f3",
}


def at_once(app: KeyRunApp, keys: str) -> None:
    """Give the app all keys of one read, as the driver does."""
    read: Sequence[Key] = [Key(NAMES.get(key, key), None if key in "←⌦↑→⇤" else key) for key in keys]
    for each in read:
        each.time = 1000.0
    for message in in_runs(read):
        app.post_message(message)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\x7f\x7fXY", "helXY"),
        ("abc←←XY", "aXYbc"),
        ("ab\x7fc\x7fd", "ad"),
        ("\x15/sessions", "/sessions"),
        ("one two\x17three", "one three"),
        ("bc\x01a", "abc"),
        ("abc←←\x0bX", "aX"),
        ("abc←⌦d", "abd"),
        ("gone\x03kept", "kept"),
        ("abc\x01\x04X", "Xbc"),
        ("a\nb↑X", "aX\nb"),
    ],
    ids=["backspace", "left", "one-by-one", "ctrl-u", "ctrl-w", "ctrl-a", "ctrl-k", "delete", "ctrl-c", "ctrl-d", "up"],
)
async def test_an_editing_key_acts_on_what_was_typed_before_it(keys: str, text: str) -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        at_once(app, keys)
        await pilot.pause(0.1)
        await pilot.pause()
        assert app.prompt.whole_text == text


async def test_what_is_sent_is_what_stood_there_when_enter_was_pressed() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        at_once(app, "hello\x7f\x7fp\r")
        await pilot.pause(0.3)
        assert app.sent == [("help", False)]
        assert app.prompt.text == ""


async def test_a_key_of_the_screen_acts_after_what_was_pressed_before_it(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        at_once(at.app, "name a river\r→below")
        await at.until(lambda: at.app.chat.prompts()["chat"] == "below", "what was typed after the key")
        assert at.app.chat.channel == "chat"
        desk = at.app.chat.desk
        assert desk is not None
        task = desk.talks["task"]
        await at.until(lambda: "The Rhine." in [getattr(each, "text", "") for each in task.transcript.entries])
        at_once(at.app, " and more⇤above")
        await at.until(lambda: at.app.chat.prompts() == {"task": "above", "chat": "below and more"}, "each its text")
