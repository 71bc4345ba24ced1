"""The app's screens, compared with pictures of them (pictures.py says how)."""

import asyncio
from pathlib import Path

from textual.widgets import Input

from rune.errors import LeaseHeldError, ServerError
from rune.models.scripted import breaks, says
from rune.models.transport import ModelInfo, TextDelta
from rune.tui.widgets.completion import CompletionPopup
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.pictures import DARK, LARGE, LIGHT, NARROW, PLAIN, USUAL, Look, Shows, in_looks
from tests.tui.stage import Stage

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
