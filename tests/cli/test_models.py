"""`rune models`: what it says and returns, against a real loopback server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rune.bootstrap import build
from rune.cli.arguments import parse
from rune.cli.exit_codes import ExitCode, of_error
from rune.cli.models import run_models
from rune.cli.output import Output, StdoutLostError
from rune.errors import ModelNotFoundError, ModelUnavailableError, UsageError
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import ChatTransport
from rune.surface.surface import Surface
from tests.fakes.streams import KeptStream
from tests.ollama_server import Fetchable, OllamaServer, Pause, ServedModel
from tests.turn.rig import until

QWEN = ServedModel("qwen3:4b", ("completion", "tools", "thinking"), 40960, size=2_500_000_000, digest="1")
EMBED = ServedModel("nomic-embed-text:latest", ("embedding",), 2048, digest="2")
NOW_MS = 1_764_500_000_000


class Told:
    """Runs `rune models ...` on a surface; `out` and `err` are what it said the last time."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.out, self.err = KeptStream(), KeptStream()

    async def __call__(self, *arguments: str, terminal: bool = False) -> ExitCode:
        self.out, self.err = KeptStream(is_terminal=terminal), KeptStream(is_terminal=terminal)
        options = parse(["models", *arguments])
        return await run_models(self.surface, options, Output(self.out, self.err), NOW_MS)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.text.splitlines()]


@asynccontextmanager
async def told(home: Path, *transports: ChatTransport) -> AsyncGenerator[Told]:
    services = build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=transports)
    try:
        await services.start()
        yield Told(services.surface)
    finally:
        await services.close()


@asynccontextmanager
async def served(home: Path, *models: ServedModel) -> AsyncGenerator[tuple[Told, OllamaServer]]:
    async with OllamaServer(models) as server, told(home, OllamaTransport(server.url)) as rune:
        yield rune, server


def test_alone_it_lists_and_json_may_stand_on_either_side() -> None:
    assert (parse(["models"]).action, parse(["models"]).json) == ("list", False)
    assert parse(["models", "--json"]).json is True
    assert parse(["models", "list", "--json"]).json is True
    assert parse(["models", "--json", "show", "x"]).json is True
    assert parse(["models", "show", "x"]).json is False
    with pytest.raises(UsageError):
        parse(["models", "rm"])
    with pytest.raises(UsageError):
        parse(["models", "probe", "x", "--protocol", "sometimes"])


async def test_a_list_says_what_is_there_what_is_loaded_and_how_it_acts(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN, EMBED) as (rune, server):
        server.loaded["qwen3:4b"] = 16384
        assert await rune("list") is ExitCode.DONE
        heading, first, second, _, refused = rune.out.text.splitlines()
        assert heading.split() == ["model", "from", "where", "size", "window", "loaded", "can", "acts", "by"]
        assert first.split()[:6] == ["qwen3:4b", "ollama", "local", "2.5", "GB", "40k"]
        assert first.split()[6:] == ["16k", "CPU", "tools,", "thinks", "constrained"]
        assert second.split()[-3:] == ["no", "embeds", "-"]
        assert refused == "cannot answer: nomic-embed-text:latest (it does not chat)"
        assert await rune("--json") is ExitCode.DONE
        rows = json.loads(rune.out.text)
        assert [(row["name"], row["loaded_window"], row["thinks"]) for row in rows] == [
            ("qwen3:4b", 16384, True),
            ("nomic-embed-text:latest", None, False),
        ]


async def test_a_list_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    long = ServedModel("hf.co/somebody/A-Model-With-A-Very-Long-Name-Instruct-GGUF:Q4_K_M")
    async with served(tmp_path / "home", QWEN, EMBED, long) as (rune, _):
        await rune(terminal=True)
        table = rune.out.text.split("\n\n")[0].splitlines()
        assert max(len(line) for line in table) <= 80
        assert table[3].startswith("hf.co/somebody/A-M")
        assert "constrained" in table[1]


async def test_without_any_model_it_is_said_what_to_do(tmp_path: Path) -> None:
    async with told(tmp_path / "home", OllamaTransport("http://127.0.0.1:1")) as rune:
        assert await rune() is ExitCode.DONE
        assert "`rune models fetch-embedded`" in rune.out.text
        assert "nobody answers at http://127.0.0.1:1" in rune.err.text
        assert await rune("pull", "qwen3:4b", "--json") is ExitCode.NO_MODEL
        assert [line["error_type"] for line in rune.lines()] == ["ModelUnavailableError"]
        for action in ("show", "pull", "rm", "probe"):
            with pytest.raises(ModelUnavailableError) as refused:
                await rune(action, "qwen3:4b")
            assert of_error(refused.value) is ExitCode.NO_MODEL
            assert refused.value.hint


async def test_show_says_everything_about_one(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN) as (rune, server):
        server.loaded["qwen3:4b"] = 16384
        assert await rune("show", "qwen3:4b") is ExitCode.DONE
        said = rune.out.text
        assert said.startswith("qwen3:4b\n")
        assert "trained for 40,960 tokens; Rune asks for 16,384 (context.max_context)" in said
        assert "yes: a window of 16,384 tokens, 2.5 GB, none of it on a GPU" in said
        assert "acts by  constrained (guessed: " in said
        await rune("show", "qwen3:4b", "--json")
        (details,) = rune.lines()
        assert (details["version"], details["row"]["name"], details["window"]) == (1, "qwen3:4b", 16384)
        with pytest.raises(ModelNotFoundError):
            await rune("show", "qwen3:5b")


async def test_a_pull_says_a_line_a_tenth_into_a_pipe_and_what_is_there_on_stdout(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (rune, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 2_500_000_000}, step=25_000_000)
        assert await rune("pull", "qwen3:4b") is ExitCode.DONE
        assert rune.out.text == "qwen3:4b is there (2.5 GB)\n"
        tenths = [line for line in rune.err.text.splitlines() if " % " in line]
        assert 10 <= len(tenths) <= 14
        assert all(len(line) <= 80 and line.startswith("rune: qwen3:4b  ") for line in tenths)
        assert tenths[5].split()[2:9] == ["50", "%", "1.2", "GB", "of", "2.5", "GB"]


async def test_a_pull_rewrites_one_line_on_a_terminal_and_wipes_it(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (rune, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 2_500_000_000}, step=25_000_000)
        await rune("pull", "qwen3:4b", terminal=True)
        shown = rune.err.text
        assert "\n" not in shown
        assert len(shown.split("\r")) > 50
        assert max(len(line) for line in shown.split("\r")) < 80
        assert shown.endswith("\r")
        assert shown.split("\r")[-2].strip() == ""


async def test_a_pull_as_json_is_a_line_a_percent_and_one_for_the_end(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (rune, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 2_000_000}, step=1000)
        assert await rune("pull", "qwen3:4b", "--json") is ExitCode.DONE
        *progress, last = rune.lines()
        assert {line["type"] for line in progress} == {"progress"}
        assert 100 <= len(progress) <= 110
        assert [line["done"] for line in progress[1:-3]] == sorted(line["done"] for line in progress[1:-3])
        assert (last["version"], last["type"], last["total"], last["finished"]) == (1, "done", 2_000_000, True)
        assert rune.err.text == ""


async def test_ctrl_c_stops_a_pull_and_says_that_it_goes_on_the_next_time(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (rune, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 1000}, 10, between=Pause(0.02))
        for flag in ([], ["--json"]):
            pulling = asyncio.create_task(rune("pull", "qwen3:4b", *flag))
            await asyncio.sleep(0)  # it begins with streams of its own
            await until(lambda: '"done": 100' in rune.out.text or "10 %" in rune.err.text)
            pulling.cancel()
            assert await pulling is ExitCode.INTERRUPTED
            assert "goes on where it was" in rune.err.text
        assert rune.lines()[-1] == {"version": 1, "type": "interrupted", "model": "qwen3:4b"}
        assert await rune("pull", "qwen3:4b", "--json") is ExitCode.DONE
        assert rune.lines()[1]["done"] >= 100


@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_a_reader_that_goes_away_stops_the_pull(tmp_path: Path, flags: list[str]) -> None:
    async with served(tmp_path / "home") as (rune, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 1000}, 10, between=Pause(0.02))
        pulling = asyncio.create_task(rune("pull", "qwen3:4b", *flags))
        await until(lambda: '"done"' in rune.out.text or " % " in rune.err.text)
        rune.out.fail(BrokenPipeError())
        with pytest.raises(StdoutLostError):
            await pulling
        assert max(server.fetched.values()) < 1000


async def test_rm_asks_nothing_and_says_what_it_freed(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN, EMBED) as (rune, server):
        assert await rune("rm", "qwen3:4b") is ExitCode.DONE
        assert rune.out.text == "removed qwen3:4b; up to 2.5 GB are free again\n"
        assert [model.name for model in server.models] == [EMBED.name]
        await rune("rm", "nomic-embed-text", "--json")
        assert rune.lines() == [
            {"version": 1, "model": EMBED.name, "provider": "ollama", "freed": EMBED.size, "shared_with": []}
        ]


async def test_a_protocol_is_fixed_without_measuring(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN) as (rune, server):
        assert await rune("probe", "qwen3:4b", "--protocol", "native") is ExitCode.DONE
        assert "acts by  native (your choice)" in rune.out.text
        assert server.asked("/api/chat") == []
        await rune("probe", "qwen3:4b", "--protocol", "auto", "--json")
        assert rune.lines()[0]["row"]["protocol_basis"] == "guess"


async def test_a_probe_says_each_task_and_keeps_the_better_protocol(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN) as (rune, server):
        assert await rune("probe", "qwen3:4b") is ExitCode.DONE
        assert "native: " in rune.err.text
        assert rune.out.text.splitlines()[0].split() == ["probe", "native", "constrained"]
        assert rune.out.text.splitlines()[-1].startswith("qwen3:4b acts by the ")
        assert server.asked("/api/chat")
        assert await rune("probe", "qwen3:4b", "--json") is ExitCode.DONE
        *progress, last = rune.lines()
        assert [line["type"] for line in (progress[0], last)] == ["progress", "done"]
        assert last["kept"] in {"native", "constrained"}
        assert len(last["probe"]) == progress[-1]["total"]
        await rune("show", "qwen3:4b")
        assert "(measured" in rune.out.text


async def test_a_probe_that_is_stopped_keeps_nothing(tmp_path: Path) -> None:
    async with served(tmp_path / "home", QWEN) as (rune, _):
        probing = asyncio.create_task(rune("probe", "qwen3:4b"))
        await until(lambda: "native: " in rune.err.text)
        probing.cancel()
        assert await probing is ExitCode.INTERRUPTED
        assert "Nothing of the probe was kept." in rune.err.text
        await rune("show", "qwen3:4b", "--json")
        assert rune.lines()[0]["probe"] == []
