import hashlib
import os
import stat
import tempfile
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import EvidenceTamperedError, NotFoundError, StorageUnavailableError, UnstorableValueError
from rune.records.evidence import EvidenceSlice
from rune.store.evidence_store import Evidence, EvidenceItem, EvidenceStore, MemoryEvidenceStore
from tests.fakes.clock import CountedClock

ABSENT = "sha256:" + "0" * 64


class EvidenceContract:
    """What both stores of evidence promise."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Evidence:
        raise NotImplementedError

    def test_bytes_come_back_by_their_hash(self, store: Evidence) -> None:
        for data in (b"", b"rivers", bytes(range(256)) * 5000):
            ref = store.put(data, source="tool:run")
            assert ref.hash == "sha256:" + hashlib.sha256(data).hexdigest()
            assert store.get(ref.hash) == data
            assert store.has(ref.hash)
            store.verify(ref.hash)
            assert store.slice(ref) == data

    def test_a_reference_says_where_from_when_and_how_confidential(self, store: Evidence) -> None:
        ref = store.put(b"rivers", source="tool:run", confidentiality="secret")
        assert (ref.source, ref.observed_at, ref.confidentiality) == ("tool:run", "2026-11-30T14:00:00.000Z", "secret")

    def test_a_value_is_kept_as_canonical_json(self, store: Evidence) -> None:
        ref = store.put({"b": 1, "a": ["é", None]}, source="loop")
        assert store.get(ref.hash) == b'{"a":["\\u00e9",null],"b":1}'
        assert store.get(store.put("text", source="loop").hash) == b'"text"'
        with pytest.raises(UnstorableValueError):
            store.put({"x": float("nan")}, source="loop")

    def test_a_slice_is_a_part(self, store: Evidence) -> None:
        ref = store.put(b"Elbe, Oder, Rhein", source="file")
        assert store.slice(msgspec.structs.replace(ref, slice=EvidenceSlice(start=6, end=10))) == b"Oder"
        for start, end in ((5, 99), (9, 3), (-1, 4)):
            with pytest.raises(NotFoundError):
                store.slice(msgspec.structs.replace(ref, slice=EvidenceSlice(start=start, end=end)))

    def test_several_are_kept_at_once_in_their_order_and_the_same_twice(self, store: Evidence) -> None:
        items = [EvidenceItem(data=data, source="turn") for data in (b"a", b"b", b"a", {"c": 1})]
        refs = store.put_many(items)
        assert [store.get(ref.hash) for ref in refs] == [b"a", b"b", b"a", b'{"c":1}']
        assert store.put_many([]) == ()

    @pytest.mark.parametrize("name", [ABSENT, "", "sha256:", "sha256:../../etc/passwd", "sha256:" + "A" * 64, "x" * 64])
    def test_what_is_not_there_is_a_typed_error(self, store: Evidence, name: str) -> None:
        assert not store.has(name)
        with pytest.raises(NotFoundError):
            store.get(name)
        with pytest.raises(NotFoundError):
            store.verify(name)


class TestEvidenceStore(EvidenceContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Evidence:
        return EvidenceStore(tmp_path / "evidence", CountedClock())


class TestMemoryEvidenceStore(EvidenceContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Evidence:
        return MemoryEvidenceStore(CountedClock())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "evidence"


def path_of(root: Path, name: str) -> Path:
    digits = name.removeprefix("sha256:")
    return root / digits[:2] / digits[2:]


@given(st.binary(max_size=2000), st.integers(min_value=0), st.integers(0, 7))
def test_a_changed_blob_is_noticed(data: bytes, at: int, bit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store = EvidenceStore(root, CountedClock())
        ref = store.put(data, source="test")
        changed = bytearray(data or b"\0")
        changed[at % len(changed)] ^= 1 << bit
        path_of(root, ref.hash).write_bytes(changed)
        with pytest.raises(EvidenceTamperedError):
            store.get(ref.hash)
        with pytest.raises(EvidenceTamperedError):
            store.verify(ref.hash)


def test_a_second_put_writes_nothing_also_in_another_process(root: Path) -> None:
    ref = EvidenceStore(root, CountedClock()).put(b"rivers", source="test")
    before = path_of(root, ref.hash).stat()
    assert EvidenceStore(root, CountedClock()).put(b"rivers", source="other").hash == ref.hash
    after = path_of(root, ref.hash).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert not list((root / "unfinished").iterdir())


def test_a_shortened_blob_is_healed_by_the_next_put(root: Path) -> None:
    store = EvidenceStore(root, CountedClock())
    ref = store.put(b"rivers", source="test")
    path_of(root, ref.hash).write_bytes(b"riv")
    store.put(b"rivers", source="test")
    assert store.get(ref.hash) == b"rivers"


def test_files_and_folders_are_private_and_named_by_the_hash(root: Path) -> None:
    ref = EvidenceStore(root, CountedClock()).put(b"rivers", source="test")
    path = path_of(root, ref.hash)
    assert path.is_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (root, path.parent, root / "unfinished")} == {0o700}


def test_a_link_in_place_of_a_blob_is_not_followed(root: Path, tmp_path: Path) -> None:
    store = EvidenceStore(root, CountedClock())
    ref = store.put(b"rivers", source="test")
    (tmp_path / "elsewhere").write_bytes(b"rivers")
    path_of(root, ref.hash).unlink()
    path_of(root, ref.hash).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailableError):
        store.get(ref.hash)
    store.put(b"rivers", source="test")
    assert not path_of(root, ref.hash).is_symlink()


def test_many_threads_may_put_the_same_and_other_blobs(root: Path) -> None:
    store = EvidenceStore(root, CountedClock())
    found: list[bytes] = []

    def put(number: int) -> None:
        for blob in range(20):
            data = f"{blob % 10} {number % 2}".encode()
            found.append(store.get(store.put(data, source="test").hash))

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert not list((root / "unfinished").iterdir())


def test_no_room_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageUnavailableError):
        EvidenceStore(tmp_path / "file" / "evidence", CountedClock()).put(b"rivers", source="test")


def test_what_a_killed_process_left_is_swept_after_a_day(root: Path) -> None:
    clock = CountedClock()
    store = EvidenceStore(root, clock)
    ref = store.put(b"rivers", source="test")
    assert EvidenceStore(root / "nowhere", clock).sweep() == 0
    old, young = root / "unfinished" / "old", root / "unfinished" / "young"
    for path, age in ((old, 25), (young, 23)):
        path.write_bytes(b"half")
        seconds = clock.now_ms() / 1000 - age * 3600
        os.utime(path, (seconds, seconds))
    assert store.sweep() == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert store.get(ref.hash) == b"rivers"
