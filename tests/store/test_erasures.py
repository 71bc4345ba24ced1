"""Erased lines whose `body.erased` has lost its own body: that one body is lost, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, StorageError
from rune.records.events import BodyErased, Event
from rune.store.erasing.rewriting import rewrite_segment
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, open_now, opened, segment, stored_ids
from tests.store.mending.damaged import damage_of, evidence_of, mend
from tests.store.samples import MOMENT, ended, said
from tests.store.spine import Reports, open_views


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def erased_home(home: Path, ids: CountedIds) -> tuple[list[Event], Path]:
    """Return the events of a home in which the first two are erased, and the file of the `body.erased`'s body."""
    found = [said(ids, f"secret {number}", pseq=number + 1) for number in range(3)]
    gone = [*event_ids(found[:2]), *(ids.new_id("evt") for _ in range(400))]
    erasing = Event(
        event_id=ids.new_id("evt"),
        event_type="body.erased",
        partition_key="system",
        actor_id="owner",
        timestamp=MOMENT,
        body=BodyErased(event_ids=tuple(gone), reason="asked for"),
    )
    async with opened(home) as store:
        await store.append_many([*found, erasing])
    rewrite_segment(home / "journal", "w000", 1, dict.fromkeys(gone[:2], erasing.event_id))
    (blob,) = (home / "evidence").glob("??/*")
    return [*found, erasing], blob


def change(blob: Path) -> None:
    blob.write_bytes(b"{" + blob.read_bytes())


def a_folder(blob: Path) -> None:
    blob.unlink()
    blob.mkdir()


@pytest.mark.parametrize("harm", [Path.unlink, change, a_folder], ids=["removed", "changed", "a-folder"])
async def test_a_lost_body_of_an_erasing_is_one_lost_body_and_no_damage(
    harm: Callable[[Path], None], tmp_path: Path, ids: CountedIds
) -> None:
    found, blob = await erased_home(tmp_path, ids)
    assert damage_of(tmp_path) == ()
    harm(blob)
    assert damage_of(tmp_path) == ()
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(found)
        reports = Reports()
        engine = open_views(tmp_path / "views-1.db", store, evidence_of(tmp_path), reports)
        engine.catch_up()
        assert engine.lookup(found[0].event_id) is not None
        assert len(reports.views) == 1
        assert isinstance(reports.views[0], StorageError)
        engine.close()


async def test_an_erasing_that_is_gone_itself_vouches_for_nothing_and_what_was_erased_is_counted_apart(
    tmp_path: Path, ids: CountedIds
) -> None:
    found, _ = await erased_home(tmp_path, ids)
    path = segment(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], lines[4].replace(b'"owner"', b'"0wner"')]))
    with pytest.raises(CorruptJournalError, match="erased"):
        stored_ids(open_now(tmp_path, read_only=True))
    (done,) = await mend(tmp_path, ids)
    assert (done.written, done.lost, done.erased) == (1, 1, 2)
    assert done.reason.endswith("1 event written again, 1 line could not be, 2 erased before")
    assert stored_ids(open_now(tmp_path, read_only=True)) == [found[2].event_id]
    await note_more(tmp_path, ids)


async def note_more(home: Path, ids: CountedIds) -> None:
    async with opened(home) as store:
        await store.append(ended(ids))
    assert damage_of(home) == ()
