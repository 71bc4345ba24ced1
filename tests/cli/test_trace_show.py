"""`rune trace --show` says what an answer was held to."""

import json
from pathlib import Path

from rune.cli.arguments import parse
from rune.cli.commands import show
from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output
from rune.models.scripted import says
from tests.fakes.streams import KeptStream
from tests.turn.rig import Rig, rig
from tests.turn.test_action_protocols import ANSWER, READ
from tests.turn.tools import Offered


async def shown(it: Rig, *arguments: str) -> str:
    out = KeptStream()
    options = parse(["trace", "--show", *arguments])
    assert await show(it.services.surface, options, Output(out, KeptStream()), lambda: str(it.folder)) is ExitCode.DONE
    return out.text


async def test_the_schema_of_a_constrained_answer_is_shown_with_its_prompt(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says(ANSWER)], tools=[Offered(READ)]) as it:
        await it.say()
        (request,) = it.model.requests
        assert request.format is not None
        text = await shown(it, "last")
        data = json.loads(await shown(it, "last", "--json"))
    assert text.endswith(f"its answer was held to this schema:\n{request.format.decode()}\n")
    assert data["formats"] == [json.loads(request.format)]
    assert data["trace"]["requests"][0]["think"] == "off"


async def test_of_a_free_answer_nothing_more_is_said(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Danube.")]) as it:
        await it.say()
        text = await shown(it, "last")
        data = json.loads(await shown(it, "last", "--json"))
    assert "held to" not in text
    assert data["formats"] == [None]
    assert "format" not in data["trace"]["requests"][0]
