"""Secrets in all that tools read, run and are told: none reaches a file of Rune's, an output, or the model."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rune.bootstrap import Services, build
from rune.cli import approving
from rune.cli.arguments import parse
from rune.cli.exit_codes import ExitCode
from rune.cli.headless import HeadlessRequest, run_headless
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output
from rune.cli.streams import StandardStreams
from rune.cli.turn_output import OutputFormat
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ModelInfo
from rune.records.tools import ToolCall
from rune.surface.export import as_json, as_markdown
from rune.text.safe_text import SafeText
from tests.fakes.streams import KeptStream
from tests.turn.campaigns.planted import Planted, plant

WINDOW = 65_536
CHUNK = 4096
NOISE = """
import sys
data = open("blob.bin", "rb").read()
for stream in (sys.stdout.buffer, sys.stderr.buffer):
    for start in range(0, len(data), 1021):
        stream.write(data[start:start + 1021])
        stream.flush()
"""


class Shop:
    """A project full of secrets, and Rune in it. `shown` is all that a person or a program was given."""

    def __init__(self, base: Path, planted: Planted) -> None:
        self.planted = planted
        self.home = base / "home"
        self.folder = base / "project"
        self.shown: list[str] = []
        self._made = 0
        self.answers: list[list[Step]] = []
        able: frozenset[Capability] = frozenset({"chat", "tools"})
        info = ModelInfo(name="large", provider="scripted", capabilities=able, parameters="14B", context_length=WINDOW)
        self.model = ScriptedTransport(lambda _: self.answers.pop(0), models=[info], window=WINDOW)
        self.environ = {"RUNE_HOME": str(self.home), "PATH": "/usr/bin:/bin", "HOME": str(base), **planted.known}

    def fill(self) -> None:
        """Make the project."""
        self.folder.mkdir()
        lines = [f"value {number} is {form} here" for number, form in enumerate(self.planted.planted())]
        (self.folder / "plain.txt").write_text("\n".join(lines))
        (self.folder / "notes.txt").write_text("\n".join(lines[:40]) + "\nchange me\n" + "\n".join(lines[40:80]) + "\n")
        (self.folder / "one-line.js").write_text(" ".join(f'x("{form}");' for form in self.planted.planted()))
        (self.folder / "AGENTS.md").write_text("Use these:\n" + "\n".join(lines[:60]))
        blob = b""
        for form in self.planted.planted():  # each lies over the edge of a chunk
            blob += b"." * (CHUNK - len(blob) % CHUNK - len(form) // 2 - 1) + b" " + form.encode() + b" \n"
        (self.folder / "blob.bin").write_bytes(blob)
        (self.folder / "noise.py").write_text(NOISE)
        for value in self.planted.plain:
            (self.folder / f"{value}.txt").write_text("nothing")
        (self.folder / "dangling").symlink_to(f"gone-{self.planted.plain[0]}")
        (self.folder / "linked").symlink_to(f"{self.planted.plain[2]}.txt")
        self._git("init", "-q", "-b", self.planted.plain[1])
        self._git("config", "user.name", "a")
        self._git("config", "user.email", "a@example.org")
        self._git("add", "noise.py", "notes.txt")
        self._git("commit", "-q", "-m", "begin", "-m", "\n".join(lines))
        (self.folder / "noise.py").write_text(NOISE + "\n".join(f"# {line}" for line in lines))

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True)

    def call(self, name: str, /, **arguments: object) -> ToolCall:
        """Return a call of an id of its own."""
        self._made += 1
        return ToolCall(id=f"call_{self._made}", name=name, arguments=arguments)

    async def turn(self, services: Services, output_format: OutputFormat, *rounds: list[ToolCall]) -> ExitCode:
        """Have a turn with these calls, round by round, as `rune -p` has it."""
        self.answers = [*(says("", calls=calls) for calls in rounds), says("Done.")]
        return await self.said(services, "look and mend", output_format, carry_on=False)

    async def said(
        self, services: Services, text: str, output_format: OutputFormat = "text", *, carry_on: bool = True
    ) -> ExitCode:
        """Say something in the newest conversation, as `rune -c -p` does, or in a new one."""
        out, err = KeptStream(), KeptStream()
        request = HeadlessRequest(
            text=text, folder=str(self.folder), provenance="owner", output_format=output_format, carry_on=carry_on
        )
        code = await run_headless(services.surface, request, Output(out, err), Interrupts(StandardStreams()))
        self.shown += [out.text, err.text]
        return code

    async def approve(self, services: Services, *arguments: str) -> ExitCode:
        """Do what `rune approve` does."""
        out, err = KeptStream(), KeptStream()
        options = parse(["approve", *arguments])
        output = Output(out, err)
        if approving.answering(options):
            code = await approving.answer(services.surface, options, output, Interrupts(StandardStreams()))
        else:
            code = await approving.look(services.surface, options, output, 0)
        self.shown += [out.text, err.text]
        return code

    def leaks(self) -> list[str]:
        """Return every place in which a secret stands that it must not reach."""
        shown = [f"shown: {form}" for text in self.shown for form in self.planted.found_in(text.encode())]
        told = [
            f"told the model: {form}"
            for request in self.model.requests
            for form in self.planted.found_in(request.messages)
        ]
        return [*self.planted.found_under(self.home), *shown, *told]


async def asked_and_allowed(shop: Shop, services: Services, output_format: OutputFormat, *calls: ToolCall) -> None:
    """Have calls asked about, look at each question in each way, and allow it."""
    code = await shop.turn(services, output_format, list(calls))
    assert code is ExitCode.WAITING
    shop.answers = [says("Done.")]
    while code is ExitCode.WAITING:  # a command is asked about alone
        (row,) = await services.surface.views.pending_approvals()
        for arguments in ([], ["--json"], [row.id, "--show"], [row.id, "--show", "--json"]):
            await shop.approve(services, *arguments)
        code = await shop.approve(services, row.id, "--output-format", output_format)
    assert code is ExitCode.DONE


async def all_of_it(shop: Shop) -> None:
    """Let every tool come by secrets."""
    secret = shop.planted.values[0]
    services = build(shop.environ, surface_kind="headless", transports=(shop.model,))
    await services.start()
    trust = services.surface.trust
    await trust.grant(trust.status(str(shop.folder)))
    try:
        reads = [shop.call("read_file", path=path) for path in ("plain.txt", "notes.txt", "one-line.js", "blob.bin")]
        looks = [
            shop.call("grep_files", pattern="value|x"),
            shop.call("list_directory"),
            shop.call("glob_files", pattern="**"),
            shop.call("read_file", path=f"missing-{secret}.txt"),
            shop.call("read_file", path="dangling"),
            shop.call("read_file", path="linked"),
            shop.call("list_directory", path="linked"),
            shop.call("history_search", query="value"),
        ]
        git = [shop.call(name) for name in ("git_status", "git_log", "git_diff")]
        shows = [shop.call("git_show", commit="HEAD"), shop.call("git_show", commit=secret)]
        for calls in (reads[:2], reads[2:], looks, git, shows):
            assert await shop.turn(services, "text", calls) is ExitCode.DONE, shop.shown[-1]
        nearly = [
            shop.call("edit_file", path="notes.txt", edits=[{"search": f"value {number} is it here", "replace": "x"}])
            for number in (0, 17, 33, 62, 79)
        ]
        linked = [
            shop.call("edit_file", path="linked", edits=[{"search": "nothing", "replace": "something"}]),
            shop.call("write_file", path="linked", content="something"),
        ]
        assert await shop.turn(services, "text", [shop.call("read_file", path="linked")], linked) is ExitCode.DONE
        several = shop.call("edit_file", path="notes.txt", edits=[{"search": " here", "replace": "x"}])
        read = shop.call("read_file", path="notes.txt")
        assert await shop.turn(services, "json", [read], [*nearly, several]) is ExitCode.DONE
        await written_by_the_model(shop, services)
        edit = shop.call("edit_file", path="notes.txt", edits=[{"search": "change me", "replace": "changed"}])
        run = shop.call("run_command", command=f"{sys.executable} noise.py; cat */x one-line.js; ls; env; exit 3")
        await asked_and_allowed(shop, services, "json", shop.call("read_file", path="notes.txt"), edit, run)
        assert "\nchanged\n" in (shop.folder / "notes.txt").read_text()
        commit = shop.call("git_commit", message="change", paths=["notes.txt"])
        await asked_and_allowed(shop, services, "stream-json", commit)
        for command in ("/diff", "/undo", "/diff", "/context", "/trace", "/sessions", "/search value"):
            await shop.said(services, command)
        await own_command(shop, services)
        for row in await services.surface.views.conversations():
            whole = await services.surface.views.whole(row.record.id)
            shop.shown += [as_markdown(whole), as_json(whole)]
    finally:
        await services.close()


async def written_by_the_model(shop: Shop, services: Services) -> None:
    """Have secrets in what a model asks for: in arguments, in their names, in calls that cannot be used."""
    secret = shop.planted.values[0]
    told = [
        shop.call("todo", items=[{"text": f"use {value}", "state": "open"} for value in shop.planted.values[:8]]),
        *(shop.call("run_command", command=f"echo {value}") for value in shop.planted.values),
        *(shop.call("write_file", path=f"{n}.txt", content=f"it is {v}") for n, v in enumerate(shop.planted.values)),
    ]
    # So many calls that are refused are a circle.
    assert await shop.turn(services, "stream-json", told) is ExitCode.LIMIT, shop.shown[-2:]
    assert shop.shown[-2].count("hold what looks like a secret") > 100
    unusable = (
        shop.call("no_such_tool", **{secret: secret}),
        shop.call(f"tool_{secret}", path="x"),
        shop.call("read_file", path=["no", secret]),
        shop.call("read_file", path="notes.txt", **{secret: secret}),
    )
    for strange in unusable:
        assert await shop.turn(services, "stream-json", [strange]) is ExitCode.DONE, shop.shown[-2:]


async def own_command(shop: Shop, services: Services) -> None:
    """Run the person's own line, which has their environment."""
    shown: list[SafeText] = []
    value = shop.planted.values[1]
    (newest, *_) = await services.surface.views.conversations()
    result = await services.surface.own_commands.run(
        f"env; cat plain.txt; echo '{value}' >&2",
        folder=shop.folder,
        conversation_id=newest.record.id,
        on_output=shown.append,
        stop=asyncio.Event(),
    )
    shop.shown += [*map(str, shown), str(result.text), result.command, result.summary]


@pytest.mark.parametrize(
    "rounds", [1, pytest.param(12, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])], ids=["short", "long"]
)
async def test_no_planted_secret_gets_anywhere(tmp_path: Path, rounds: int, seed: int) -> None:
    for number in range(rounds):
        base = tmp_path / str(number)
        base.mkdir()
        shop = Shop(base, plant(seed + number))
        assert len(shop.planted.values) == 60
        shop.fill()
        await all_of_it(shop)
        leaks = shop.leaks()
        print(*leaks[:40], sep="\n")
        assert leaks == []
        assert shop.planted.found_in((shop.folder / "plain.txt").read_bytes())  # what looks finds what is there
        results = [text for text in shop.shown if "[secret:" in text]
        assert len(results) > 8
        assert any("[secret:DB_PASSWORD_0]" in json.dumps(text) for text in results)
