"""What tools did in a conversation goes with it, and what a waiting question needs is known."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from rune.errors import UsageError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.events import BodyErased
from rune.records.loop import LoopState
from rune.records.permissions import PermissionChanged, RuleRevoked
from rune.records.record import Record
from rune.records.tools import CommandRun
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.evidence_inspection import EvidenceState, inspect_evidence
from rune.store.mending.journal_inspection import inspect_journal
from tests.fakes.ids import CountedIds
from tests.store.builders import TIME, a_prepared_call, a_result, a_trace, an_approval, an_id
from tests.store.erasing.erasing_homes import Told, an_eraser, erase, files_with, read_back, tell
from tests.store.spine import a_durable_store, a_spine, an_event

WORDS = "buy the old mill by the river"
RIVERS = "name three rivers, please"
PRICE = "the price of the mill is ninety"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def evidence_of(home: Path) -> EvidenceStore:
    return EvidenceStore(home / "evidence", SystemClock())


def add(home: Path, conversation_id: str, *steps: tuple[str, Record], start: int = 20) -> None:
    """Write more facts of a conversation, or of the system partition."""

    async def write() -> None:
        store, _ = a_durable_store(home, UlidSource(SystemClock()))
        for place, (kind, body) in enumerate(steps, start):
            pseq = place if conversation_id.startswith("cnv_") else 0
            await store.append(an_event(f"e{conversation_id[-1]}{place}", kind, body, conversation_id, pseq))
        await store.close()

    asyncio.run(write())


def kept(home: Path, data: bytes) -> str:
    return evidence_of(home).put(data, source="test").hash


def a_loop_state(home: Path, capsule: str) -> str:
    state = LoopState(
        turn_id=an_id("trn", 1),
        message_id=an_id("msg", 1),
        iterations_used=1,
        iteration_budget=24,
        capsule=capsule,
        round_message_ids=(),
        failures={"sha256:" + "f" * 64: 1},
        recent=("sha256:" + "f" * 64,),
        nudged=False,
        protocol="native",
        **{name: False for name in ("worked", "acted") if name in LoopState.__struct_fields__},
    )
    return kept(home, msgspec.json.encode(state))


def tool_calls(home: Path, conversation_id: str) -> Sequence[tuple[str, Record]]:
    call = a_prepared_call(1, text=f"{PRICE} thousand")
    question = an_approval(1, conversation_id, calls=(call,), loop_state=a_loop_state(home, kept(home, b"the prompt")))
    answered = msgspec.structs.replace(question, decided_by="owner", decision="allow", reason=f"yes, as {PRICE}")
    output = kept(home, f"changed: {PRICE}".encode())
    ran = CommandRun(
        id=an_id("cal", 2),
        conversation_id=conversation_id,
        command=f"echo {PRICE}",
        exit_code=0,
        milliseconds=3,
        output=kept(home, f"{PRICE} euro".encode()),
        summary=PRICE,
    )
    return (
        ("approval.requested", question),
        ("approval.decided", answered),
        ("tool.intent", call),
        ("tool.result", a_result(1, output=output)),
        ("command.run", ran),
    )


def doctored(home: Path) -> EvidenceState:
    """Return what `rune doctor` finds."""
    state = inspect_journal(home / "journal", evidence_of(home))
    return inspect_evidence(home / "evidence", evidence_of(home), state.named, gone=state.gone, before_ms=0)


def rows_of_tools(home: Path) -> int:
    """Return how many rows views that are made of the journal have about calls and questions."""

    async def look() -> int:
        store, evidence = a_durable_store(home, CountedIds(), read_only=True)
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            await spine.engine.caught_up()
            assert not spine.reports.views
            tables = ("intents", "approvals", "rules")
            return await spine.engine.query(
                lambda views: sum(views.execute(f"SELECT count(*) FROM {table}").get for table in tables)  # noqa: S608 names from here
            )

    found = asyncio.run(look())
    for path in home.glob("views-1.db*"):
        path.unlink()
    return found


def test_all_that_questions_and_results_name_is_known(home: Path) -> None:
    tell(home, told := Told(1, WORDS))
    add(home, told.id, *tool_calls(home, told.id))
    found = doctored(home)
    assert (found.whole, found.unnamed, found.missing) == (4, 0, ())


def test_with_a_conversation_go_its_calls_its_questions_and_what_they_name(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    tell(home, mine, other)
    add(home, mine.id, *tool_calls(home, mine.id))
    assert rows_of_tools(home) == 2
    erase(home, mine.id)
    assert files_with(home, PRICE.encode(), b"the prompt") == []
    assert rows_of_tools(home) == 0
    assert [path for path in (home / "evidence").glob("??/*") if path.is_file()] == []


def test_what_another_conversation_still_waits_with_stays(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    tell(home, mine, other)
    add(home, mine.id, *tool_calls(home, mine.id))
    state = a_loop_state(home, kept(home, b"the prompt"))
    question = an_approval(2, other.id, loop_state=state)
    add(home, other.id, ("approval.requested", question))
    erase(home, mine.id)
    assert evidence_of(home).get(kept(home, b"the prompt")) == b"the prompt"
    assert (doctored(home).missing, doctored(home).whole) == ((), 2)


def test_a_prompt_that_holds_erased_words_goes_although_a_question_waits_with_it(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    prompt = kept(home, f"system ... user: {WORDS}".encode())
    add(home, mine.id, ("approval.requested", an_approval(1, mine.id, loop_state=a_loop_state(home, prompt))))
    erase(home, mine.said.id)
    assert not evidence_of(home).has(prompt)
    assert [body.gone for _, body in read_back(home) if isinstance(body, BodyErased)] == [(prompt,)]
    assert doctored(home).missing == ()


def test_a_path_that_a_call_named_takes_nothing_from_others(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    path = "src/poems/rivers_of_europe.md"
    call = a_prepared_call(1)
    call = msgspec.structs.replace(call, call=msgspec.structs.replace(call.call, arguments={"path": path}))
    tell(home, mine, other)
    block = kept(home, f"the project has {path}".encode())
    trace = a_trace(2, other.id, history=0)
    recipe = msgspec.structs.replace(trace.requests[0], prefix=block, blocks=())
    add(home, other.id, ("inference.traced", msgspec.structs.replace(trace, requests=(recipe,))))
    add(home, mine.id, ("tool.intent", call), ("tool.result", a_result(1)))
    erase(home, mine.id)
    assert evidence_of(home).has(block)


@pytest.mark.parametrize(
    ("partition", "kind", "body"),
    [
        (an_id("cnv", 1), "permission.changed", PermissionChanged(conversation_id="", mode="read", previous="edits")),
        ("system", "rule.revoked", RuleRevoked(id=an_id("rul", 1))),
    ],
    ids=["permission", "rule"],
)
def test_what_took_a_permission_back_cannot_be_erased_alone(
    home: Path, partition: str, kind: str, body: Record
) -> None:
    tell(home, Told(1, WORDS))
    add(home, partition, (kind, body))
    (event,) = [event for event, _ in read_back(home) if event.event_type == kind]
    with pytest.raises(UsageError, match="needs it"), an_eraser(home).prepared([event.event_id]):
        pytest.fail("it would be allowed again")
    assert event.timestamp == TIME
