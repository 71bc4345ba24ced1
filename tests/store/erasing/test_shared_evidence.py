"""Evidence that events which stay name too: what is removed, or was lost, is known from then on; the rest is kept."""

from pathlib import Path

import msgspec
import pytest

from rune.errors import StorageUnavailableError
from rune.host.clock import SystemClock
from rune.records.events import BodyErased
from rune.records.record import from_json, to_builtins
from rune.store.codec import canon
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.evidence_inspection import EvidenceState, inspect_evidence
from rune.store.mending.journal_inspection import inspect_journal
from tests.store.builders import an_id
from tests.store.erasing.erasing_homes import Told, an_eraser, erase, read_back, tell

WORDS = "buy the old mill by the river"
RIVERS = "name three rivers, please"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def evidence_of(home: Path) -> EvidenceStore:
    return EvidenceStore(home / "evidence", SystemClock())


def blob_file(home: Path, name: str) -> Path:
    return home / "evidence" / name[7:9] / name[9:]


def doctored(home: Path) -> EvidenceState:
    """Return what `rune doctor` finds."""
    state = inspect_journal(home / "journal", evidence_of(home))
    return inspect_evidence(home / "evidence", evidence_of(home), state.named, gone=state.gone, before_ms=0)


def gone(home: Path) -> list[str]:
    return [blob for _, body in read_back(home) if isinstance(body, BodyErased) for blob in body.gone]


def test_what_an_erasure_took_from_others_is_known_and_nothing_is_broken(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    shared, telling = tell(home, mine, other, blobs=[b"you are an assistant", f"recalled: {WORDS}".encode()])
    erase(home, mine.id)
    found = doctored(home)
    assert (found.missing, found.tampered, found.erased, found.whole) == ((), (), 1, 1)
    assert gone(home) == [telling]
    assert evidence_of(home).has(shared)


def test_what_is_kept_again_later_is_whole(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    telling = f"recalled: {WORDS}".encode()
    tell(home, mine, other, blobs=[telling])
    erase(home, mine.id)
    evidence_of(home).put(telling, source="test")
    assert (doctored(home).erased, doctored(home).whole) == (0, 1)


@pytest.mark.parametrize("how", ["missing", "tampered", "no-file"])
def test_what_was_lost_is_given_up_with_one_event_that_names_it(home: Path, how: str) -> None:
    (blob,) = tell(home, Told(1, WORDS), Told(2, RIVERS), blobs=[b"a block of both"])
    blob_file(home, blob).unlink()
    if how == "tampered":
        blob_file(home, blob).write_bytes(b"another block")
    elif how == "no-file":
        blob_file(home, blob).mkdir()
    before = doctored(home)
    assert before.missing + before.tampered + before.unreadable == (blob,)
    naming = inspect_journal(home / "journal", evidence_of(home)).named[blob]
    assert naming.alone
    erase(home, naming.event_id)
    after = doctored(home)
    assert (after.missing, after.tampered, after.unreadable, after.erased) == ((), (), (), 1)


@pytest.mark.parametrize("how", ["missing", "tampered"])
def test_an_event_whose_own_body_was_lost_can_be_erased(home: Path, how: str) -> None:
    mine = Told(1, f"{WORDS} " + "and tell nobody of it, " * 900)
    tell(home, mine)
    state = inspect_journal(home / "journal", evidence_of(home))
    (blob,) = [name for name, naming in state.named.items() if naming.event_type == "user.message"]
    blob_file(home, blob).unlink()
    if how == "tampered":
        blob_file(home, blob).write_bytes(b"another block")
    with an_eraser(home).prepared([state.named[blob].event_id]) as plan:
        assert plan.choice.texts == []
    erase(home, state.named[blob].event_id)
    after = doctored(home)
    assert (after.missing, after.tampered) == ((), ())
    assert not blob_file(home, blob).exists()


def test_a_body_without_blobs_is_stored_as_before_they_came() -> None:
    old = b'{"event_ids":["%s"],"reason":"asked for","schema_version":1}' % an_id("evt", 1).encode()
    body = from_json(old, BodyErased)
    assert (body.gone, canon(body)) == ((), old)
    more = msgspec.structs.replace(body, blobs=("sha256:" + "a" * 64,))
    assert from_json(canon(more), BodyErased) == more
    assert "blobs" not in to_builtins(body)


def test_an_original_that_another_message_rests_on_stays_and_is_named(home: Path) -> None:
    original = evidence_of(home).put(WORDS.encode(), source="import").hash
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    other.said = msgspec.structs.replace(other.said, attachments=(original,))
    tell(home, mine, other)
    with an_eraser(home).prepared([mine.said.id]) as plan:
        assert [each.id for each in plan.remains.others] == [other.said.id]
    erase(home, mine.said.id)
    assert evidence_of(home).get(original) == WORDS.encode()
    assert (doctored(home).missing, doctored(home).erased) == ((), 0)


def test_one_erasure_at_a_time(home: Path) -> None:
    mine, other = Told(1, WORDS), Told(2, RIVERS)
    tell(home, mine, other)
    with (
        an_eraser(home).prepared([mine.id]),
        pytest.raises(StorageUnavailableError, match="an erasure is running"),
        an_eraser(home).prepared([other.id]),
    ):
        pytest.fail("two at once")


def test_a_long_list_of_what_is_erased_stays_in_the_line(home: Path) -> None:
    told = [Told(number, f"{WORDS} {number}") for number in range(1, 40)]
    tell(home, *told)
    erase(home, *(each.id for each in told))
    lines = (home / "journal").glob("*.jsonl")
    erasing = [line for file in lines for line in file.read_bytes().splitlines() if b'"body.erased"' in line]
    assert len(erasing) > 1
    assert not any(b'"body":{"evidence"' in line for line in erasing)
    assert doctored(home).missing == ()
