"""`rune doctor --mend` finishes what was cut off, and says what it could not do."""

import asyncio
from pathlib import Path

import pytest

from rune.bootstrap import examine, mend
from rune.bootstrap.erasing import open_erasure
from rune.models.scripted import says
from rune.surface.doctor import Finding
from rune.surface.doctor import examine as run_checks
from tests.turn.rig import rig

SAID = "the wreck lies off Foula"


class PowerCutError(Exception):
    """What a test cuts an erasure off with."""


async def found(environ: dict[str, str]) -> dict[str, Finding]:
    return {finding.name: finding for finding in await run_checks(examine(environ))}


def interrupted(environ: dict[str, str], conversation_id: str, stage: str) -> None:
    """Begin to erase a conversation, and stop before a stage."""

    def step(name: str) -> None:
        if name.startswith(stage):
            raise PowerCutError

    erasure = open_erasure(environ, step=step)
    with pytest.raises(PowerCutError), erasure.prepared([conversation_id]) as plan:
        erasure.erase(plan)


@pytest.mark.parametrize("stage", ["segment", "views"])
async def test_an_erasure_that_was_cut_off_is_found_and_finished(tmp_path: Path, stage: str) -> None:
    home = tmp_path / "home"
    environ = {"RUNE_HOME": str(home), "PATH": "", "OLLAMA_HOST": "127.0.0.1:1"}
    async with rig(home, lambda _: says("yes")) as it:
        said = await it.say(SAID)
    await asyncio.to_thread(interrupted, environ, said.conversation_id, stage)
    before = await found(environ)
    assert (before["erasing"].state, before["journal"].state) == ("broken", "ok")
    told: list[str] = []
    mended = await asyncio.to_thread(mend, environ, told.append)
    assert [each.problem for each in mended] == [""] * len(mended)
    assert told[0].startswith("finishing an erasure that was cut off")
    after = await found(environ)
    assert (after["erasing"].state, after["views"].state) == ("ok", "ok")
    assert SAID.encode() not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


async def test_what_cannot_be_done_is_said_and_the_rest_is_done(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    (home / "state").chmod(0o755)
    for path in home.glob("views-*.db*"):
        path.unlink()
    views = next(iter(home.glob("views-*.lock"))).with_suffix(".db")
    views.mkdir(0o700)  # nothing that Rune may throw away
    told: list[str] = []
    mended = await asyncio.to_thread(mend, {"RUNE_HOME": str(home)}, told.append)
    assert [bool(each.problem) for each in mended] == [False, True]
    assert told[0] == f"closing {home / 'state'} to others (mode 0700)"
    assert told[-1].startswith("that could not be done: ")
    assert (home / "state").stat().st_mode & 0o777 == 0o700
