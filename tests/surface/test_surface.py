"""What a screen gets, built off the event loop on which it is started."""

import asyncio
from pathlib import Path

from rune.bootstrap import build
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest


async def test_what_was_built_on_a_thread_starts_on_the_loop_and_answers(tmp_path: Path) -> None:
    model = ScriptedTransport([says("yes")])
    environ = {"RUNE_HOME": str(tmp_path / "home"), "PATH": ""}
    services = await asyncio.to_thread(build, environ, surface_kind="app", transports=(model,))
    try:
        await services.start()
        request = TurnRequest(text="name a river", folder=str(tmp_path))
        events = [event async for event in services.surface.operator.send_task(request)]
        assert isinstance(events[-1], TurnClosed)
        assert events[-1].answer == "yes"
    finally:
        await services.close()


async def test_what_was_built_and_never_started_can_be_closed(tmp_path: Path) -> None:
    environ = {"RUNE_HOME": str(tmp_path / "home"), "PATH": ""}
    services = await asyncio.to_thread(build, environ, surface_kind="app", transports=(ScriptedTransport(),))
    await services.close()
    again = build(environ, surface_kind="app", transports=(ScriptedTransport(),))
    await again.start()
    await again.close()


async def test_what_a_screen_keeps_lies_in_the_homes_state(tmp_path: Path) -> None:
    environ = {"RUNE_HOME": str(tmp_path / "home"), "PATH": ""}
    services = build(environ, surface_kind="app", transports=(ScriptedTransport(),))
    try:
        surface = services.surface
        surface.preferences.theme = "dark"
        (tmp_path / "home" / "state" / "app.json").write_text("[broken")
        assert surface.preferences.theme == ""
        assert [row.subsystem for row in services.health.snapshot()] == ["preferences"]
        draft = surface.drafts.open("/work")
        draft.save({"task": "half a sen"}, {})
        assert list((tmp_path / "home" / "state" / "drafts").glob("*.json"))
        draft.close()
    finally:
        await services.close()
