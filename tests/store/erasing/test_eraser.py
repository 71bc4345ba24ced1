"""What is erased is gone from journal and evidence, what is not stays, and nobody is surprised."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from rune.errors import LeaseHeldError, NotFoundError, SlotHeldError, UsageError
from rune.host.clock import SystemClock
from rune.host.files import lock_file
from rune.records.events import BodyErased
from rune.records.messages import ConversationRecord
from rune.records.tasks import TaskStateRecord
from rune.store.codec import ErasedBody
from rune.store.erasing.eraser import NOTE, discard_views, unfinished
from rune.store.evidence_store import EvidenceStore
from rune.store.holders import note, this_process
from rune.store.leases import LeaseBook
from tests.fakes.ids import CountedIds
from tests.store.builders import a_conversation, an_id, renamed
from tests.store.erasing.erasing_homes import Told, an_eraser, erase, files_with, read_back, tell
from tests.store.journals import segment
from tests.store.spine import a_durable_store, a_spine

WORDS = "buy the old mill by the river"
LONG = f"{WORDS} " + "and tell nobody of it, " * 900


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def heads(home: Path) -> list[tuple[str, str, str]]:
    return [(event.event_id, event.prev, event.payload_hash) for event, _ in read_back(home)]


def test_of_a_message_its_words_and_titles_go_and_everything_else_stays(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, "name three rivers, please")
    tell(home, mine, other)
    before = heads(home)
    erase(home, mine.said.id)
    assert files_with(home, WORDS.encode()) == []
    after = read_back(home)
    assert [head for head in heads(home) if head in before] == before
    told = [body for event, body in after if event.partition_key == other.id]
    assert not any(isinstance(body, ErasedBody) for body in told)
    assert mine.answer in [body for _, body in after]


def test_a_conversation_whose_first_message_went_is_still_listed_under_another_title(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    erase(home, mine.said.id)

    async def look() -> None:
        store, evidence = a_durable_store(home, CountedIds(), read_only=True)
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            await spine.engine.caught_up()
            found = await spine.conversations.conversations()
            assert [(each.record.id, each.record.title, each.messages) for each in found] == [(mine.id, "(erased)", 1)]
            active = await spine.tasks.get_active(mine.id)
            assert active is not None
            assert (active.id, active.title, active.status) == (mine.task, "(erased)", "open")
            assert [turn.id for turn in await spine.turns.turns(mine.id)] == [an_id("trn", 1)]
            assert not spine.reports.views

    asyncio.run(look())


def test_of_a_conversation_no_body_is_left_and_it_is_no_longer_listed(home: Path) -> None:
    mine = Told(1, WORDS, answer="the mill is not for sale")
    (blob,) = tell(home, mine, blobs=[b"a block that only this conversation had"])
    erase(home, mine.id)
    assert files_with(home, WORDS.encode(), b"not for sale", b"that only this") == []
    assert all(isinstance(body, ErasedBody) for event, body in read_back(home) if event.partition_key == mine.id)
    assert not EvidenceStore(home / "evidence", SystemClock()).has(blob)
    assert unfinished(home / "journal", EvidenceStore(home / "evidence", SystemClock())) == ()

    async def look() -> None:
        store, evidence = a_durable_store(home, CountedIds(), read_only=True)
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            assert await spine.conversations.conversations(with_hidden=True) == []
            assert await spine.turns.open_turns() == []

    asyncio.run(look())


def test_a_body_that_outgrew_its_line_goes_from_evidence(home: Path) -> None:
    mine = Told(1, LONG)
    tell(home, mine)
    assert any("evidence" in name for name in files_with(home, WORDS.encode()))
    erase(home, mine.said.id)
    assert files_with(home, WORDS.encode(), b"tell nobody") == []


def test_a_blob_that_others_name_stays_unless_it_holds_the_text(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, "name three rivers, please")
    shared, telling = tell(home, mine, other, blobs=[b"you are an assistant", f"recalled: {WORDS}".encode()])
    with an_eraser(home).prepared([mine.id]) as plan:
        assert plan.remains.traces == {other.id: 1}
    erase(home, mine.id)
    evidence = EvidenceStore(home / "evidence", SystemClock())
    assert (evidence.has(shared), evidence.has(telling)) == (True, False)


def test_the_same_words_of_others_stay_and_are_named(home: Path) -> None:
    mine, longer = Told(1, WORDS), Told(2, f"{WORDS}, and paint it green")
    tell(home, mine, longer)
    with an_eraser(home).prepared([mine.said.id]) as plan:
        assert longer.said.id in {other.id for other in plan.remains.others}
    erase(home, mine.said.id)
    assert longer.said in [body for _, body in read_back(home)]
    erase(home, longer.said.id)
    assert files_with(home, WORDS.encode()) == []


def test_an_event_loses_exactly_its_own_body(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    event = an_id("evt", "17")
    assert any(each.event_id == event and each.event_type == "inference.traced" for each, _ in read_back(home))
    erase(home, event)
    assert [each.event_id for each, body in read_back(home) if isinstance(body, ErasedBody)] == [event]
    erased = [body for _, body in read_back(home) if isinstance(body, BodyErased)]
    assert [(body.event_ids, body.reason) for body in erased] == [((event,), f"asked for by the owner: {event}")]


@pytest.mark.parametrize("place", [3, 8], ids=["turn.started", "turn.finished"])
def test_what_recovery_rests_on_is_refused(home: Path, place: int) -> None:
    tell(home, Told(1, WORDS))
    with pytest.raises(UsageError, match="needs it"):
        erase(home, an_id("evt", f"1{place}"))


def test_a_clear_part_of_an_id_will_do_and_an_unclear_one_is_refused(home: Path) -> None:
    first, second = Told(7, WORDS), Told(8, "name three rivers, please")
    tell(home, first, second)
    eraser = an_eraser(home)
    with eraser.prepared([f"cnv_{first.id[-5:]}"]) as plan:
        assert plan.aim.named == (first.id,)
    for text, problem in (
        ("00007", "could be"),
        ("cnv_0000", "could be"),
        ("7", "too short"),
        ("msg_zzzz", "nothing has"),
        ("*", "nothing has"),
    ):
        with pytest.raises(NotFoundError, match=problem), eraser.prepared([text]):
            pass


def test_what_is_erased_already_is_known_by_every_id(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    erase(home, mine.said.id)
    before = [path.read_bytes() for path in sorted((home / "journal").glob("*.jsonl"))]
    with an_eraser(home).prepared([mine.said.id]) as plan:
        assert plan.nothing
    assert [path.read_bytes() for path in sorted((home / "journal").glob("*.jsonl"))] == before


def test_a_conversation_that_is_open_elsewhere_is_refused_and_nothing_changes(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    with LeaseBook(home / "leases", SystemClock()).take(mine.id), pytest.raises(LeaseHeldError):
        erase(home, mine.said.id)
    assert len(read_back(home)) == 8


def test_a_slot_that_somebody_writes_is_refused_with_its_process(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    lock = lock_file(home / "journal" / "w000.lock")
    assert lock is not None
    with lock:
        lock.write(note(this_process(SystemClock())))
        with pytest.raises(SlotHeldError, match=r"process \d+.*w000") as refused:
            erase(home, mine.said.id)
    assert "Nothing was changed" in refused.value.hint
    assert len(read_back(home)) == 8


def test_bodies_in_older_segments_go_too(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine, Told(2, "name three rivers, please"), segment_bytes=600)
    assert len(list((home / "journal").glob("w000-*.jsonl"))) > 5
    erase(home, mine.id)
    assert files_with(home, WORDS.encode()) == []
    assert all(isinstance(body, ErasedBody) for event, body in read_back(home) if event.partition_key == mine.id)


def test_a_torn_tail_is_cut_off_so_that_it_can_be_cleaned(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    whole = segment(home).read_bytes()
    segment(home).write_bytes(whole + whole.splitlines()[4][:-40])
    erase(home, mine.said.id)
    left = files_with(home, WORDS.encode())
    assert len(left) == 1
    assert left[0].startswith("journal/w000-000001.jsonl.torn-")
    assert "journal.repaired" in [event.event_type for event, _ in read_back(home)]


def test_a_renamed_conversation_keeps_the_name_that_it_was_given(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)

    async def rename() -> None:
        store, evidence = a_durable_store(home, CountedIds())
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            await spine.ledger.adopt(mine.id)
            await spine.conversations.change(renamed("Mills", mine.id))
        await store.close()

    asyncio.run(rename())
    erase(home, mine.said.id)
    titles = [body.title for _, body in read_back(home) if isinstance(body, ConversationRecord)]
    tasks = [body.title for _, body in read_back(home) if isinstance(body, TaskStateRecord)]
    assert (titles, tasks) == (["Mills"], ["(erased)"])


def test_a_branch_loses_the_title_that_it_took_over_and_is_told_again_as_a_branch(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    branch = msgspec.structs.replace(
        a_conversation(an_id("cnv", 9), title=WORDS), forked_from=mine.id, fork_msg_id=mine.answer.id
    )

    async def fork() -> None:
        store, evidence = a_durable_store(home, CountedIds())
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            await spine.ledger.adopt(branch.id)
            await spine.conversations.create(branch)
        await store.close()

    asyncio.run(fork())
    with an_eraser(home).prepared([mine.id]) as plan:
        assert plan.forks == {branch.id}
    erase(home, mine.said.id)
    told = [body for event, body in read_back(home) if event.event_type == "conversation.forked"]
    assert [body for body in told if not isinstance(body, ErasedBody)] == [
        msgspec.structs.replace(branch, title="(erased)")
    ]


def test_all_views_files_go_with_what_belongs_to_them(tmp_path: Path) -> None:
    for name in ("views-1.db", "views-3.db", "views-3.db-wal", "views-3.db-shm", "views-12.db-wal", "memory.db"):
        (tmp_path / name).write_text("x")
    assert len(discard_views(tmp_path)) == 5
    assert [path.name for path in tmp_path.glob("*.db*")] == ["memory.db"]


def test_a_note_that_was_left_is_an_unfinished_erasure_even_when_it_is_damaged(home: Path) -> None:
    tell(home, Told(1, WORDS))
    evidence = EvidenceStore(home / "evidence", SystemClock())
    assert unfinished(home / "journal", evidence) == ()
    (home / "journal" / NOTE).write_text("[")
    assert unfinished(home / "journal", evidence) == ("unknown",)
    erase(home)
    assert unfinished(home / "journal", evidence) == ()


def test_a_branch_loses_what_it_was_called_after_when_the_conversation_goes(home: Path) -> None:
    mine = Told(1, WORDS)
    tell(home, mine)
    branch = msgspec.structs.replace(
        a_conversation(an_id("cnv", 9), title=WORDS), forked_from=mine.id, fork_msg_id=mine.answer.id
    )
    named = msgspec.structs.replace(branch, id=an_id("cnv", 8), title="Mills and other old things")

    async def fork() -> None:
        store, evidence = a_durable_store(home, CountedIds())
        async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
            for each in (branch, named):
                await spine.ledger.adopt(each.id)
                await spine.conversations.create(each)
        await store.close()

    asyncio.run(fork())
    with an_eraser(home).prepared([mine.id]) as plan:
        assert plan.forks == {branch.id, named.id}
        assert not plan.remains.others
    erase(home, mine.id)
    assert [name for name in files_with(home, WORDS.encode()) if not name.startswith("views")] == []
    told = [body for event, body in read_back(home) if event.event_type == "conversation.forked"]
    assert [body for body in told if not isinstance(body, ErasedBody)] == [
        named,
        msgspec.structs.replace(branch, title="(erased)"),
    ]
