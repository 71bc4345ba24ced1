"""Models in the running app under rough use: names of any kind, very many of them, a server that comes and goes, a
model taken away under an answer, what is begun twice, and nothing left behind on leaving.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len

from rune.models.ollama.transport import OllamaTransport
from rune.text.safe_text import safe_text
from tests.ollama_replies import Reply, Wait, line, says
from tests.ollama_server import Fetchable, OllamaServer, ServedModel
from tests.small_disk import needs_root, small_disk
from tests.tui.stage import Stage, said, stage
from tests.tui.test_models_in_the_app import BODY, QWEN, SMOL, on_a_server

ODD: Sequence[str] = (
    "a" * 300,
    "esc\x1b[2J\x1b]52;c;aGk=\x07:1b",
    "bidi\u202eabc\u2066:1b",
    "漢字" * 40,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 20,
    "e" + "\u0301" * 60,
    "[@click=app.quit()]x[/]",
)


def rows_fit(at: Stage, width: int) -> None:
    for row in at.text().split("\n"):
        assert cell_len(row) <= width, row
        assert row == safe_text(row, newlines=False, tabs=False)


@pytest.mark.parametrize("width", [20, 40, 80])
async def test_a_name_of_any_kind_fits_everywhere_and_acts_on_nothing(tmp_path: Path, width: int) -> None:
    models = [ServedModel(name, ("completion", "tools"), 8192, 10**9) for name in ODD]
    async with on_a_server(tmp_path, *models, size=(width, 24)) as (_, at, _port):
        for name in ODD:
            at.talk.requested_model = name
            await at.talk.look_for_model()
            await at.settled()
            assert at.talk.model is not None
            assert at.talk.model.name == name
            rows_fit(at, width)
        await at.pilot.press("ctrl+l")
        await at.until_shown("in use") if width > 20 else await at.settled()
        for _ in ODD:
            rows_fit(at, width)
            await at.pilot.press("ctrl+d")
            rows_fit(at, width)
            await at.pilot.press("down")
        await at.pilot.press("escape")
        await at.say("hello")
        await at.idle()
        rows_fit(at, width)
        assert at.app.return_code is None


async def test_among_two_thousand_models_typing_keeps_up(tmp_path: Path) -> None:
    models = [ServedModel(f"model-{number}:7b", ("completion",), 8192, 10**9) for number in range(2_000)]
    async with on_a_server(tmp_path, *models) as (_, at, _port):
        await at.pilot.press("ctrl+l")
        await at.until_shown("model-0:7b")
        began = time.process_time()
        await at.type("model-1999")
        await at.until_shown("model-1999:7b")
        took = (time.process_time() - began) / len("model-1999")
        assert took < 0.25, f"{1000 * took:.0f} ms a key"
        await at.pilot.press("enter")
        await at.until_shown("model-1999:7b · local")


async def test_a_server_that_comes_and_goes_costs_no_turn_and_says_little(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, stand_in=True) as (server, at, port):
        go_on = asyncio.Event()
        server.reply("/api/chat", Reply([Wait(go_on)]))
        await at.say("hello")
        await at.until(lambda: bool(server.asked("/api/chat")), "the request")
        other = OllamaServer([QWEN])
        for _ in range(5):
            at.surface.models.look_soon()
            server.models.clear()
            await at.paint()
            at.surface.models.look_soon()
            server.models.append(QWEN)
            await at.paint()
        assert at.talk.busy
        await at.pilot.press("escape")
        await at.idle()
        go_on.set()
        await server.close()
        at.surface.models.look_soon()
        await at.until_shown("cannot be asked now")
        await other.start(port)
        try:
            at.surface.models.look_soon()
            await at.until_shown("qwen3:4b · local")
            await said(at, "again", "You said: again")
        finally:
            await other.close()


async def test_the_model_in_use_can_be_removed_and_the_next_message_says_so(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, SMOL) as (server, at, _):
        await said(at, "hello", "You said: hello")
        await at.say("/model rm qwen3:4b")
        await at.until(lambda: [model.name for model in server.models] == ["smol:135m"], "the removal")
        await at.say("again")
        await at.until_shown("Ctrl+L chooses another.")
        await at.idle()
        await at.say("/model smol:135m")
        await at.until_shown("smol:135m · local")
        await said(at, "third", "You said: third")


async def test_a_model_chosen_while_an_answer_streams_answers_the_next_message(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN, SMOL) as (server, at, _):
        go_on = asyncio.Event()
        server.reply(
            "/api/chat", Reply([line({"role": "assistant", "content": "the Elbe"}), Wait(go_on), *says("!").parts])
        )
        await at.say("river?")
        await at.until_shown("the Elbe")
        await at.say("/model smol:135m")
        await at.until(lambda: at.talk.requested_model == "smol:135m", "the choice")
        await at.say("next")
        await at.until_shown("waiting 1/1")
        go_on.set()
        await at.until(lambda: len(server.asked("/api/chat")) == 2, "the next request")
        assert [asked.json["model"] for asked in server.asked("/api/chat")] == ["qwen3:4b", "smol:135m"]
        await at.idle()


async def test_two_apps_fetch_the_same_and_leaving_in_the_middle_leaves_no_task(tmp_path: Path) -> None:
    before, other = asyncio.all_tasks(), tmp_path / "other"
    other.mkdir()
    async with on_a_server(tmp_path, SMOL) as (server, at, port):
        gate = asyncio.Event()
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000}, 400_000, Wait(gate))
        async with stage(other, transports=[OllamaTransport(f"http://127.0.0.1:{port}")]) as second:
            await at.say("/model pull qwen3:4b")
            await second.until(lambda: second.talk.model is not None, "the model")
            await second.say("/model pull qwen3:4b")
            await at.until_shown("0 %")
            await second.until_shown("0 %")
            for width in (20, 80, 33):
                await at.pilot.resize_terminal(width, 12)
                await at.settled()
                rows_fit(at, width)
            await second.pilot.press("escape")
            await second.until_shown("was stopped")
        await at.until(lambda: at.app.chat.desk is not None, "the desk")
    left = [task.get_name() for task in asyncio.all_tasks() - before if not task.done()]
    assert left == []


@needs_root
@pytest.mark.parametrize(
    ("said_line", "shown"),
    [
        ("/model pull qwen3:4b", "qwen3:4b is fetched"),  # it is the server's disk that it is written to
        ("/model probe smol:135m", "this did not work"),
        ("/thinking off", "nothing can be written, only read"),
        ("/model rm smol:135m", "removed smol:135m"),
    ],
)
async def test_where_nothing_can_be_written_work_on_models_ends_in_plain_words(
    tmp_path: Path, said_line: str, shown: str
) -> None:
    with small_disk(tmp_path / "home") as disk:
        async with on_a_server(tmp_path, SMOL, size=(100, 40)) as (_, at, _port):
            await said(at, "hello", "You said: hello")
        disk.make_read_only()
        async with on_a_server(tmp_path, SMOL, size=(100, 40), carry_on=True) as (server, at, _port):
            server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {BODY: 1_000_000})
            await at.until_shown("nothing can be written")
            await at.say(said_line)
            desk = at.app.chat.desk
            assert desk is not None
            await at.until_shown(shown)
            await at.until(lambda: desk.errands.running is None, "the end of it")
            await at.settled()
            assert "inference_trace" not in at.text()
            assert "fault of Rune's own" not in at.text()
            assert len(server.asked("/api/chat")) == 0
            assert at.app.return_code is None


async def test_how_much_is_thought_is_each_channels_own_and_goes_along_into_a_fork(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, QWEN) as (server, at, _):
        await at.say("/thinking high")
        await at.until_shown("thinking high")
        await at.pilot.press("f4")
        await at.until_gone("thinking high")
        await at.say("/thinking off")
        await at.until_shown("thinking off")
        await said(at, "in the chat", "You said: in the chat")
        await at.pilot.press("f3")
        await at.until_shown("thinking high")
        first = await said(at, "in the task", "You said: in the task")
        await at.say("/fork")
        await at.until(lambda: at.talk.conversation_id != first, "the fork")
        await at.until_shown("thinking high")
        await said(at, "in the fork", "You said: in the fork")
        assert [asked.json["think"] for asked in server.asked("/api/chat")] == [False, "high", "high"]


async def test_nothing_is_measured_beside_an_answer_of_the_other_channel(tmp_path: Path) -> None:
    async with on_a_server(tmp_path, SMOL) as (server, at, _):
        go_on = asyncio.Event()
        server.reply("/api/chat", Reply([line({"role": "assistant", "content": "the Elbe"}), Wait(go_on)]))
        await at.say("river?")
        await at.until_shown("the Elbe")
        await at.pilot.press("f4")
        await at.say("/model probe smol:135m")
        await at.until_shown("a turn runs in the task", "Measure once it has ended.")
        assert len(server.asked("/api/chat")) == 1
        await at.pilot.press("f3", "escape")
        await at.idle()
        go_on.set()
