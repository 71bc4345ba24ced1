"""Models in the running app, on a model server: they come and go, are fetched, measured, removed, and think."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rune.models.ollama.transport import OllamaTransport
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.tui.transcript_state import Told
from tests.ollama_replies import Reply, Wait
from tests.ollama_server import Fetchable, OllamaServer, ServedModel
from tests.tui.stage import Stage, said, stage

QWEN = ServedModel("qwen3:4b", ("completion", "tools", "thinking"), 40_960, 2_500_000_000, digest="1" * 64)
SMOL = ServedModel("smol:135m", ("completion",), 8192, digest="2" * 64)
BODY = "sha256:" + "a" * 64

SMALL = "smollm2-135m-instruct"


class StandIn(ScriptedTransport):
    """The small model that answers for want of another."""

    def __init__(self) -> None:
        info = ModelInfo(
            name=SMALL,
            provider="embedded",
            capabilities=frozenset({"chat"}),
            context_length=8192,
            size=1,
            digest="t",
        )
        super().__init__(lambda _: says("from the small one"), models=[info])

    @property
    def provider(self) -> str:
        return "embedded"


@asynccontextmanager
async def on_a_server(
    tmp_path: Path, *models: ServedModel, up: bool = True, stand_in: bool = False, **options: Any
) -> AsyncGenerator[tuple[OllamaServer, Stage, int]]:
    """Open the app beside a server with these models, which is `up` from the beginning; also gives its port."""
    server = OllamaServer(models)
    await server.start()
    port = server.port
    if not up:
        await server.close()
    transports = [OllamaTransport(f"http://127.0.0.1:{port}"), *[StandIn()] * stand_in]
    try:
        async with stage(tmp_path, transports=transports, **options) as at:
            await at.until(lambda: at.talk.model is not None, "the model")
            yield server, at, port
    finally:
        await server.close()


def told(at: Stage) -> list[str]:
    return [entry.text for entry in at.talk.transcript.entries if isinstance(entry, Told)]


async def test_a_server_that_is_started_after_rune_is_seen_and_answers(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, up=False) as (server, at, port):
        await at.until_shown("no model", "nobody answers")
        await server.start(port)
        await at.until_shown("qwen3:4b · local", "qwen3:4b is there now; it answers from the next message on")
        await at.say("hello")
        await at.until_shown("You said: hello")
        assert len(told(at)) == 1


async def test_before_the_first_message_it_takes_over_from_the_stand_in(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, up=False, stand_in=True) as (server, at, port):
        await at.until_shown("smollm2-135m-instru… · stand-in")
        await server.start(port)
        await at.until_shown("qwen3:4b · local", "it answers from the next message on")


async def test_that_a_stand_in_answers_is_said_once(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, up=False, stand_in=True) as (_, at, _port):
        await at.until_shown("No model server answers; a small stand-in talks:", "smollm2-135m-instru… · stand-in")
        await said(at, "hello", "from the small one")
        assert told(at) == []


async def test_who_writes_before_it_is_known_who_answers_is_told_of_the_stand_in(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, up=False, stand_in=True) as (_, at, _port):
        at.talk.model = None
        await said(at, "hello", "from the small one")
        assert [text for text in told(at) if f"a small stand-in answers: {SMALL}" in text]


async def test_that_no_model_answers_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNE_COMMAND", "./scripts/rune")
    async with on_a_server(tmp_path, QWEN, up=False, size=(100, 30)) as (_, at, _port):
        await at.until_shown("nobody answers")
        await at.say("hello")
        await at.until_shown("you    hello", "failed")
        await at.idle()
        assert at.text().count("there is no model to ask") == 1
        assert "`rune " not in at.text()


async def test_a_conversation_begun_on_the_stand_in_is_never_switched_in_silence(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, up=False, stand_in=True) as (server, at, port):
        await said(at, "hello", "from the small one")
        await server.start(port)
        await at.until_shown("qwen3:4b is there now", "/model qwen3:4b takes over from the stand-in.", SMALL[:19])
        await said(at, "again", "from the small one")
        await at.say("/model qwen3:4b")
        await at.until_shown("qwen3:4b · local")
        await said(at, "third", "You said: third")


async def test_a_server_that_goes_away_is_told_once_and_the_header_says_so(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, stand_in=True) as (server, at, _):
        await at.until_shown("qwen3:4b · local")
        await server.close()
        at.surface.models.look_soon()
        await at.until_shown(
            "smollm2-135m-instru… · stand-in", "qwen3:4b cannot be asked now", "a small stand-in answers meanwhile"
        )
        at.surface.models.look_soon()
        await at.settled()
        assert len(told(at)) == 1


async def test_a_model_that_vanishes_fails_the_turn_with_the_picker_a_key_away(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, SMOL) as (server, at, _):
        await said(at, "hello", "You said: hello")
        server.models.remove(QWEN)
        await at.say("again")
        await at.until_shown("Ctrl+L chooses another.")
        await at.pilot.press("ctrl+l")
        await at.until_shown("f3 shows all of one")
        await at.type("smol")
        await at.pilot.press("enter")
        await at.until_shown("smol:135m · local")


async def test_a_pull_shows_its_bar_and_the_app_stays_usable(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        gate = asyncio.Event()
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000}, 400_000, Wait(gate))
        await at.say("/model pull qwen3:4b")
        await at.until_shown("qwen3:4b  ", "0 %", "esc stops it")
        await said(at, "hello", "You said: hello")
        await at.say("/model pull other")
        await at.until_shown("qwen3:4b is just being fetched", "F8")
        gate.set()
        await at.until_shown("qwen3:4b is fetched, 1 MB", "Ctrl+L chooses it.")
        await at.until_gone("stops it")
        await at.say("/model qwen3:4b")
        await at.until_shown("qwen3:4b · local")


@pytest.mark.parametrize("key", ["escape", "f8"])
async def test_a_pull_is_stopped_and_goes_on_later(tmp_path: Path, key: str) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        gate = asyncio.Event()
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000}, 400_000, Wait(gate))
        await at.say("/model pull qwen3:4b")
        await at.until_shown("0 %")
        await at.pilot.press(key)
        await at.until_shown("fetching qwen3:4b was stopped at 0 %", "/model pull qwen3:4b goes on from there.")
        await at.until_gone("stops it")
        gate.set()
        await at.say("/model pull qwen3:4b")
        await at.until_shown("qwen3:4b is fetched")


async def test_esc_stops_the_turn_before_the_pull(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        gate = asyncio.Event()
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000}, 400_000, Wait(gate))
        server.reply("/api/chat", Reply([Wait(gate)]))
        await at.say("/model pull qwen3:4b")
        await at.until_shown("0 %", "esc stops it")
        await at.say("hello")
        await at.until_shown("f8 stops it")
        await at.pilot.press("escape")
        await at.idle()
        await at.until_shown("cancelled", "esc stops it")
        await at.pilot.press("escape")
        await at.until_shown("was stopped")


async def test_leaving_stops_a_pull(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        gate = asyncio.Event()
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000}, 400_000, Wait(gate))
        await at.say("/model pull qwen3:4b")
        await at.until_shown("0 %")
    assert [model.name for model in server.models] == ["smol:135m"]


async def test_a_pull_of_what_is_not_there_says_so(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (_, at, _port):
        await at.say("/model pull nothing:7b")
        await at.until_shown("this did not work", "nothing:7b")
        assert at.app.chat.desk is not None
        assert at.app.chat.desk.errands.running is None


async def test_the_picker_fetches_what_was_typed(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000})
        await at.pilot.press("ctrl+l")
        await at.until_shown("smol:135m")
        await at.type("qwen3:4b")
        await at.until_shown("fetch qwen3:4b")
        await at.pilot.press("enter")
        await at.until_shown("qwen3:4b is fetched")


async def test_a_probe_ends_with_its_table(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL, size=(100, 40)) as (_, at, _port):
        await at.say("/model probe smol:135m")
        await at.until_shown("passed", "protocol from now on")
        await at.until_gone("stops it")


async def test_a_level_of_thinking_is_in_the_header_and_goes_with_the_message(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN) as (server, at, _):
        await at.say("/thinking high")
        await at.until_shown("qwen3:4b · local · thinking high")
        identity = await said(at, "hello", "You said: hello")
        assert server.asked("/api/chat")[-1].json["think"] == "high"
        await at.until_shown("thinking high")
    async with on_a_server(tmp_path, QWEN, resume=identity) as (server, at, _):
        await at.until_shown("thinking high")
        await at.say("/thinking auto")
        await at.until_gone("· thinking high")
        await said(at, "again", "You said: again")
        assert not server.asked("/api/chat")[-1].json.get("think")


async def test_what_cannot_think_says_so(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (_, at, _port):
        await at.say("/thinking high")
        await at.until_shown("smol:135m does not support thinking", "/thinking auto")
        assert at.talk.thinking == "auto"


async def test_a_model_that_was_removed_is_not_said_to_come_back(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, SMOL) as (_, at, _port):
        await at.say("/model qwen3:4b")
        await said(at, "hello", "You said: hello")
        await at.say("/model rm qwen3:4b")
        await at.until_shown("qwen3:4b is not there any more", "Ctrl+L chooses another.")
        assert not at.shows("It is used again when it is back.")
