from collections.abc import Sequence
from typing import Any

import pytest

from rune.errors import (
    CHOOSE_ANOTHER,
    CapabilityMissingError,
    ModelError,
    ModelNotFoundError,
    ModelUnavailableError,
    RemoteRefusedError,
)
from rune.models.catalog import survey
from rune.models.ollama.transport import OllamaTransport
from rune.models.router import Choice, Router
from rune.models.scripted import ScriptedTransport
from rune.models.transport import Capability, ModelInfo
from tests.ollama_server import OllamaServer, ServedModel

SILENT = "nobody answers at http://127.0.0.1:11434"
GB = 10**9


def model(name: str, *capabilities: Capability, provider: str = "ollama", **fields: Any) -> ModelInfo:
    return ModelInfo(name=name, provider=provider, capabilities=frozenset(capabilities or {"chat"}), **fields)


TOOLS = model("acts:latest", "chat", "tools")
CHATS = model("chats:latest", "chat")
VECTORS = model("vectors:latest", "embedding")
CLOUD = model("big:120b-cloud", "chat", "tools", remote=True)
EMBEDDED = model("smollm2-135m-instruct", "chat", provider="embedded")


class Silent(ScriptedTransport):
    """A transport whose server is not there."""

    async def models(self) -> list[ModelInfo]:
        raise ModelUnavailableError(SILENT, hint="Start it.")


class Forgetful(ScriptedTransport):
    """A transport that lists one thing and describes another."""

    def __init__(self, listed: Sequence[ModelInfo], described: Sequence[ModelInfo]) -> None:
        super().__init__(models=described)
        self._listed = list(listed)

    async def models(self) -> list[ModelInfo]:
        return self._listed


def ollama(*models: ModelInfo) -> ScriptedTransport:
    transport = ScriptedTransport(models=models)
    if not models:
        transport = Forgetful([], [])
    return transport


async def choose(
    router: Router, requested: str | None = None, conversation: str | None = None, configured: str | None = None
) -> Choice:
    return await router.choose(requested=requested, conversation_model=conversation, configured=configured)


async def failure(
    router: Router, requested: str | None = None, conversation: str | None = None, configured: str | None = None
) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await choose(router, requested, conversation, configured)
    return caught.value


@pytest.mark.parametrize(
    ("named", "name", "reason"),
    [
        (("a", "b", "c"), "a:latest", "requested"),
        ((None, "b", "c"), "b:latest", "conversation"),
        ((None, None, "c"), "c:latest", "configured"),
        (("", "", ""), "a:latest", "first_usable"),
    ],
)
async def test_a_named_model_comes_before_the_conversations_and_that_before_the_configured_one(
    named: tuple[str | None, str | None, str | None], name: str, reason: str
) -> None:
    router = Router([ollama(model("a:latest"), model("b:latest"), model("c:latest"))])
    choice = await choose(router, *named)
    assert (choice.info.name, choice.reason, choice.notice) == (name, reason, "")


async def test_the_only_model_is_taken_as_the_only_one() -> None:
    choice = await choose(Router([ollama(CHATS, VECTORS), ScriptedTransport(models=[EMBEDDED])]))
    assert (choice.info, choice.reason) == (CHATS, "only")


@pytest.mark.parametrize(
    ("models", "memory", "best"),
    [
        ([CHATS, TOOLS], None, "acts:latest"),
        ([VECTORS, CHATS], None, "chats:latest"),
        ([model("first:1b", "chat", "tools"), model("second:1b", "chat", "tools")], None, "first:1b"),
        ([model("huge:70b", "chat", "tools", size=40 * GB), model("mid:8b", "chat", "tools", size=5 * GB)], 16 * GB,
         "mid:8b"),
        ([model("huge:70b", "chat", "tools", size=40 * GB), model("mid:8b", "chat", size=5 * GB)], 16 * GB, "mid:8b"),
        ([model("huge:70b", "chat", "tools", size=40 * GB)], 16 * GB, "huge:70b"),
        ([CLOUD, CHATS], None, "chats:latest"),
    ],
)  # fmt: skip
async def test_by_itself_it_takes_a_local_model_that_fits_and_has_tools(
    models: list[ModelInfo], memory: int | None, best: str
) -> None:
    choice = await choose(Router([ollama(*models)], memory=memory))
    assert choice.info.name == best


async def test_a_models_own_description_counts_not_the_list() -> None:
    listed = [model("a:latest", "chat", "tools"), model("b:latest", "chat")]
    described = [model("a:latest", "embedding"), model("b:latest", "chat", "tools")]
    choice = await choose(Router([Forgetful(listed, described)]))
    assert choice.info == described[1]


async def test_a_model_that_cannot_be_described_is_passed_over() -> None:
    choice = await choose(Router([Forgetful([TOOLS, CHATS], [CHATS])]))
    assert choice.info == CHATS


async def test_with_no_server_the_embedded_model_stands_in_and_says_so() -> None:
    embedded = ScriptedTransport(models=[EMBEDDED])
    choice = await choose(Router([Silent(), embedded]))
    assert choice.transport is embedded
    assert choice.reason == "embedded_stand_in"
    assert "obody answers at http://127.0.0.1:11434" in choice.notice
    assert "smollm2-135m-instruct" in choice.notice
    assert "ollama pull" in choice.notice


@pytest.mark.parametrize(
    ("models", "why"),
    [([], "no model is installed"), ([CLOUD], "not on this machine"), ([VECTORS], "can chat")],
)
async def test_the_notice_says_why_the_server_that_is_there_was_of_no_use(models: list[ModelInfo], why: str) -> None:
    choice = await choose(Router([ollama(*models), ScriptedTransport(models=[EMBEDDED])]))
    assert choice.reason == "embedded_stand_in"
    assert why in choice.notice


@pytest.mark.parametrize(
    ("models", "says"),
    [([model("qwen3:8b", "chat", "tools")], "/model qwen3:8b in the app, -m qwen3:8b on"), ([], ""), ([CLOUD], "")],
)
async def test_a_conversation_that_began_on_the_stand_in_says_when_a_real_model_could_go_on(
    models: list[ModelInfo], says: str
) -> None:
    router = Router([ollama(*models), ScriptedTransport(models=[EMBEDDED])])
    choice = await choose(router, conversation=EMBEDDED.name)
    assert (choice.info.name, choice.reason) == (EMBEDDED.name, "conversation")
    assert (says in choice.notice) if says else choice.notice == ""


async def test_with_nothing_at_all_it_says_what_to_install() -> None:
    for router in (Router([Silent()]), Router([]), Router([ollama()])):
        error = await failure(router)
        assert isinstance(error, ModelUnavailableError)
        assert "no model to ask" in error.message
        assert "Ollama" in error.hint
        assert "rune models fetch-embedded" in error.hint


@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "embedded", "embedded:smollm2-135m-instruct",
        "embedded:smollm2-135m-instruct.gguf",
                                  "embedded/smollm2-135m-instruct"])  # fmt: skip
async def test_the_embedded_model_can_be_named(name: str) -> None:
    choice = await choose(Router([ollama(TOOLS), ScriptedTransport(models=[EMBEDDED])]), name)
    assert (choice.info, choice.reason, choice.notice) == (EMBEDDED, "requested", "")


@pytest.mark.parametrize("name", ["acts", "acts:latest", "ollama/acts", "ollama/acts:latest"])
async def test_a_tag_left_out_means_latest_and_a_provider_may_stand_before_it(name: str) -> None:
    assert (await choose(Router([ollama(TOOLS)]), name)).info == TOOLS


async def test_a_name_that_is_also_a_path_is_found() -> None:
    deep = model("hf.co/people/model:Q4_K_M")
    assert (await choose(Router([ollama(deep)]), "hf.co/people/model:Q4_K_M")).info == deep


async def test_a_requested_model_that_is_not_there_lists_what_is_and_nothing_is_switched() -> None:
    error = await failure(Router([ollama(TOOLS, CHATS)]), "llama9")
    assert isinstance(error, ModelNotFoundError)
    assert "model 'llama9' is not there" in error.message
    assert "acts:latest, chats:latest" in error.hint
    assert CHOOSE_ANOTHER in error.hint


@pytest.mark.parametrize(
    ("position", "whose"), [(0, "model"), (1, "this conversation's model"), (2, "the configured model")]
)
@pytest.mark.parametrize("others", [[EMBEDDED], []])
async def test_of_a_named_model_whose_server_is_silent_it_is_not_said_that_it_is_gone(
    position: int, whose: str, others: list[ModelInfo]
) -> None:
    named: list[str | None] = [None, None, None]
    named[position] = "llama9"
    transports = [Silent(), *(ScriptedTransport(models=[each]) for each in others)]
    error = await failure(Router(transports), *named)
    assert isinstance(error, ModelUnavailableError)
    now = " now" if others else ""
    assert error.message == f"{whose} 'llama9' cannot be asked{now}: {SILENT}"
    if others:
        assert error.hint.startswith("Start it. ")
        assert CHOOSE_ANOTHER in error.hint


async def test_a_long_list_is_cut() -> None:
    error = await failure(Router([ollama(*(model(f"m{number}:latest") for number in range(30)))]), "llama9")
    assert "and 18 more" in error.hint


async def test_a_conversations_model_that_vanished_is_named_and_not_replaced() -> None:
    error = await failure(Router([ollama(TOOLS)]), None, "gone:7b", "acts")
    assert isinstance(error, ModelNotFoundError)
    assert "this conversation's model 'gone:7b' is not there any more" in error.message
    assert CHOOSE_ANOTHER in error.hint


async def test_a_configured_model_that_is_not_there_is_named() -> None:
    error = await failure(Router([ollama(TOOLS)]), None, None, "gone:7b")
    assert "the configured model 'gone:7b' is not there" in error.message


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_remote_model_is_refused_while_local_only_however_it_was_named(position: int) -> None:
    named: list[str | None] = [None, None, None]
    named[position] = "big:120b-cloud"
    assert isinstance(await failure(Router([ollama(TOOLS, CLOUD)]), *named), RemoteRefusedError)
    assert (await choose(Router([ollama(TOOLS, CLOUD)], local_only=False), *named)).info == CLOUD


async def test_a_model_that_only_its_description_shows_to_be_remote_is_refused() -> None:
    hidden = Forgetful([model("m:latest")], [model("m:latest", remote=True)])
    assert isinstance(await failure(Router([hidden]), "m"), RemoteRefusedError)
    assert isinstance(await failure(Router([hidden])), ModelUnavailableError)


async def test_a_model_that_only_makes_vectors_is_refused_by_name() -> None:
    error = await failure(Router([ollama(VECTORS)]), "vectors")
    assert isinstance(error, CapabilityMissingError)
    assert error.capability == "chat"


async def test_all_transports_are_seen_and_those_that_fail_are_kept_as_failures() -> None:
    catalog = await survey([Silent(), ollama(TOOLS), ScriptedTransport(models=[EMBEDDED])])
    assert catalog.names() == ("acts:latest", "smollm2-135m-instruct")
    assert [failure.message for failure in catalog.failures] == [SILENT]


async def test_it_chooses_among_the_models_of_a_real_server() -> None:
    served = [ServedModel("vectors:latest", ("embedding",)),
              ServedModel("wrong:1b", ("embedding",), listed=("completion",)),
              ServedModel("right:1b", ("completion", "tools"), listed=("completion",))]  # fmt: skip
    async with OllamaServer(served) as server:
        transport = OllamaTransport(server.url)
        choice = await choose(Router([transport]))
        assert (choice.info.name, choice.reason) == ("right:1b", "only")
        await transport.close()
