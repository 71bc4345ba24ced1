"""`rune approve` beside another Rune, and what does not go together."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.cli import approving
from rune.cli.arguments import parse
from rune.cli.exit_codes import ExitCode
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output
from rune.cli.sessions import run_sessions
from rune.cli.streams import StandardStreams
from rune.errors import UsageError
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import ModelInfo
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall
from rune.surface.export import as_json, as_markdown
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.run_command import RunCommand
from rune.turn.events import TurnClosed
from tests.fakes.streams import KeptStream
from tests.turn.rig import Rig, rig

NOW_MS = 1_796_040_000_000
PLAIN = ModelInfo(name="another", provider="scripted", capabilities=frozenset({"chat", "tools"}))
TOOLS = (ReadFile(), EditFile(), RunCommand())
LOOK = ToolCall(id="call_1", name="read_file", arguments={"path": "src/cart.py"})
RUN = ToolCall(id="call_1", name="run_command", arguments={"command": "echo hi"})


def edit(search: str = "total = 0", replace: str = "total = 1") -> ToolCall:
    edits = [{"search": search, "replace": replace}]
    return ToolCall(id="call_1", name="edit_file", arguments={"path": "src/cart.py", "edits": edits})


def calls(*made: ToolCall, then: str = "Done.") -> list[list[Step]]:
    return [*(says("", calls=[call]) for call in made), says(then)]


@asynccontextmanager
async def shop(tmp_path: Path, *answers: list[Step]) -> AsyncGenerator[Rig]:
    async with rig(tmp_path / "home", answers, tools=TOOLS) as it:
        (it.folder / "src").mkdir(exist_ok=True)
        (it.folder / "src" / "cart.py").write_text("total = 0\n")
        yield it


def cart(it: Rig) -> str:
    return (it.folder / "src" / "cart.py").read_text()


async def ran(it: Rig, *arguments: str, now_ms: int = NOW_MS) -> tuple[ExitCode, str, str]:
    out, err = KeptStream(), KeptStream()
    output = Output(out, err)
    options = parse(["approve", *arguments])
    approving.check(options)
    if approving.answering(options):
        code = await approving.answer(it.services.surface, options, output, Interrupts(StandardStreams()))
    else:
        code = await approving.look(it.services.surface, options, output, now_ms)
    return code, out.text, err.text


async def asked(it: Rig) -> TurnClosed:
    closed = await it.say("mend it")
    assert closed.pending_approval is not None
    return closed


async def test_what_waits_is_listed_shown_whole_and_answered(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(LOOK, edit(), then="Mended.")) as it:
        approval = (await asked(it)).pending_approval or ""
        _, listed, how = await ran(it)
        assert listed.startswith(f"…{approval[-6:]}  ")
        assert "    edit_file src/cart.py" in listed
        assert "--show" in how
        _, shown, _ = await ran(it, approval[-6:], "--show")
        assert "\n| " in shown
        assert "`--always` would allow in that folder from now on: edit_file(src/**)" in shown
        assert json.loads((await ran(it, "--json"))[1])[0]["id"] == approval
        assert json.loads((await ran(it, approval, "--show", "--json"))[1])["standing"] == "open"
        assert cart(it) == "total = 0\n"
        code, out, err = await ran(it, approval[-6:])
        assert (code, out, cart(it)) == (ExitCode.DONE, "Mended.\n", "total = 1\n")
        assert err.startswith("rune: edit_file")
        assert (await ran(it))[1] == "nothing waits for an answer\n"
        assert "allowed by you" in (await ran(it, approval, "--show"))[1]
        rows = await it.services.surface.views.tool_results((await it.services.surface.views.rows())[0].id)
        assert [(row.name, row.outcome, row.allowed_by) for row in rows] == [
            ("read_file", "ok", None),
            ("edit_file", "ok", f"approval:{approval}"),
        ]
        assert rows[1].detail.splitlines() == [
            line.removeprefix("| ") for line in shown.splitlines() if line.startswith("| ")
        ]


async def test_an_answer_holds_and_a_second_one_is_told_what_it_was(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(LOOK, edit(), then="Then not.")) as it:
        approval = (await asked(it)).pending_approval or ""
        code, out, err = await ran(it, approval, "--no", "--because", "use sum()")
        assert (code, out, cart(it)) == (ExitCode.DONE, "Then not.\n", "total = 0\n")
        assert re.fullmatch(r"rune: edit_file src/cart\.py.*: not allowed\n", err)
        assert "use sum()" in it.model.requests[-1].messages.decode()
        for output_format in ("text", "json", "stream-json"):
            code, out, err = await ran(it, approval, "--output-format", output_format)
            assert code == ExitCode.FAILED
            assert "was denied by you" in out + err
        assert "refused by you" in (await ran(it, approval, "--show"))[1]


async def test_what_goes_on_may_ask_again(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(LOOK, edit(), RUN, then="Ran.")) as it:
        first = (await asked(it)).pending_approval or ""
        code, _, err = await ran(it, first)
        assert code == ExitCode.WAITING
        second = (await it.services.surface.views.pending_approvals())[0].id
        assert f"`rune approve {second}` allows it" in err
        assert "| echo hi" in err
        code, out, err = await ran(it, second)
        assert (code, out) == (ExitCode.DONE, "Ran.\n")
        assert "hi" not in out


async def test_always_makes_the_rule_that_was_shown_and_nothing_asks_then(tmp_path: Path) -> None:
    more = calls(LOOK, edit("total = 1", "total = 2"), then="Again.")
    async with shop(tmp_path, *calls(LOOK, edit()), *more) as it:
        approval = (await asked(it)).pending_approval or ""
        code, _, err = await ran(it, approval, "--always")
        assert (code, "asks no more in that folder: edit_file(src/**)" in err) == (ExitCode.DONE, True)
        assert (await it.say("once more")).answer == "Again."
        assert cart(it) == "total = 2\n"


async def test_always_is_refused_where_no_rule_can_say_it(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(RUN)) as it:
        approval = (await asked(it)).pending_approval or ""
        code, _, err = await ran(it, approval, "--always")
        assert (code, "no rule" in err) == (ExitCode.USAGE, True)
        assert approval[-6:] in (await ran(it))[1]


async def test_what_another_rune_has_open_is_answered_there(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(RUN)) as it, rig(tmp_path / "home", [says("on")], tools=TOOLS) as other:
        approval = (await asked(it)).pending_approval or ""
        code, out, err = await ran(other, approval)
        assert (code, out) == (ExitCode.TRY_AGAIN, "")
        assert "open in another Rune (process " in err
        assert "Answer it there" in err
        assert "fork" not in err
        assert approval[-6:] in (await ran(other))[1]


async def test_no_model_means_that_nothing_is_decided(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(LOOK, edit())[:-1]) as it:
        approval = (await asked(it)).pending_approval or ""
    gone = ScriptedTransport([], models=[PLAIN])
    async with rig(tmp_path / "home", [], model=gone, tools=TOOLS) as it:
        code, _, err = await ran(it, approval)
        assert (code, "scripted" in err) == (ExitCode.NO_MODEL, True), err
        assert err.endswith("rune: nothing was decided: it still waits for you\n")
        assert approval[-6:] in (await ran(it))[1]
        assert cart(it) == "total = 0\n"


async def test_a_question_whose_time_is_over_is_listed_no_more(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(RUN)) as it:
        approval = (await asked(it)).pending_approval or ""
        row = await it.services.surface.views.approval(approval)
        assert (row.title, row.folder) == ("mend it", str(it.folder))
        assert (await ran(it, now_ms=4_000_000_000_000))[1] == "nothing waits for an answer\n"
        assert (await ran(it, approval, "--show", now_ms=4_000_000_000_000))[0] == ExitCode.DONE


async def test_a_conversation_that_waits_is_marked_until_it_is_answered(tmp_path: Path) -> None:
    async def listed(it: Rig) -> list[str]:
        out = KeptStream()
        await run_sessions(it.services.surface, parse(["sessions"]), Output(out, out), lambda: str(it.folder), NOW_MS)
        here = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
        shown = [(await it.services.surface.commands.run(line, here)).text for line in ("/sessions", "/resume")]
        return [out.text, *shown]

    async with shop(tmp_path, *calls(LOOK, edit())) as it:
        approval = (await asked(it)).pending_approval or ""
        assert ["(waits for you)" in text for text in await listed(it)] == [True] * 3
        (row,) = await it.services.surface.views.rows()
        assert row.waits
        await ran(it, approval)
        assert ["mend it" in text and "(waits for you)" not in text for text in await listed(it)] == [True] * 3


async def test_calls_stand_in_what_is_shown_and_exported(tmp_path: Path) -> None:
    async with shop(tmp_path, *calls(LOOK, edit())) as it:
        closed = await asked(it)
        document = as_markdown(await it.services.surface.views.whole(closed.conversation_id))
        assert "- `edit_file src/cart.py +1 -1: waits for you`" in document
        await ran(it, closed.pending_approval or "")
        whole = await it.services.surface.views.whole(closed.conversation_id)
        document = as_markdown(whole)
        assert "waits for you" not in document
        assert "## Tool" not in document
        assert "total" not in document  # what was read and written is left out
        assert [call["outcome"] for call in json.loads(as_json(whole))["calls"]] == ["ok", "ok"]
        assert "total = 0" in json.loads(as_json(whole))["calls"][0]["text"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--no",),
        ("--always",),
        ("--because", "x"),
        ("--show",),
        ("x", "--show", "--no"),
        ("x", "--always", "--no"),
        ("x", "--because", "y"),
        ("--output-format", "stream-json"),
        ("x", "--show", "--output-format", "stream-json"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        approving.check(parse(["approve", *wrong]))


def test_json_is_short_for_the_output_format_wherever_it_stands() -> None:
    assert parse(["approve", "x", "--json"]).output_format == "json"
    assert parse(["--output-format", "json", "approve", "x"]).output_format == "json"
    assert parse(["approve", "x"]).output_format == "text"
