"""/health: a line for each part, and what was recovered; /doctor from within."""

import re
from pathlib import Path

import pytest

from rune.errors import UsageError
from rune.models.scripted import says
from rune.store.segments import segment_name
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.tui.app_start import AppStart
from rune.tui.desk import Desk
from rune.tui.transcript_state import Told
from tests.surface.test_views import Down
from tests.turn.rig import Rig, rig


async def run(it: Rig, line: str) -> CommandResult:
    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
    return await it.services.surface.commands.run(line, call)


async def a_torn_home(home: Path) -> None:
    """Make a home whose last line is torn."""
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    with (home / "journal" / segment_name("w000", 1)).open("ab") as file:
        file.write(b'{"actor_id":"owner","authoriz')


async def test_each_part_has_one_line_with_what_there_is_of_it(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        await it.say()
        result = await run(it, "/health")
        assert re.fullmatch(r"journal +ok +slot w000, \d+ events", result.text.splitlines()[0])
        assert result.text.splitlines()[2] == "model server  ok       1 model (scripted)"
        assert result.text.endswith("nothing failed in this session")
        assert [(part["name"], part["state"]) for part in result.data["parts"]] == [
            ("journal", "ok"),
            ("views", "ok"),
            ("model server", "ok"),
            ("sandbox", "not yet"),
        ]


async def test_a_model_server_that_is_down_is_a_part_that_fails(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=Down()) as it:
        line = (await run(it, "/health")).text.splitlines()[2]
        assert line.split("  ")[:2] == ["model server", "failing"]
        assert "nobody answers" in line


async def test_times_are_to_the_minute_and_programs_get_them_whole(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        it.services.health.record_failure("memory", OSError("gone"), 2)
        result = await run(it, "/health")
        assert re.search(r"memory  T2  1 failure  \d\d:\d\d  OSError: gone", result.text)
        assert "Z" not in result.text
        assert result.data["subsystems"][0]["last_seen"].endswith("Z")


async def test_a_torn_tail_is_shown_by_health_and_said_once_in_the_app(tmp_path: Path) -> None:
    await a_torn_home(tmp_path / "home")
    async with rig(tmp_path / "home", []) as it:
        text = (await run(it, "/health")).text
        assert re.search(r"journal +recovered +slot w000", text)
        assert "a torn tail of 29 bytes was cut off w000-000001.jsonl and kept as w000-000001.jsonl.torn-" in text
        assert [row for row in it.services.surface.views.health() if not row.healthy_since] == []
        start = AppStart(folder=str(it.folder))
        desk = Desk(it.services.surface, start, changed=lambda _: None, ended=lambda _: None)
        await desk.begin()
        told = [entry for entry in desk.talk.transcript.entries if isinstance(entry, Told)]
        assert [entry.text.split(":")[0] for entry in told] == ["recovered (journal)"]
        assert told[0].tier is None
        await desk.close({})


async def test_doctor_looks_from_within_a_running_rune(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        await it.say("where the wreck lies")
        result = await run(it, "/doctor")
        findings = {finding["name"]: finding for finding in result.data["findings"]}
        assert (findings["journal"]["state"], findings["views"]["state"]) == ("ok", "ok")
        assert "written by process" in findings["journal"]["lines"][0]
        assert findings["leases"]["counts"]["held"] == 1
        assert "wreck" not in result.text
        with pytest.raises(UsageError, match="takes no argument"):
            await run(it, "/doctor --mend")
