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
    assert told[1].split() == ["place", "files", "done"]
    assert {line.split()[0] for line in told[2:]} >= {"journal", "evidence", "views"}
    after = await found(environ)
    assert (after["erasing"].state, after["views"].state) == ("ok", "ok")
    assert SAID.encode() not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


FOREIGN = b'{"id":"1","type":"user.message","payload":{"text":"hello"}}\n'


@pytest.mark.parametrize("damaged", [False, True], ids=["alone", "beside damage"])
async def test_another_programs_file_is_left_alone_and_what_to_do_with_it_is_said(
    tmp_path: Path, damaged: bool
) -> None:
    home = tmp_path / "home"
    environ = {"RUNE_HOME": str(home), "PATH": "", "OLLAMA_HOST": "127.0.0.1:1"}
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    foreign, own = home / "journal" / "w001-000001.jsonl", home / "journal" / "w000-000001.jsonl"
    foreign.write_bytes(FOREIGN)
    foreign.chmod(0o600)
    if damaged:
        lines = own.read_bytes().splitlines(keepends=True)
        own.write_bytes(b"".join([*lines[:2], lines[2].replace(b"partition_key", b"partition_kEy"), *lines[3:]]))
    move = "Move that file out of the journal folder, then: rune import events w001-000001.jsonl"
    journal = (await found(environ))["journal"]
    assert journal.state == "broken"
    assert journal.mend == (
        f"{move}. Only then `rune doctor --mend` can set the damaged parts aside." if damaged else move
    )
    before = own.read_bytes()
    told: list[str] = []
    mended = await asyncio.to_thread(mend, environ, told.append)
    assert [each.problem for each in mended] == [move]
    assert told[0] == f"left alone: {str(foreign)!r} is not written in this journal's form. {move}"
    assert len(told) == 1 + damaged
    assert (foreign.read_bytes(), own.read_bytes()) == (FOREIGN, before)
    foreign.rename(tmp_path / "foreign.jsonl")
    assert [each.problem for each in await asyncio.to_thread(mend, environ, told.append)] == [""] * (2 * damaged)
    assert (await found(environ))["journal"].state == "ok"


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
