import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import CapabilityMissingError, ConfigError, ModelUnavailableError, StreamBrokenError
from rune.models.scripted import ERRORS, Answer, ScriptedTransport, Step, breaks, says, words
from rune.models.transport import ChatRequest, Completed, TextDelta, ThinkingDelta, ToolCallReady
from rune.records.tools import ToolCall
from rune.records.usage import Usage
from tests.models.transport_contract import TransportContract, collect, request, text_of


class ScriptedStage:
    def __init__(self) -> None:
        self.model = "scripted"
        self._coming: list[Answer] = []
        self.transport = ScriptedTransport(self._next)

    def will_say(self, *texts: str) -> None:
        self._coming += [says(text) for text in texts]

    def will_break(self, text: str) -> None:
        self._coming.append(breaks(text, StreamBrokenError("broken")))

    def will_call(self, name: str) -> None:
        self._coming.append(says("", calls=[ToolCall(id="call_1", name=name, arguments={})]))

    def will_hang(self, text: str) -> None:
        self._coming.append([*says(text)[:-1], asyncio.Event()])

    async def called_off(self) -> None:
        assert self.transport.closed == 1

    def sent(self) -> bytes:
        return self.transport.requests[-1].messages

    def _next(self, _: ChatRequest) -> Answer:
        return self._coming.pop(0)


class TestScriptedTransport(TransportContract):
    @pytest.fixture
    def stage(self) -> ScriptedStage:
        return ScriptedStage()


@given(st.text())
def test_words_joined_are_the_text_again(text: str) -> None:
    assert "".join(words(text)) == text
    assert all(words(text))


async def test_answers_are_given_in_order_and_then_there_is_none() -> None:
    transport = ScriptedTransport([says("one"), says("two")])
    assert [text_of((await collect(transport, request("scripted")))[0]) for _ in range(2)] == ["one", "two"]
    _, error = await collect(transport, request("scripted"))
    assert isinstance(error, ModelUnavailableError)
    assert "has 2 answers, this is call 3" in error.message


async def test_an_answer_without_an_end_breaks_off() -> None:
    _, error = await collect(ScriptedTransport([[TextDelta("one")]]), request("scripted"))
    assert isinstance(error, StreamBrokenError)


async def test_nothing_is_given_after_the_end() -> None:
    end = Completed("stop", Usage(calls=1))
    chunks, error = await collect(ScriptedTransport([[end, TextDelta("late"), end]]), request("scripted"))
    assert (chunks, error) == ([end], None)


async def test_an_answer_may_be_computed_from_its_request() -> None:
    def answer(asked: ChatRequest) -> list[Step]:
        return says(f"{asked.estimated} tokens")

    chunks, _ = await collect(ScriptedTransport(answer), request("scripted", estimated=42))
    assert text_of(chunks) == "42 tokens"


async def test_a_gate_holds_the_answer_until_it_opens() -> None:
    gate = asyncio.Event()
    transport = ScriptedTransport([[TextDelta("one"), gate, *says(" two")]])
    stream = transport.chat(request("scripted"))
    assert await anext(stream) == TextDelta("one")
    second = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not second.done()
    gate.set()
    assert await second == TextDelta(" two")
    await stream.aclose()


async def test_a_script_on_disk_gives_text_thinking_calls_and_pauses(tmp_path: Path) -> None:
    script = [
        {"text": "one two", "thinking": "hm", "delay_ms": 5},
        {"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]},
        {"text": "last", "reason": "length"},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    transport = ScriptedTransport.from_file(path, sleep=sleep)
    first, second, *rest = [await collect(transport, request("scripted")) for _ in range(4)]
    assert first[0][:-1] == [ThinkingDelta("hm"), TextDelta("one"), TextDelta(" two")]
    assert slept == [0.005] * 3
    assert second[0][0] == ToolCallReady(ToolCall(id="call_1", name="read", arguments={"path": "a"}))
    assert [text_of(chunks) for chunks, _ in rest] == ["last", "last"]
    ended = rest[0][0][-1]
    assert isinstance(ended, Completed)
    assert ended.reason == "length"


@pytest.mark.parametrize("kind", list(ERRORS))
async def test_a_script_can_end_an_answer_in_every_kind_of_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"answers": [{"text": "one two", "error": kind}], "model": "m", "window": 4096}))
    transport = ScriptedTransport.from_file(path)
    chunks, error = await collect(transport, request("m"))
    assert text_of(chunks) == "one two"
    assert type(error) is type(ERRORS[kind]())
    assert await transport.window_in_force("m") == 4096


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be used"),
        ("[]", "holds no answer"),
        ('[{"error": "nonsense"}]', "no error is called 'nonsense'"),
        ('[{"txt": "a"}]', "txt"),
        ('{"answers": 1}', "answers"),
    ],
)
def test_a_script_that_cannot_be_used_names_its_file(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        ScriptedTransport.from_file(path)
    assert caught.value.file == str(path)


def test_a_script_that_is_not_there_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        ScriptedTransport.from_file(tmp_path / "none.json")


async def test_a_script_has_no_vectors() -> None:
    with pytest.raises(CapabilityMissingError):
        await ScriptedTransport().embed("scripted", ["a"])
