"""How a model's calls come out is counted, once a turn and after it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from rune.config.settings import Settings
from rune.context.window import WindowBook
from rune.errors import EmptyOutputError, ServerError, StorageUnavailableError
from rune.models.router import Router
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import ModelInfo
from rune.records.models import ModelScoreRecord
from rune.records.tools import ToolCall
from rune.turn.failures import TurnFailures
from rune.turn.flight import CallCounts, CancelToken, Flight
from rune.turn.limits import Counters
from rune.turn.request import TurnRequest
from rune.turn.selection import ModelSelection
from tests.turn.rig import Rig, rig
from tests.turn.test_action_protocols import ANSWER, READ, large
from tests.turn.tools import Offered

CALL = '{"tool": "read_file", "arguments": {"path": "a"}}'
NATIVE = says("", calls=[ToolCall(id="call_1", name="read_file", arguments={"path": "a"})])
LEAKED = says('{"name": "read_file", "arguments": {"path": "a"}}')
USELESS = says('{"name": "read_file", "arguments": {}}')
SWALLOWED: list[Step] = [EmptyOutputError(generated=9)]
UNPARSED: list[Step] = [ServerError("error parsing tool call: raw='{'", status=500, phase="first_byte")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def scores(it: Rig) -> list[tuple[int, int, int]]:
    found = [
        msgspec.json.decode(event.body, type=ModelScoreRecord)
        for event in it.services.surface.views.events(types=("model.score",))
    ]
    return [(score.valid, score.repaired, score.failed) for score in found]


@pytest.mark.parametrize(
    ("answers", "counts"),
    [
        ([NATIVE, says("Done.")], (1, 0, 0)),
        ([LEAKED, says("Done.")], (0, 1, 0)),
        ([USELESS, says(ANSWER)], (0, 0, 1)),
        ([SWALLOWED, says(ANSWER)], (0, 0, 1)),
        ([UNPARSED, says(ANSWER)], (0, 0, 1)),
        ([USELESS, says(CALL), says(ANSWER)], (1, 0, 1)),
        ([USELESS, says('{"tool": "read_file", "arguments": {}}')], (0, 0, 2)),
    ],
    ids=["native", "repaired", "useless", "swallowed", "unparsed", "second try", "twice"],
)
async def test_one_score_a_turn_counts_its_calls(
    home: Path, answers: Sequence[list[Step]], counts: tuple[int, int, int]
) -> None:
    async with rig(home, (), model=large(*answers), tools=[Offered(READ)]) as it:
        await it.say()
        assert len(it.model.requests) == len(answers)
        assert scores(it) == [counts]
        order = [event.event_type for event in it.services.surface.views.events(limit=1000)]
    assert order.index("model.score") > order.index("turn.finished")


async def test_counts_add_up_over_turns_and_restarts(home: Path) -> None:
    for total in (1, 2):
        async with rig(home, (), model=large(NATIVE), tools=[Offered(READ)]) as it:
            await it.say()
            assert scores(it)[-1] == (total, 0, 0)


@pytest.mark.parametrize(
    "answer", [says("The Danube."), [ServerError("it failed", status=500, phase="first_byte")]], ids=["words", "failed"]
)
async def test_a_turn_without_calls_leaves_no_score(home: Path, answer: list[Step]) -> None:
    async with rig(home, (), model=large(answer), tools=[Offered(READ)]) as it:
        await it.say()
        assert scores(it) == []


@pytest.mark.parametrize("answer", [NATIVE, SWALLOWED], ids=["call", "swallowed"])
async def test_without_tools_nothing_is_a_call(home: Path, answer: list[Step]) -> None:
    async with rig(home, (), model=large(answer)) as it:
        await it.say()
        assert scores(it) == []


async def test_a_score_that_cannot_be_kept_is_a_failure_in_the_background(tmp_path: Path) -> None:
    refused, told = StorageUnavailableError("the disk is full"), list[tuple[str, BaseException, int]]()

    def record(subsystem: str, error: BaseException, tier: Literal[0, 1, 2], context: str) -> bool:
        del context
        told.append((subsystem, error, tier))
        return True

    async def count(info: ModelInfo, calls: CallCounts) -> None:
        assert (info.name, calls.failed) == ("scripted", 1)
        raise refused

    selection = ModelSelection(
        router=Router((ScriptedTransport(),), local_only=False, memory=None),
        windows=WindowBook(tmp_path),
        memory=lambda: None,
        failures=TurnFailures(record, lambda _: None),
        count=count,
    )
    run = await selection.choose(requested=None, conversation_model="", settings=Settings())
    run.calls.failed = 1
    flight = Flight(
        request=TurnRequest(text="name a river", folder=str(tmp_path)),
        settings=Settings(),
        turn_id="trn_1",
        emit=lambda _: None,
        cancel=CancelToken(),
        counters=Counters(),
        model=run,
    )
    assert await selection.afterwards(flight) == ""
    assert told == [("scorecard", refused, 2)]
