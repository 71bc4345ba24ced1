"""A person in a hurry, with a mouse, with a full disk: nothing is lost and the keyboard stays where it belongs."""

import asyncio
from pathlib import Path

from textual import events

from rune.models.scripted import Pause, ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart
from tests.tui.stage import opening_of, stage

SLOW = [Pause(60.0), *says("late")]


async def test_a_click_into_the_conversation_leaves_the_keyboard_to_the_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        await at.pilot.click(offset=(10, 4))
        await at.type("abc")
        await at.until_shown("> abc")


async def test_ctrl_c_stops_the_answer_first_and_leaves_only_then(tmp_path: Path) -> None:
    async with stage(tmp_path, [SLOW]) as at:
        await at.say("name a river")
        await at.until(lambda: len(at.model.requests) == 1, "the model's turn")
        await at.pilot.press("ctrl+c")
        await at.idle()
        await at.until_shown("cancelled")
        assert at.app.is_running
        await at.pilot.press("ctrl+c")
        await at.until_shown("ctrl+c again leaves")


async def test_keys_that_show_something_write_nothing_into_the_conversation(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        before = at.talk.transcript
        await at.pilot.press("f1")
        await at.until_shown("Keys and commands", "ctrl+j")
        await at.pilot.press("escape")
        await at.until_gone("Keys and commands")
        await at.pilot.press("ctrl+y")
        await at.until_shown("copied")
        await at.pilot.press("ctrl+l")
        await at.until_shown("Models")
        await at.pilot.press("enter")
        await at.until_shown("answers from now on")
        assert at.talk.transcript.entries == before.entries


async def test_a_pasted_slash_stays_text_whatever_channel_one_looks_at(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("a fine word")]) as at:
        at.app.post_message(events.Paste("/exit"))
        await at.until_shown("/exit")
        await at.pilot.press("f4")
        await at.until_gone("/exit")
        await at.pilot.press("f3")
        await at.until_shown("/exit")
        await at.pilot.press("enter")
        await at.until_shown("a fine word")
        assert b"/exit" in at.model.requests[0].messages


async def test_what_is_said_while_another_conversation_opens_goes_there(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("Rhine"), says("Elbe"), says("Oder")]) as at:
        await at.say("first")
        await at.until_shown("Rhine")
        await at.idle()
        first = at.talk.conversation_id
        await at.say("/new")
        await at.until_gone("Rhine")
        await at.say("second")
        await at.until_shown("Elbe")
        await at.idle()
        desk = at.app.chat.desk
        assert desk is not None
        resuming = asyncio.create_task(desk.command(f"/resume {first}"))
        await asyncio.sleep(0)
        desk.say("said meanwhile")
        await resuming
        await at.until_shown("said meanwhile", "Oder")
        await at.idle()
        assert at.talk.conversation_id == first
        said = [message.content for message in await at.surface.views.transcript(first or "")]
        assert said == ["first", "Rhine", "said meanwhile", "Oder"]


async def test_leaving_while_it_still_opens_gives_back_what_was_typed(tmp_path: Path) -> None:
    services: list[object] = []
    opening = opening_of(tmp_path / "home", [ScriptedTransport()], services)  # pyright: ignore[reportArgumentType]  # never built
    gate = asyncio.Event()

    async def slow(tell: object) -> object:
        await gate.wait()
        return await opening(tell)  # pyright: ignore[reportArgumentType]  # as it came

    app = RuneApp(slow, start=AppStart(folder=str(tmp_path)))  # pyright: ignore[reportArgumentType]  # it never returns
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press(*"one", "enter", *"two")
        await pilot.pause()
        app.leave()
        await pilot.pause()
    assert app.goodbye == ("not sent: one", "not sent: two")


async def test_on_a_full_disk_what_was_left_stays_where_it_is_and_what_is_typed_is_told_on_leaving(
    tmp_path: Path,
) -> None:
    drafts = tmp_path / "home" / "state" / "drafts"
    async with stage(tmp_path, [SLOW]) as at:
        await at.type("left behind")
        await at.until(lambda: any(b"left behind" in path.read_bytes() for path in drafts.glob("*.json")), "the draft")
        kept = next(iter(drafts.glob("*.json"))).read_bytes()
    for path in drafts.iterdir():
        path.unlink()
    (drafts / "1-left.json").write_bytes(kept)
    async with stage(tmp_path, [SLOW]) as at:
        await at.until_shown("unsent from before")
        desk = at.app.chat.desk
        assert desk is not None
        # As good as a full disk, for any user: where the files of drafts stand is no folder any more.
        drafts.rename(tmp_path / "away")
        drafts.write_bytes(b"")
        await at.type("typed now")
        await at.until_shown("not kept over a crash")
        drafts.unlink()
        (tmp_path / "away").rename(drafts)
        await at.type("!")
        await at.until(lambda: any(b"typed now!" in path.read_bytes() for path in drafts.glob("*.json")), "the draft")
        drafts.rename(tmp_path / "away")
        drafts.write_bytes(b"")
        await at.type("?")
        app = at.app
    assert "not sent: typed now!?" in app.goodbye
    assert "not sent: left behind" in app.goodbye


async def test_the_header_names_the_model_that_answers_while_it_answers(tmp_path: Path) -> None:
    gate = asyncio.Event()
    models = [
        ModelInfo(name=name, provider="scripted", capabilities=frozenset({"chat"}), context_length=8192, digest=name)
        for name in ("small:1b", "large:8b")
    ]
    model = ScriptedTransport([[gate, *says("The Rhine.")]], models=models)
    async with stage(tmp_path, model=model) as at:
        await at.until_shown("small:1b")
        at.talk.requested_model = "large:8b"
        await at.say("name a river")
        await at.until_shown("large:8b · local")
        gate.set()
        await at.idle()
