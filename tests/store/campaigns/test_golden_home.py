"""A home that a released version wrote: it opens, each line is the one this version would write, nothing changes it."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rune.records.envelope import EventEnvelope
from rune.records.events import EVENT_KINDS, Event
from rune.store import codec
from rune.store.codec import ErasedBody, Place, decode_body
from rune.store.evidence_store import EvidenceStore
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.campaigns.write_golden_home import HOME, write
from tests.store.journals import lines_of, open_now, opened, stored_ids
from tests.store.samples import ended
from tests.store.spine import Reports, count_of, hashes, open_views

HOMES = sorted(HOME.parent.glob("v*"))


def digests(home: Path) -> dict[str, str]:
    """Return what every file of a home holds."""
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(params=HOMES, ids=[home.name for home in HOMES])
def golden(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give a golden home, and see that nobody changed it."""
    home: Path = request.param
    before = digests(home)
    yield home
    assert digests(home) == before


def written_again(envelope: EventEnvelope, evidence: EvidenceStore) -> bytes | None:
    """Return the line that this version would write for a stored event; None where its body was erased."""
    body = decode_body(envelope, evidence)
    if isinstance(body, ErasedBody):
        return None
    event = Event(body=body, **{name: getattr(envelope, name) for name in Event.__struct_fields__ if name != "body"})
    place = Place(**{name: getattr(envelope, name) for name in Place.__struct_fields__})
    return codec.seal(codec.prepare(event), place).line


async def test_every_line_of_it_is_the_one_that_this_version_would_write(golden: Path) -> None:
    evidence = EvidenceStore(golden / "evidence", CountedClock())
    erased = 0
    for path in sorted((golden / "journal").glob("w*.jsonl")):
        header, *lines = lines_of(path)
        fields = msgspec.structs.asdict(codec.parse_header(header[:-1])[0])
        again = {name: fields[name] for name in ("boot_id", "opened", "prev", "segment", "writer")}
        assert codec.seal_header(**again).line == header
        for line in lines:
            sealed = written_again(codec.parse(line[:-1]).envelope, evidence)
            erased += sealed is None
            assert sealed in (line, None)
    assert erased == 1


async def test_it_reads_whole_and_its_views_can_be_made_from_it(golden: Path, memory_home: Path) -> None:
    store = open_now(golden, read_only=True)
    evidence = EvidenceStore(golden / "evidence", CountedClock())
    found = [envelope for _, envelope in store.replay()]
    for envelope in found:
        codec.verify_body(envelope, evidence)
    assert {envelope.writer for envelope in found} == {"w000", "w001"}
    reports = Reports()
    engine = open_views(memory_home / "views-1.db", store, evidence, reports)
    assert engine.catch_up().applied == len(found)
    assert count_of(engine) == len(found)
    before = hashes(engine)
    assert engine.rebuild().applied == len(found)
    assert hashes(engine) == before
    assert reports.views == []
    engine.close()


async def test_a_copy_of_it_can_be_written_on(golden: Path, memory_home: Path) -> None:
    home = memory_home / "home"
    shutil.copytree(golden, home)
    (home / "journal").chmod(0o700)
    before = digests(home)
    ids = stored_ids(open_now(home, read_only=True))
    more = ended(CountedIds())
    async with opened(home) as store:
        await store.append(msgspec.structs.replace(more, event_id="evt_0000000000000000000000golden".replace("l", "1")))
        assert len(stored_ids(store)) == len(ids) + 1
    changed = {name for name, digest in digests(home).items() if before.get(name, digest) != digest}
    # Only the end of the last segment of one slot is another.
    assert len(changed) == 1
    assert not list((home / "journal").glob("*.torn-*-*"))


async def test_the_newest_of_them_holds_every_kind_that_this_version_stores(tmp_path: Path) -> None:
    stored = {envelope.event_type for _, envelope in open_now(HOMES[-1], read_only=True).replay()}
    await write(tmp_path)
    here = {envelope.event_type for _, envelope in open_now(tmp_path, read_only=True).replay()}
    assert here >= {kind.name for kind in EVENT_KINDS.values() if kind.body is not None}
    # Where this fails, what is stored has changed: write a new golden home beside the old ones.
    assert stored == here
    assert list((HOMES[-1] / "journal").glob("*.torn-*"))
