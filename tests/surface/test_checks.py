"""What `rune doctor` finds in the journal."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError
from rune.records.envelope import EventEnvelope
from rune.store.codec import verify_body
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.surface import checks
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_message, an_id
from tests.store.spine import a_durable_store, events

CONTENT = "The wreck lies off Foula. "


async def a_home(home: Path, long: int) -> tuple[DurableEventStore, EvidenceStore, list[Path]]:
    """Return a home of a short message and some long ones, and the files of those."""
    store, evidence = a_durable_store(home, CountedIds())
    bodies = [a_message(0), *(a_message(n, content=CONTENT * 500) for n in range(1, long + 1))]
    await store.append_many(events(*(("user.message", body) for body in bodies), partition=CONVERSATION))
    return store, evidence, sorted((home / "evidence").glob("??/*"))


def change(blob: Path) -> None:
    blob.write_bytes(b"x")


def journal(store: DurableEventStore, evidence: EvidenceStore) -> checks.Finding:
    return checks.journal((event for _, event in store.read({})), lambda event: verify_body(event, evidence))


async def test_a_whole_journal_is_ok(tmp_path: Path) -> None:
    store, evidence, _ = await a_home(tmp_path, 1)
    finding = journal(store, evidence)
    assert (finding.state, finding.detail, finding.mend) == ("ok", "2 events in 1 slot, each verified", "")
    await store.close()


@pytest.mark.parametrize(
    ("harm", "said"),
    [(Path.unlink, "there is no evidence sha256:"), (change, "other bytes")],
    ids=["gone", "changed"],
)
async def test_a_lost_body_is_named_by_its_event_and_never_shown(
    harm: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    store, evidence, (blob,) = await a_home(tmp_path, 1)
    harm(blob)
    finding = journal(store, evidence)
    assert finding.state == "broken"
    assert "2 events in 1 slot, each verified; 1 has lost its body: " in finding.detail
    assert f"{an_id('evt', 2)} (user.message): " in finding.detail
    assert said in finding.detail
    assert "backup" in finding.mend
    assert "Foula" not in finding.detail + finding.mend
    await store.close()


async def test_of_many_lost_bodies_the_first_are_named_and_all_are_counted(tmp_path: Path) -> None:
    store, evidence, blobs = await a_home(tmp_path, 12)
    for blob in blobs:
        blob.unlink()
    finding = journal(store, evidence)
    assert "12 have lost their bodies" in finding.detail
    assert finding.detail.count("there is no evidence") == 5
    assert finding.detail.endswith("; and 7 more")
    await store.close()


async def test_damage_in_a_line_is_raised_with_its_place() -> None:
    def events() -> Iterator[EventEnvelope]:
        yield from ()
        raise CorruptJournalError("its checksum does not match", file="w000-000001.jsonl", line=2, byte=9)

    with pytest.raises(CorruptJournalError, match="line 2, byte 9"):
        checks.journal(events(), lambda _: None)
