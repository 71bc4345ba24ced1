"""Models as surfaces get them: rows, details, fetching, removing, and what arrives, against a real loopback server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from rune.bootstrap import build
from rune.errors import ModelNotFoundError, ModelUnavailableError, RemoteRefusedError, StreamBrokenError, UsageError
from rune.models.ollama.transport import OllamaTransport
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ChatTransport, ModelInfo
from rune.surface.model_list import CANNOT_CHAT, REMOTE_REFUSED
from rune.surface.model_values import PullRow
from rune.surface.models import Models
from rune.surface.rows import ModelRow
from tests.ollama_server import Drop, Fetchable, OllamaServer, Pause, ServedModel, status_line, stream
from tests.surface.test_views import CHATS, Describing, Down

GIGABYTES = 2_500_000_000


def embedded() -> ScriptedTransport:
    """Return what stands in, as far as lists are concerned."""
    return ScriptedTransport(
        models=[ModelInfo(name="smollm2-135m-instruct", provider="embedded", capabilities=CHATS, context_length=2048)]
    )


def _configure(home: Path, config: str) -> None:
    home.mkdir()
    (home / "config.yaml").write_text(config)


@asynccontextmanager
async def models_of(home: Path, *transports: ChatTransport, config: str = "") -> AsyncGenerator[Models]:
    if config:
        _configure(home, config)
    services = build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=transports)
    try:
        await services.start()
        yield services.surface.models
    finally:
        await services.close()


@asynccontextmanager
async def served(home: Path, *models: ServedModel, config: str = "") -> AsyncGenerator[tuple[Models, OllamaServer]]:
    async with (
        OllamaServer(models) as server,
        models_of(home, OllamaTransport(server.url), embedded(), config=config) as found,
    ):
        yield found, server


async def pulled(models: Models, name: str) -> list[PullRow]:
    async with asyncio.timeout(30), aclosing(models.pull(name)) as rows:
        return [row async for row in rows]


async def test_models_say_what_they_are_and_why_they_may_not_answer(tmp_path: Path) -> None:
    model = Describing(
        models=[
            ModelInfo(name="small", provider="scripted", capabilities=CHATS, context_length=8192, size=GIGABYTES),
            ModelInfo(name="bare", provider="scripted", capabilities=frozenset()),
            ModelInfo(name="mute", provider="scripted", capabilities=frozenset()),
            ModelInfo(name="far", provider="scripted", capabilities=CHATS, context_length=8192, remote=True),
            ModelInfo(name="vectors", provider="scripted", capabilities=frozenset({"embedding"}), context_length=512),
            ModelInfo(name="smollm2-135m-instruct", provider="embedded", capabilities=CHATS, context_length=2048),
        ]
    )
    async with models_of(tmp_path / "home", model) as models:
        assert models.known is None
        rows, unseen = await models.rows()
        assert models.known == rows
    assert list(unseen) == []
    assert rows[0] == ModelRow(
        name="small",
        provider="scripted",
        size=GIGABYTES,
        window=8192,
        capabilities=("chat", "tools"),
        loaded=True,
        loaded_window=8192,
        loaded_size=GIGABYTES,
        protocol="constrained",
        protocol_basis="guess",
    )
    assert [(row.name, row.window, row.refused) for row in rows[1:]] == [
        ("bare", 4096, ""),
        ("mute", None, ""),
        ("far", 8192, REMOTE_REFUSED),
        ("vectors", 512, CANNOT_CHAT),
        ("smollm2-135m-instruct", 2048, ""),
    ]
    assert [row.name for row in rows if row.stand_in] == ["smollm2-135m-instruct"]


async def test_a_server_that_is_down_is_told_and_raises_nothing(tmp_path: Path) -> None:
    async with models_of(tmp_path / "home", Down()) as models:
        rows, unseen = await models.rows()
    assert list(rows) == []
    assert [(error.message, error.hint) for error in unseen] == [("nobody answers", "Start it.")]


async def test_a_row_says_what_is_loaded_with_which_window_and_that_it_can_think(tmp_path: Path) -> None:
    thinks = ServedModel("qwen3:4b", capabilities=("completion", "tools", "thinking"), context_length=40960)
    async with served(tmp_path / "home", thinks, ServedModel("other:1b")) as (models, server):
        server.loaded["qwen3:4b"] = 16384
        (one, other, _), _ = await models.rows()
    assert (one.loaded, one.loaded_window, one.on_gpu, one.thinks) == (True, 16384, 0.0, True)
    assert (other.loaded, other.loaded_window, other.on_gpu, other.thinks) == (False, None, None, False)
    assert one.expires_at


async def test_show_says_everything_about_one(tmp_path: Path) -> None:
    async with served(tmp_path / "home", ServedModel("qwen3:4b", context_length=40960)) as (models, _):
        details = await models.show("qwen3:4b")
        assert details.row.name == "qwen3:4b"
        assert details.where.startswith("local: ")
        assert (details.window, details.window_why) == (16384, "context.max_context")
        assert details.protocol_why
        assert details.probe == ()
        with pytest.raises(ModelNotFoundError) as refused:
            await models.show("qwen3:5b")
        assert "qwen3:4b" in refused.value.hint
        assert (await models.show("embedded")).where.startswith("local: a process of Rune's own")


async def test_looking_at_a_model_keeps_no_window(tmp_path: Path) -> None:
    async with served(tmp_path / "home", ServedModel("qwen3:4b")) as (models, _):
        await models.show("qwen3:4b")
    assert [*(tmp_path / "home").rglob("windows.json")] == []


async def test_a_pull_adds_its_parts_up_and_ends_with_the_model_there(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 1000, "sha256:" + "b" * 64: 500})
        rows = await pulled(models, "qwen3:4b")
        assert rows[0] == PullRow(model="qwen3:4b", status="pulling manifest")
        assert [row.done for row in rows if row.total == 1000] == [0, 250, 500, 750, 1000]
        assert (rows[-1].done, rows[-1].total, rows[-1].finished) == (1500, 1500, True)
        assert not any(row.finished for row in rows[:-1])
        assert [row.name for row in (await models.rows())[0]] == ["qwen3:4b", "smollm2-135m-instruct"]


async def test_a_pull_that_was_called_off_goes_on_where_it_was(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b", {"sha256:" + "a" * 64: 1000}, 100, between=Pause(0.01))
        async with asyncio.timeout(30), aclosing(models.pull("qwen3:4b")) as rows:
            async for row in rows:
                if row.done == 500:
                    break
        again = await pulled(models, "qwen3:4b")
        assert next(row.done for row in again if row.done is not None) in {500, 600}
        assert again[-1].finished


@pytest.mark.parametrize("name", ["", " ", "two words", "-x", "a:", "qwen\u202e3", "x" * 400, "../../etc"])
async def test_what_is_no_name_of_a_model_is_refused_before_anything_is_asked(tmp_path: Path, name: str) -> None:
    async with served(tmp_path / "home") as (models, server):
        with pytest.raises(UsageError) as refused:
            await pulled(models, name)
        assert "qwen3:4b" in refused.value.hint
        assert server.asked("/api/pull") == []


async def test_an_address_from_the_library_is_met_with_its_name(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, _):
        with pytest.raises(UsageError) as refused:
            await pulled(models, "https://ollama.com/library/qwen3:4b")
        assert refused.value.hint.endswith(": qwen3:4b")


async def test_a_name_that_the_library_does_not_know_is_said(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, _):
        with pytest.raises(ModelNotFoundError) as refused:
            await pulled(models, "qwne3:4b")
        assert "'qwne3:4b'" in refused.value.message
        assert "ollama.com/library" in refused.value.hint


async def test_the_name_of_the_server_before_it_is_understood(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server):
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b")
        assert (await pulled(models, "ollama/qwen3:4b"))[-1].model == "qwen3:4b"


async def test_a_cloud_model_is_not_fetched_while_only_local_ones_may_be_used(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server):
        with pytest.raises(RemoteRefusedError) as refused:
            await pulled(models, "gpt-oss:120b-cloud")
        assert "local_only" in refused.value.hint
        assert server.asked("/api/pull") == []
    async with served(tmp_path / "open", config="model:\n  local_only: false\n") as (models, server):
        server.fetchable["gpt-oss:120b-cloud"] = Fetchable("gpt-oss:120b-cloud")
        assert (await pulled(models, "gpt-oss:120b-cloud"))[-1].finished


async def test_a_pull_that_ends_without_proof_is_no_success(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server):
        server.reply("/api/pull", stream(status_line("pulling manifest"), Drop()))
        with pytest.raises(StreamBrokenError):
            await pulled(models, "qwen3:4b")


async def test_without_a_server_that_fetches_it_is_said_what_to_do(tmp_path: Path) -> None:
    async with models_of(tmp_path / "home", embedded()) as models:
        with pytest.raises(ModelUnavailableError) as refused:
            await pulled(models, "qwen3:4b")
        assert "Install Ollama" in refused.value.hint
    async with models_of(tmp_path / "other", OllamaTransport("http://127.0.0.1:1")) as models:
        with pytest.raises(ModelUnavailableError) as refused:
            await pulled(models, "qwen3:4b")
        assert refused.value.hint


async def test_removing_says_what_it_frees_and_what_shares_its_weights(tmp_path: Path) -> None:
    one, two = ServedModel("one:1b", size=1000, digest="1"), ServedModel("two:1b", size=2000, digest="2")
    same = ServedModel("same:latest", size=2000, digest="2")
    async with served(tmp_path / "home", one, two, same) as (models, server):
        removed = await models.remove("one:1b")
        assert (removed.model, removed.freed, removed.shared_with) == ("one:1b", 1000, ())
        removed = await models.remove("two:1b")
        assert (removed.freed, removed.shared_with) == (0, ("same:latest",))
        assert [model.name for model in server.models] == ["same:latest"]
        with pytest.raises(ModelNotFoundError):
            await models.remove("one:1b")


async def test_what_cannot_be_removed_is_said_with_what_to_do(tmp_path: Path) -> None:
    plain = ScriptedTransport(models=[ModelInfo(name="served", provider="other", capabilities=CHATS)])
    async with models_of(tmp_path / "home", plain, embedded()) as models:
        with pytest.raises(UsageError) as refused:
            await models.remove("smollm2-135m-instruct")
        assert "RUNE_EMBEDDED_MODEL" in refused.value.hint
        with pytest.raises(UsageError) as refused:
            await models.remove("served")
        assert "server" in refused.value.message


async def test_a_protocol_that_was_fixed_holds_until_it_is_taken_back(tmp_path: Path) -> None:
    async with served(tmp_path / "home", ServedModel("qwen3:4b")) as (models, _):
        guessed = (await models.show("qwen3:4b")).row.protocol
        fixed = (await models.fix_protocol("qwen3:4b", "native")).row
        assert (fixed.protocol, fixed.protocol_basis) == ("native", "owner")
        assert ((await models.rows())[0][0].protocol) == "native"
        back = (await models.fix_protocol("qwen3:4b", None)).row
        assert (back.protocol, back.protocol_basis) == (guessed, "guess")


async def test_a_remote_model_is_not_measured_while_only_local_ones_may_be_used(tmp_path: Path) -> None:
    far = ScriptedTransport(
        lambda _: says("yes"), models=[ModelInfo(name="far", provider="x", capabilities=CHATS, remote=True)]
    )
    async with models_of(tmp_path / "home", far) as models:
        with pytest.raises(RemoteRefusedError):
            await anext(models.probe("far"))
    assert far.requests == []


async def test_what_arrives_is_told_with_what_would_answer_now(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as (models, server), aclosing(models.arrivals()) as arrivals:
        before = await asyncio.wait_for(anext(arrivals), 10)
        assert (before.first, before.answers, before.stand_in, before.came) == (True, "smollm2-135m-instruct", True, ())
        server.fetchable["qwen3:4b"] = Fetchable("qwen3:4b")
        watching = asyncio.ensure_future(anext(arrivals))
        await pulled(models, "qwen3:4b")
        after = await asyncio.wait_for(watching, 10)
        assert (after.first, after.came, after.went) == (False, ("qwen3:4b",), ())
        assert (after.answers, after.stand_in, after.serving) == ("qwen3:4b", False, True)
        watching = asyncio.ensure_future(anext(arrivals))
        await models.remove("qwen3:4b")
        gone = await asyncio.wait_for(watching, 10)
        assert (gone.came, gone.went, gone.answers) == ((), ("qwen3:4b",), "smollm2-135m-instruct")


async def test_a_server_that_is_down_is_named_in_what_arrives(tmp_path: Path) -> None:
    async with models_of(tmp_path / "home", Down()) as models, aclosing(models.arrivals()) as arrivals:
        nothing = await asyncio.wait_for(anext(arrivals), 10)
    assert (nothing.models, nothing.answers, nothing.serving) == ((), "", False)
    assert nothing.unseen == ("nobody answers",)
