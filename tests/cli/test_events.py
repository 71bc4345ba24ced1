"""`rune events --follow`: in order, without an end, and with a reader that takes its time or goes away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.cli.arguments import parse
from rune.cli.events import follow_events
from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output, StdoutLostError
from rune.models.scripted import says
from tests.fakes.streams import KeptStream
from tests.turn.rig import Rig, rig, until


@asynccontextmanager
async def following(it: Rig, out: KeptStream, *arguments: str) -> AsyncGenerator["asyncio.Task[ExitCode]"]:
    options = parse(["events", "--follow", "--json", *arguments])
    task = asyncio.create_task(follow_events(it.services.surface, options, Output(out, KeptStream())))
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(StdoutLostError):
            await task


def names(out: KeptStream) -> list[str]:
    return [json.loads(line)["event_type"] for line in out.text.splitlines()]


async def test_it_begins_with_the_newest_and_goes_on_with_what_comes(tmp_path: Path) -> None:
    async with (
        rig(tmp_path / "home", lambda _: says("yes")) as it,
        rig(tmp_path / "home", lambda _: says("no")) as other,
    ):
        first = await it.say("one")
        out = KeptStream()
        async with following(it, out, "--type", "user.message", "--type", "response.generated", "--limit", "1") as task:
            await until(lambda: names(out) == ["response.generated"])
            await it.say("two", first.conversation_id)
            await other.say("three")
            await until(lambda: len(names(out)) == 5)
            assert names(out) == ["response.generated", *["user.message", "response.generated"] * 2]
            task.cancel()
            assert await task is ExitCode.INTERRUPTED


async def test_a_reader_that_does_not_read_is_waited_for(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        out = KeptStream()
        async with following(it, out, "--type", "user.message"):
            await it.say("one")
            await until(lambda: names(out) == ["user.message"])
            out.unwritten = 2 << 20
            looked = out.looks
            # It looks once behind what it had in hand; a second time only where it waits.
            await until(lambda: out.looks >= looked + 2)
            await it.say("two")
            await it.say("three")
            looked = out.looks
            await until(lambda: out.looks >= looked + 2)
            assert names(out) == ["user.message"]
            out.unwritten = 0
            await until(lambda: names(out) == ["user.message"] * 3)


async def test_a_reader_that_went_away_ends_it_although_nothing_happens(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        out = KeptStream()
        async with following(it, out) as task:
            await until(lambda: bool(out.kept))
            out.fail(BrokenPipeError())
            assert await task is ExitCode.DONE


async def test_a_full_disk_behind_stdout_is_a_failure_all_the_same(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        out = KeptStream()
        async with following(it, out) as task:
            await until(lambda: bool(out.kept))
            out.fail(OSError(28, "No space left on device"))
            with pytest.raises(StdoutLostError):
                await task
