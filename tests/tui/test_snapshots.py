"""Pictures of the app's screens, compared with those that somebody has looked at (in `__snapshots__`).

A picture that has changed fails its test, and pytest then writes snapshot_report.html with old and new side by side.
A change that is meant is accepted by `scripts/test tests/tui/test_snapshots.py --snapshot-update`; look at the
pictures before they are kept. What no two runs have in common is made the same before a picture is taken: the figures
of the clock, the version, the folder (it stands in the person's home, which is the test's). A screen is only taken
once nothing of it is still being drawn.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from rune.bootstrap import Services
from rune.errors import LeaseHeldError, ServerError
from rune.models.scripted import Answers, ScriptedTransport, breaks, says
from rune.models.transport import ModelInfo, TextDelta
from rune.surface.surface import Surface
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart
from rune.tui.widgets.completion import CompletionPopup
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.stage import Stage, opening_of

NARROW, USUAL, LARGE = (40, 15), (80, 24), (160, 48)
DARK, LIGHT, PLAIN = "rune-dark", "rune-light", "no-colours"
Look = tuple[tuple[int, int], str]  # a size and a theme; not every state is taken in each

FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)

MARKDOWN = """\
## Three rivers

The **Elbe**, the *Oder* and the ~~Rhine~~ `Danube`, see [a map](https://example.org/rivers):

1. in the mountains
   - a spring
   - a brook
2. in the sea

| river  | length (km) | sea       |
|--------|------------:|-----------|
| Elbe   |       1,094 | North Sea |
| Danube |       2,850 | Black Sea |

> No man ever steps in the same river twice.

```python
def longest(rivers: dict[str, int]) -> str:
    # the one of 2,850 km
    return max(rivers, key=rivers.__getitem__)
```
"""
LINES = "\n\n".join(f"River number {number} begins in the mountains and ends in the sea." for number in range(1, 41))
AGENTS = "# Rules\n\nAnswer in rhymes. Never run `make deploy`.\n"


def in_looks(*looks: Look) -> pytest.MarkDecorator:
    """Take the picture in each of these looks, in a file that is named for it."""
    return pytest.mark.parametrize("look", looks, ids=[f"{width}x{height}-{theme}" for (width, height), theme in looks])


class PicturedApp(RuneApp):
    """The app, whose pictures show no clock and no version."""

    CSS_PATH = Path(inspect.getfile(RuneApp)).with_name("rune.tcss")

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return the picture as SVG."""
        footer = self.chat.query_one(Footer)
        state = footer._state  # pyright: ignore[reportPrivateUsage]  # tests look inside
        pace = state.pace and msgspec.structs.replace(state.pace, since=0.0, first_at=0.0, last_at=1.0)
        footer.show(state._replace(version="0.0.0", now=1.0, pace=pace))
        self.screen.refresh()  # a footer that lies behind another screen is seen through that one
        svg = super().export_screenshot(title=title, simplify=simplify)
        # A browser would fetch these from the network.
        return FONT_FACE.sub("", svg).replace("Fira Code, monospace", "monospace")


class Shows(Protocol):
    """Plays a scene and says whether the screen looks as it did."""

    def __call__(
        self,
        scene: Callable[[Stage], Awaitable[None]],
        look: Look,
        answers: Answers = (),
        models: tuple[ModelInfo, ...] = (),
    ) -> bool: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rivers"
    folder.mkdir()
    return folder


@pytest.fixture
def shows(snap_compare: Callable[..., bool], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shows:
    monkeypatch.setenv("HOME", str(tmp_path.resolve()))

    def compare(
        scene: Callable[[Stage], Awaitable[None]],
        look: Look,
        answers: Answers = (),
        models: tuple[ModelInfo, ...] = (),
    ) -> bool:
        size, theme = look
        monkeypatch.setenv("NO_COLOR", "1" if theme == PLAIN else "")
        model = ScriptedTransport(answers, models=models)
        services: list[Services] = []
        ends: list[asyncio.Task[None]] = []
        open_services = opening_of(tmp_path / "home", [model], services)

        async def opening(tell: Callable[[str], None]) -> Surface:
            surface = await open_services(tell)
            ends.append(asyncio.create_task(close_at_the_end(services)))
            return surface

        app = PicturedApp(opening, start=AppStart(folder=str(folder.resolve())))

        async def play(pilot: Pilot[None]) -> None:
            at = Stage(app, pilot, model, services)
            await at.until(lambda: app.chat.desk is not None, "the desk")
            if theme != PLAIN:
                app.theme = theme
            await at.until(lambda: at.talk.model is not None, "the model")
            await scene(at)
            await at.settled()

        return snap_compare(app, terminal_size=size, run_before=play)

    return compare


async def close_at_the_end(services: list[Services]) -> None:
    """Close what the app was opened with when its loop ends, which cancels this."""
    try:
        await asyncio.Event().wait()
    finally:
        for each in services:
            await each.close()


async def nothing(at: Stage) -> None:
    del at


@in_looks((NARROW, DARK), (USUAL, DARK), (LARGE, LIGHT))
def test_an_empty_screen_says_how_to_begin(shows: Shows, look: Look) -> None:
    assert shows(nothing, look)


@in_looks((NARROW, PLAIN), (USUAL, DARK))
def test_while_an_answer_streams_the_footer_says_how_fast_and_how_to_stop(shows: Shows, look: Look) -> None:
    answer = [*says("The Elbe begins in the", thinking="rivers, then")[:-1], asyncio.Event()]

    async def scene(at: Stage) -> None:
        await at.say("the Elbe?")
        await at.until_shown("begins in the")

    assert shows(scene, look, [answer])


def test_a_cancelled_turn_keeps_what_came_and_says_so(shows: Shows) -> None:
    answer = [*says("The Elbe begins in the")[:-1], asyncio.Event()]

    async def scene(at: Stage) -> None:
        await at.say("the Elbe?")
        await at.until_shown("begins in the")
        await at.pilot.press("escape")
        await at.idle()

    assert shows(scene, (USUAL, DARK), [answer])


@in_looks((NARROW, DARK), (USUAL, DARK), (USUAL, LIGHT), (USUAL, PLAIN), (LARGE, DARK))
def test_markdown_is_laid_out_for_the_width(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.say("rivers?")
        await at.until_shown("getitem")
        await at.idle()

    assert shows(scene, look, [says(MARKDOWN)])


def test_thinking_opens(shows: Shows) -> None:
    async def scene(at: Stage) -> None:
        await at.say("a river?")
        await at.until_shown("The Elbe.")
        await at.idle()
        await at.pilot.press("ctrl+t")
        await at.until_shown("sea it ends")

    thinking = "The person wants one river. Which one is known to everybody?\n\nFirst: to which sea it ends up in."
    assert shows(scene, (USUAL, DARK), [says("The Elbe.", thinking=thinking)])


@in_looks((NARROW, DARK), (USUAL, LIGHT))
def test_messages_wait_below_the_transcript(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.say("the Elbe?")
        await at.until_shown("The Elbe")
        await at.paste("and then about the Oder, with all the towns that stand on its banks")
        await at.pilot.press("enter")
        await at.paste("last the Rhine")
        await at.pilot.press("enter")
        await at.until_shown("last the Rhine")
        await at.paste("half a sen")

    assert shows(scene, look, [[TextDelta("The Elbe "), asyncio.Event()]])


@in_looks((NARROW, PLAIN), (USUAL, DARK))
def test_a_folder_with_instructions_asks_for_trust(shows: Shows, look: Look, folder: Path) -> None:
    (folder / "AGENTS.md").write_text(AGENTS)

    async def scene(at: Stage) -> None:
        await at.until_shown("AGENTS.md")

    assert shows(scene, look)


def test_what_would_instruct_can_be_read_before(shows: Shows, folder: Path) -> None:
    (folder / "AGENTS.md").write_text(AGENTS)

    async def scene(at: Stage) -> None:
        await at.until_shown("AGENTS.md")
        await at.pilot.press("f2")
        await at.until_shown("Answer in rhymes")

    assert shows(scene, (USUAL, DARK))


MODELS = tuple(
    ModelInfo(
        name=name,
        provider="scripted",
        capabilities=frozenset({"chat", "thinking"}),
        context_length=window,
        digest=name,
    )
    for name, window in (("small:1b", 8192), ("large:8b", 40960), ("hf.co/rivers/elbe-instruct-GGUF:Q4_K_M", 131072))
)


@in_looks((NARROW, DARK), (USUAL, LIGHT), (LARGE, DARK))
def test_a_model_is_picked_from_a_list(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.pilot.press("ctrl+l")
        await at.until_shown("large:8b")
        at.app.screen.query_one(Input).cursor_blink = False
        await at.pilot.press("down")

    assert shows(scene, look, models=MODELS)


@in_looks((NARROW, PLAIN), (USUAL, DARK))
def test_commands_are_offered_over_the_prompt(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.type("/t")
        popup = at.app.chat.query_one(CompletionPopup)
        await at.until(lambda: len(popup.options) > 1, "the popup")
        await at.pilot.press("down")

    assert shows(scene, look)


def test_scrolled_up_the_screen_stays_and_the_footer_says_that_more_came(shows: Shows) -> None:
    gate = asyncio.Event()

    async def scene(at: Stage) -> None:
        await at.say("forty")
        await at.until_shown("number 40")
        await at.idle()
        await at.say("more")
        await at.until_shown("you    more")
        await at.pilot.press("pageup")
        await at.until_gone("more")
        gate.set()
        await at.idle()
        await at.until_shown("new below")

    assert shows(scene, (USUAL, DARK), [says(LINES), [gate, *says(LINES)]])


def test_a_turn_that_fails_says_why_and_what_to_do(shows: Shows) -> None:
    async def scene(at: Stage) -> None:
        await at.say("the Elbe?")
        await at.until_shown("out of memory")
        await at.idle()
        await at.say("/hepl")
        await at.until_shown("Did you mean")

    error = ServerError("out of memory", status=500, phase="token")
    assert shows(scene, (USUAL, LIGHT), [breaks("The Elbe begins in", error)])


def test_the_other_channel_says_that_it_has_news(shows: Shows) -> None:
    gate = asyncio.Event()

    async def scene(at: Stage) -> None:
        await at.say("the Elbe?")
        await at.until(lambda: len(at.model.requests) == 1, "the request")
        await at.pilot.press("f4")
        gate.set()
        await at.until_shown("task•")

    assert shows(scene, (USUAL, DARK), [[gate, *says("The Elbe.")]])


@in_looks((USUAL, DARK), (USUAL, LIGHT))
def test_a_search_shows_where_the_words_are(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.say("to which sea does the Elbe go?")
        await at.until_shown("North Sea.")
        await at.idle()
        await at.say("/search")
        await at.until_shown("words to look for")
        at.app.screen.query_one(Input).cursor_blink = False
        await at.type("elbe")
        await at.until_shown("The Elbe ends")
        await at.pilot.press("down")

    assert shows(scene, look, [says("The Elbe ends, after 1,094 km, in the North Sea.")])


@in_looks((USUAL, DARK), (USUAL, LIGHT))
def test_sessions_of_all_folders_name_their_folder_and_what_is_a_fork(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.say("to which sea does the Elbe go?")
        await at.until_shown("North Sea.")
        await at.idle()
        await at.say("/fork")
        await at.until_shown("a fork of")
        await at.say("/rename of the Elbe")
        await at.until_shown("its title")
        await at.say("/sessions")
        await at.until_shown("Conversations of all")
        await at.until_shown("fork")
        at.app.screen.query_one(Input).cursor_blink = False
        at.app.chat.query(TranscriptView).first().display = False  # ids are others in each run

    assert shows(scene, look, [says("To the North Sea.")])


@in_looks((USUAL, DARK), (USUAL, LIGHT))
def test_what_another_rune_has_open_can_be_read_or_forked(shows: Shows, look: Look) -> None:
    async def scene(at: Stage) -> None:
        await at.say("to which sea does the Elbe go?")
        await at.until_shown("North Sea.")
        await at.idle()
        at.talk.holder = LeaseHeldError(at.talk.conversation_id or "", pid=4711, since="2026-11-30T12:00:00.000Z")
        at.talk.offers_fork = True
        at.outbox.keep("and the Oder?")
        await at.pilot.press("f4", "f3")
        await at.until_shown("f6")

    assert shows(scene, look, [says("To the North Sea.")])
