"""Where one is in the app: which conversation, which message of it, and that what was stored is still there."""

import shutil
from pathlib import Path

from rune.models.scripted import says
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.stage import Stage, said, stage


async def answered(at: Stage, text: str) -> None:
    asked = len(at.model.requests)
    await at.say(text)
    await at.until(lambda: len(at.model.requests) > asked, "the request")
    await at.idle()


def header(at: Stage) -> str:
    return at.text().splitlines()[0]


def top(at: Stage) -> str:
    """Return the first line of the transcript that is seen."""
    return at.text().splitlines()[1]


def marked(at: Stage) -> str:
    """Return the line of the transcript that is marked, "" for none."""
    strips = at.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
    lines = ["".join(part.text for part in strip if part.style and part.style.reverse).strip() for strip in strips[1:]]
    # The cursor of the prompt is reversed too, and one cell wide.
    return next((each for each in lines if len(each) > 1), "")


async def test_a_message_that_was_found_is_gone_to_and_marked_until_one_types(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("yes\n\n" * 30), size=(80, 24)) as at:
        await said(at, "the Rhine?", "yes")
        for river in ("Oder", "Elbe", "Main"):
            await answered(at, f"the {river}?")
        await at.say("/search rhine")
        await at.until_shown("Search", "the Rhine?")
        await at.settled()
        await at.pilot.press("enter")
        await at.until(lambda: "the Rhine?" in marked(at), "the mark")
        assert "the Rhine?" in top(at)
        assert not at.app.chat.query_one(TranscriptView).following
        await at.type("x")
        await at.until(lambda: not marked(at), "the end of the mark")
        assert "the Rhine?" in top(at)


async def test_a_hit_in_what_a_fork_shares_opens_where_it_was_said(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("yes\n\n" * 30)) as at:
        identity = await said(at, "the Rhine?", "yes")
        await answered(at, "the Oder?")
        await at.say("/fork")
        await at.until(lambda: at.talk.conversation_id != identity, "the fork")
        await at.say("/search rhine")
        await at.until_shown("Search", "the Rhine?")
        await at.settled()
        await at.pilot.press("enter")
        await at.until(lambda: "the Rhine?" in marked(at), "the mark")
        assert at.talk.conversation_id == identity


async def test_the_header_says_which_conversation_and_of_which_other_folder(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")], folder=tmp_path / "elsewhere", size=(160, 24)) as at:
        assert "name a river" not in header(at)
        await said(at, "name a river", "The Rhine.")
        await at.until(lambda: "name a river" in header(at), "the title")
        await at.say("/rename Old rivers")
        await at.until(lambda: "Old rivers" in header(at), "the new title")
        assert " in " not in header(at)
        await at.say("/new")
        await at.until(lambda: "Old rivers" not in header(at), "the end of the title")
    async with stage(tmp_path, size=(160, 24)) as at:
        await at.say("/sessions rivers")
        await at.until_shown("Conversations of all folders", "Old rivers")
        await at.pilot.press("enter")
        await at.until(lambda: "Old rivers in " in header(at), "the title")
        assert "elsewhere" in header(at)


async def test_a_hidden_conversation_is_left_for_a_new_one_and_erasing_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        identity = await said(at, "name a river", "The Rhine.")
        await at.say("/erase")
        await at.until_shown("nothing was erased", identity)
        await at.say("/hide")
        await at.until_shown("is hidden")
        assert at.talk.conversation_id not in (identity, None)
        assert not at.shows("The Rhine.")
        assert identity not in [row.id for row in await at.surface.views.rows()]
        await at.say("/search river")
        await at.until_shown("hidden")


async def test_pickers_say_that_what_was_stored_is_gone(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await said(at, "name a river", "The Rhine.")
        shutil.rmtree(tmp_path / "home")
        for line in ("/resume", "/sessions", "/search river"):
            await at.say(line)
            await at.until_shown("what was stored is no longer where it was")
            assert not at.shows("There is no conversation")
            await at.pilot.press("escape")
            await at.until_gone("enter chooses")
