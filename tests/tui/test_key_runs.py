"""Keys that were read together go on together, in order, and to a widget that takes no runs one by one."""

from textual.app import ComposeResult
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.widgets import Input

from rune.tui.key_runs import KeyRun, KeyRunApp, in_runs
from rune.tui.widgets.prompt import Prompt


def keys(text: str) -> list[Key]:
    names = {"\r": "enter", "\t": "tab", "\x1b": "escape"}
    return [Key(names.get(char, char), char) for char in text]


def told(messages: list[Message]) -> list[str]:
    return [
        "".join(key.character or "" for key in message.keys) if isinstance(message, KeyRun) else type(message).__name__
        for message in in_runs(messages)
    ]


class TwoInputs(KeyRunApp):
    def compose(self) -> ComposeResult:
        yield Prompt()
        yield Input()


def test_text_next_to_each_other_is_a_run_and_all_else_keeps_its_place() -> None:
    assert told([*keys("one\rtwo\t\x1bx\x1b"), Paste("p"), *keys("yz")]) == [
        "one\rtwo\t",
        "Key",
        "Key",
        "Key",
        "Paste",
        "yz",
    ]
    assert told([]) == []


async def test_a_run_goes_to_a_prompt_as_one_and_to_another_widget_as_keys() -> None:
    app = TwoInputs()
    async with app.run_test() as pilot:
        seen: list[Event] = []
        prompt = app.query_one(Prompt)
        prompt.message_signal.subscribe(app.query_one(Input), seen.append)  # type: ignore[arg-type]  # a signal of any event
        app.post_message(KeyRun(keys("ab")))
        await pilot.pause()
        assert prompt.text == "ab"
        assert [type(event) for event in seen if isinstance(event, Key | KeyRun)] == [KeyRun]
        app.query_one(Input).focus()
        await pilot.pause()
        app.post_message(KeyRun(keys("cd")))
        await pilot.pause()
        assert (prompt.text, app.query_one(Input).value) == ("ab", "cd")


async def test_without_a_terminal_nothing_waits() -> None:
    app = TwoInputs()
    async with app.run_test():
        assert not app.has_more_keys
