"""Every named blob is read and compared with its hash."""

import os
from pathlib import Path

from rune.store.evidence_store import EvidenceStore
from rune.store.mending.evidence_inspection import EvidenceState, inspect_evidence
from tests.fakes.clock import CountedClock


def path_of(root: Path, name: str) -> Path:
    return root / name[7:9] / name[9:]


def test_whole_missing_and_changed_ones_are_told_apart(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path, CountedClock())
    whole, gone, changed, unnamed = (
        store.put(text, source="test").hash for text in (b"one", b"two", b"three", b"four")
    )
    path_of(tmp_path, gone).unlink()
    path_of(tmp_path, changed).write_bytes(b"THREE")
    found = inspect_evidence(tmp_path, store, {whole, gone, changed}, before_ms=0)
    assert found == EvidenceState(whole=1, bytes=3, missing=(gone,), tampered=(changed,), unnamed=1)
    assert path_of(tmp_path, unnamed).exists()


def test_unfinished_files_are_counted_by_age(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path, CountedClock())
    (tmp_path / "unfinished").mkdir()
    for name, seconds in (("1-old", 1_000), ("2-old", 1_500), ("3-young", 3_000)):
        (tmp_path / "unfinished" / name).write_bytes(b"half")
        os.utime(tmp_path / "unfinished" / name, (seconds, seconds))
    found = inspect_evidence(tmp_path, store, (), before_ms=2_000_000)
    assert (found.unfinished, found.left_over) == (3, 2)


def test_where_there_is_none_none_is_made(tmp_path: Path) -> None:
    root = tmp_path / "evidence"
    assert inspect_evidence(root, EvidenceStore(root, CountedClock()), (), before_ms=0) == EvidenceState()
    assert not root.exists()
