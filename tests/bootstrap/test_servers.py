"""Servers that a person names, from the settings to the answer; a real `rune` before a real loopback server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from rune.bootstrap.core import open_core
from rune.bootstrap.servers import compatible_servers, reachable_transports
from rune.config.settings import ModelSettings, ServerSettings, Settings
from rune.errors import ConfigError, ModelError, ModelNotFoundError, RemoteRefusedError
from rune.host.paths import resolve_home
from rune.models.catalog import survey
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.refused import RefusedServer
from rune.models.router import Router
from rune.models.transport import ChatTransport
from tests.journeys.shell import Ran, Shell
from tests.openai_server import CHAT, OpenAIServer

KEY = "lab-key-0123456789"


def servers(*found: ServerSettings) -> Settings:
    return Settings(model=ModelSettings(servers=found))


@pytest.fixture
async def lab() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer([{"id": "small", "max_model_len": 8192}, {"id": "team/big"}], key=KEY) as server:
        yield server


async def run(shell: Shell, *arguments: str) -> Ran:
    process = await asyncio.create_subprocess_exec(
        *shell.command(*arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=shell.folder,
        env=shell.environ,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return Ran(process.returncode or 0, out.decode(), err.decode())


def configure(shell: Shell, text: str) -> None:
    shell.home.mkdir(exist_ok=True)
    resolve_home(shell.environ).config_file.write_text(text)


def test_the_environments_server_comes_first_and_each_has_its_own_key() -> None:
    settings = servers(
        ServerSettings(name="lab", url="http://lab:8000", key_env="LAB"),
        ServerSettings(name="open", url="http://10.0.0.2:80/v1"),
    )
    environ = {"RUNE_OPENAI_URL": "http://127.0.0.1:1", "RUNE_OPENAI_KEY": "env-key-0123", "LAB": KEY}
    found = compatible_servers(settings, environ)
    assert [(each.name, each.url, each.key) for each in found] == [
        ("openai-compatible", "http://127.0.0.1:1/v1", "env-key-0123"),
        ("lab", "http://lab:8000/v1", KEY),
        ("open", "http://10.0.0.2:80/v1", ""),
    ]
    assert compatible_servers(Settings(), {"RUNE_OPENAI_KEY": "env-key-0123"}) == []


def test_they_stand_behind_ollama_and_before_the_embedded_model(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    environ = {
        "RUNE_HOME": str(tmp_path / "home"),
        "RUNE_OPENAI_URL": "http://127.0.0.1:1",
        "RUNE_EMBEDDED_MODEL": str(tmp_path / "m.gguf"),
    }
    found = reachable_transports(resolve_home(environ), Settings(), environ)
    assert [each.provider for each in found][:2] == ["ollama", "openai-compatible"]
    assert [each.provider for each in found][2:] in ([], ["embedded"])


def test_an_address_to_which_the_key_must_not_go_is_refused_with_the_servers_name() -> None:
    settings = servers(ServerSettings(name="far", url="http://far.example.com/v1", key_env="FAR"))
    with pytest.raises(ConfigError, match=r"model\.servers\.far\.url"):
        compatible_servers(settings, {"FAR": KEY})


@pytest.mark.parametrize("local_only", [True, False])
def test_while_local_only_a_server_elsewhere_is_not_even_asked_for_its_models(
    tmp_path: Path, *, local_only: bool
) -> None:
    settings = servers(ServerSettings(name="far", url="https://far.example.com/v1", key_env="FAR"))
    model = msgspec.structs.replace(settings.model, local_only=local_only)
    environ = {"RUNE_HOME": str(tmp_path), "OLLAMA_HOST": "https://ollama.example.com", "FAR": KEY}
    found = reachable_transports(resolve_home(environ), msgspec.structs.replace(settings, model=model), environ)
    refused = [each.provider for each in found if isinstance(each, RefusedServer)]
    assert refused == (["ollama", "far"] if local_only else [])


async def test_what_is_not_asked_says_so_and_how_to_allow_it(tmp_path: Path) -> None:
    environ = {"RUNE_HOME": str(tmp_path), "OLLAMA_HOST": "https://ollama.example.com"}
    (far, *_) = reachable_transports(resolve_home(environ), Settings(), environ)
    for names in ({"requested": "big"}, {"requested": None}):
        with pytest.raises(ModelError, match=r"ollama\.example\.com.* was not asked.*local_only") as caught:
            await Router([far]).choose(conversation_model=None, configured=None, **names)
        assert "model.local_only: false" in caught.value.hint
        assert isinstance(caught.value, RemoteRefusedError) == (names["requested"] is not None)


async def test_a_key_is_masked_whatever_its_variable_is_called(tmp_path: Path) -> None:
    environ = {"RUNE_HOME": str(tmp_path), "LAB": "plain words", "RUNE_OPENAI_KEY": "/var/looks/like/a/path"}
    resolve_home(environ).config_file.write_text(
        "model:\n  servers:\n    - {name: lab, url: 'http://lab', key_env: LAB}\n"
    )
    core = open_core(environ, read_only=False, on_rebuild=None)
    masked = core.masker.mask("it is plain words, or /var/looks/like/a/path")
    await core.ledger.close()
    core.engine.close()
    await core.store.close()
    assert "plain words" not in masked
    assert "/var/looks" not in masked


async def test_two_servers_with_a_model_of_one_name_are_told_apart(lab: OpenAIServer) -> None:
    async with OpenAIServer([{"id": "small"}]) as other:
        settings = servers(
            ServerSettings(name="other", url=other.base_url),
            ServerSettings(name="lab", url=lab.base_url, key_env="LAB"),
        )
        transports: list[ChatTransport] = [
            OpenAITransport(address) for address in compatible_servers(settings, {"LAB": KEY})
        ]
        catalog = await survey(transports)
        assert catalog.names() == ("other/small", "lab/small", "lab/team/big")
        found = {
            name: catalog.find(name) for name in ("small", "lab/small", "team/big", "lab/team/big", "big", "lab/x")
        }
        assert {name: offer and offer.info.name for name, offer in found.items()} == {
            "small": "other/small",
            "lab/small": "lab/small",
            "team/big": "lab/team/big",
            "lab/team/big": "lab/team/big",
            "big": None,
            "lab/x": None,
        }
        router = Router(transports)
        choice = await router.choose(requested="lab/small", conversation_model=None, configured=None)
        again = await router.choose(requested=None, conversation_model=choice.info.name, configured=None)
        assert (again.info.provider, again.transport.provider) == ("lab", "lab")
        with pytest.raises(ModelNotFoundError, match="lab/x"):
            await router.choose(requested="lab/x", conversation_model=None, configured=None)
        for transport in transports:
            await transport.close()


async def test_a_named_server_answers_and_its_key_is_nowhere_in_the_home(tmp_path: Path, lab: OpenAIServer) -> None:
    shell = Shell(tmp_path)
    shell.environ["LAB"] = KEY
    configure(shell, f"model:\n  servers:\n    - {{name: lab, url: '{lab.base_url}', key_env: LAB}}\n")
    ran = await run(shell, "-p", "hello there", "-m", "small", "--output-format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert "You said:" in ran.out
    sent = lab.asked(CHAT)[0]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.json["model"] == "small"
    again = await run(shell, "-p", "hello again", "-c")
    assert again.code == 0
    assert len(lab.asked(CHAT)) == 2
    assert not [file for file in shell.home.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]


async def test_a_wrong_key_and_a_wrong_path_are_said_plainly(tmp_path: Path, lab: OpenAIServer) -> None:
    shell = Shell(tmp_path)
    shell.environ |= {"RUNE_OPENAI_URL": lab.base_url, "RUNE_OPENAI_KEY": "wrong-0123456"}
    wrong = await run(shell, "-p", "hello", "-m", "small")
    assert wrong.code != 0
    assert "401: Invalid API Key" in wrong.err
    assert "RUNE_OPENAI_KEY" in wrong.err
    assert "wrong-0123456" not in wrong.err + wrong.out
    shell.environ |= {"RUNE_OPENAI_URL": f"{lab.url}/api", "RUNE_OPENAI_KEY": KEY}
    astray = await run(shell, "-p", "hello", "-m", "small")
    assert "Is `/v1` missing" in astray.err


@pytest.mark.parametrize("named", [True, False])
async def test_while_local_only_holds_nothing_at_all_reaches_a_remote_server(tmp_path: Path, named: bool) -> None:
    async with OpenAIServer([{"id": "big", "max_model_len": 8192}]) as proxy:
        shell = Shell(tmp_path)
        shell.environ |= {"RUNE_OPENAI_URL": "http://models.example.com/v1", "HTTP_PROXY": proxy.url}
        asked = ["-p", "a secret plan", *(["-m", "openai-compatible/big"] if named else [])]
        refused = await run(shell, *asked)
        assert refused.code != 0
        assert "local_only" in refused.err
        assert not proxy.requests
        configure(shell, "model:\n  local_only: false\n")
        allowed = await run(shell, *asked)
        assert allowed.code == 0
        assert allowed.err == "rune: openai-compatible/big is remote: what you send leaves this machine\n"
        assert b"a secret plan" in proxy.asked(CHAT)[0].body
