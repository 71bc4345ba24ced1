"""Long bodies whose evidence is gone, changed or unreadable: one is missed, and everything else goes on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rune.errors import EvidenceTamperedError, NotFoundError, StorageError, StorageUnavailableError
from rune.store.codec import verify_body
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.projection import LostBody
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_conversation, a_message, a_trace, an_id
from tests.store.spine import Reports, a_durable_store, a_spine, events, hashes, open_views

LONG = "A river. " * 2000
SECOND = an_id("msg", 2)
LOST_EVENT = an_id("evt", 3)


def remove(blob: Path) -> None:
    blob.unlink()


def change(blob: Path) -> None:
    blob.write_bytes(b"Q" + blob.read_bytes()[1:])


def cut(blob: Path) -> None:
    blob.write_bytes(blob.read_bytes()[:100])


def stand_in_the_way(blob: Path) -> None:
    blob.unlink()
    blob.mkdir()


HARM: dict[Callable[[Path], None], type[StorageError]] = {
    remove: NotFoundError,
    change: EvidenceTamperedError,
    cut: EvidenceTamperedError,
    stand_in_the_way: StorageUnavailableError,
}


async def a_home(home: Path) -> tuple[DurableEventStore, EvidenceStore, Path]:
    """Return a home in which the second of three messages and a trace are long, and the file of that message."""
    store, evidence = a_durable_store(home, CountedIds())
    await store.append_many(
        events(
            ("conversation.created", a_conversation()),
            ("user.message", a_message(1)),
            ("user.message", a_message(2, content=LONG)),
            ("inference.traced", a_trace(1, history=200)),
            ("user.message", a_message(3)),
            partition=CONVERSATION,
        )
    )
    (digest,) = [envelope.payload_hash for _, envelope in store.read({}) if envelope.event_id == LOST_EVENT]
    name = digest.removeprefix("sha256:")
    blob = home / "evidence" / name[:2] / name[2:]
    assert blob.is_file()
    return store, evidence, blob


async def said(home: Path, store: DurableEventStore, evidence: EvidenceStore) -> list[str]:
    """Return the ids of the messages that views opened now tell of."""
    async with a_spine(home / "views-1.db", store, evidence=evidence) as spine:
        spine.engine.catch_up()
        return [message.id for message in await spine.conversations.messages(CONVERSATION)]


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
async def test_a_body_that_cannot_be_read_is_left_out_reported_once_and_back_when_it_is_restored(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    store, evidence, blob = await a_home(tmp_path)
    whole = open_views(tmp_path / "whole.db", store, evidence)
    before = hashes(whole)
    whole.close()
    content = blob.read_bytes()
    harm(blob)

    reports = Reports()
    engine = open_views(tmp_path / "views-1.db", store, evidence, reports)
    assert engine.catch_up().applied == 5
    engine.rebuild()
    assert [type(error) for error in reports.views] == [HARM[harm]]
    assert "river" not in str(reports.views[0])
    found = engine.find(LOST_EVENT)
    assert found is not None
    assert isinstance(found[2], LostBody)
    engine.close()
    assert await said(tmp_path, store, evidence) == [an_id("msg", 1), an_id("msg", 3)]

    if blob.is_dir():
        blob.rmdir()
    blob.write_bytes(content)
    assert await said(tmp_path, store, evidence) == [an_id("msg", 1), SECOND, an_id("msg", 3)]
    engine = open_views(tmp_path / "views-1.db", store, evidence)
    assert hashes(engine) == before
    engine.rebuild()
    assert hashes(engine) == before
    engine.close()
    await store.close()


async def test_a_trace_whose_body_is_lost_is_not_called_erased(tmp_path: Path) -> None:
    store, evidence, _ = await a_home(tmp_path)
    async with a_spine(tmp_path / "views-1.db", store, evidence=evidence) as spine:
        spine.engine.catch_up()
        for blob in (tmp_path / "evidence").glob("??/*"):
            blob.unlink()
        with pytest.raises(NotFoundError, match="lost: there is no evidence"):
            await spine.traces.get(an_id("trc", 1))
    await store.close()


async def test_verifying_a_body_looks_at_evidence_and_at_nothing_else(tmp_path: Path) -> None:
    store, evidence, blob = await a_home(tmp_path)
    change(blob)
    failed: list[str] = []
    for _, envelope in store.read({}):
        try:
            verify_body(envelope, evidence)
        except EvidenceTamperedError:
            failed.append(envelope.event_id)
    assert failed == [LOST_EVENT]
    await store.close()
