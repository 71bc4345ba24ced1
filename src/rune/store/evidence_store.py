"""Immutable blobs by sha256: large bodies, tool output, rendered blocks, attachments (spine.md, EvidenceStore)."""

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError
from rune.host.clock import Clock
from rune.host.files import create_private, open_regular, private_folder, sync_folder, write_all
from rune.records.evidence import Confidentiality, EvidenceRef
from rune.records.times import rfc3339
from rune.store.codec import canon, digest, is_digest
from rune.store.failures import unavailable

_DAY_MS = 24 * 60 * 60 * 1000
_UNFINISHED = "unfinished"


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One blob to keep. `data` is kept as it is when it is bytes, otherwise as canonical JSON of the value."""

    data: object
    source: str
    confidentiality: Confidentiality = "normal"


class Evidence(Protocol):
    """Keeps blobs for good. All methods block: call them on a thread."""

    def put(self, data: object, *, source: str, confidentiality: Confidentiality = "normal") -> EvidenceRef:
        """Keep bytes, or a JSON value in canonical form; durable on return.

        Raises StorageUnavailableError, UnstorableValueError.
        """
        ...

    def put_many(self, items: Sequence[EvidenceItem]) -> tuple[EvidenceRef, ...]:
        """Keep several, synced together."""
        ...

    def get(self, digest: str) -> bytes:
        """Return the verified bytes. Raises NotFoundError, EvidenceTamperedError."""
        ...

    def has(self, digest: str) -> bool:
        """Say whether there is such a blob, without reading it."""
        ...

    def slice(self, ref: EvidenceRef) -> bytes:
        """Return the part that a reference names; all of it when it names none. Raises as `get`."""
        ...

    def verify(self, digest: str) -> None:
        """Raise NotFoundError or EvidenceTamperedError unless the blob is whole."""
        ...


class EvidenceStore:
    """One file a blob: `<root>/ab/cd...`, 0600, never changed once it is there.

    Files are made in `<root>/unfinished`, synced and then renamed: what has its final name is whole.
    Several processes and threads may share a root.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._counter = itertools.count()

    def put(self, data: object, *, source: str, confidentiality: Confidentiality = "normal") -> EvidenceRef:
        """Keep one blob (Evidence.put)."""
        return self.put_many((EvidenceItem(data=data, source=source, confidentiality=confidentiality),))[0]

    def put_many(self, items: Sequence[EvidenceItem]) -> tuple[EvidenceRef, ...]:
        """Keep several: each file is synced, then each folder once (Evidence.put_many)."""
        blobs = [_bytes_of(item.data) for item in items]
        digests = [digest(blob) for blob in blobs]
        try:
            self._keep(dict(zip(digests, blobs, strict=True)))
        except OSError as error:
            raise unavailable(error, f"cannot keep evidence in {str(self._root)!r}") from error
        return _references(items, digests, self._clock)

    def get(self, digest: str) -> bytes:
        """Return the verified bytes of a blob (Evidence.get)."""
        try:
            with os.fdopen(open_regular(self._path(digest)), "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no evidence {digest}") from error
        except OSError as error:
            raise unavailable(error, f"cannot read evidence {digest}") from error
        return _verified(data, digest)

    def has(self, digest: str) -> bool:
        """Say whether there is such a blob (Evidence.has)."""
        return is_digest(digest) and self._path(digest).is_file()

    def slice(self, ref: EvidenceRef) -> bytes:
        """Return the part that a reference names (Evidence.slice)."""
        return _part(self.get(ref.hash), ref)

    def verify(self, digest: str) -> None:
        """Raise unless the blob is whole (Evidence.verify)."""
        self.get(digest)

    def sweep(self) -> int:
        """Remove what a killed process left half-written more than a day ago; returns how many files."""
        removed = 0
        folder = self._root / _UNFINISHED
        if not folder.is_dir():
            return 0
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process sweeps too, or has just finished it
                if self._clock.now_ms() - path.stat().st_mtime_ns // 1_000_000 > _DAY_MS:
                    path.unlink()
                    removed += 1
        return removed

    def _path(self, digest: str) -> Path:
        if not is_digest(digest):
            raise NotFoundError(f"{digest!r} is not the id of evidence")
        name = digest.removeprefix("sha256:")
        return self._root / name[:2] / name[2:]

    def _keep(self, blobs: dict[str, bytes]) -> None:
        folders = {self._path(key).parent for key in blobs}
        self._make_folders(folders)
        unfinished = [
            (self._write(blob), path)
            for key, blob in blobs.items()
            if not _is_there(path := self._path(key), len(blob))
        ]
        for temporary, path in unfinished:
            temporary.rename(path)
        # Also for a blob that was there already: whoever made it may not have come to its sync yet.
        for folder in folders:
            sync_folder(folder)

    def _make_folders(self, folders: Iterable[Path]) -> None:
        for folder in (self._root / _UNFINISHED, *folders):
            if not folder.is_dir():
                private_folder(folder)

    def _write(self, blob: bytes) -> Path:
        name = f"{os.getpid()}-{threading.get_ident()}-{next(self._counter)}"
        path = self._root / _UNFINISHED / name
        descriptor = create_private(path)
        try:
            write_all(descriptor, blob)
            os.fsync(descriptor)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        return path


class MemoryEvidenceStore:
    """The same in memory, for private conversations. Thread-safe: a blob is set once and never changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._blobs: dict[str, bytes] = {}

    def put(self, data: object, *, source: str, confidentiality: Confidentiality = "normal") -> EvidenceRef:
        """Keep one blob (Evidence.put)."""
        return self.put_many((EvidenceItem(data=data, source=source, confidentiality=confidentiality),))[0]

    def put_many(self, items: Sequence[EvidenceItem]) -> tuple[EvidenceRef, ...]:
        """Keep several (Evidence.put_many)."""
        blobs = [_bytes_of(item.data) for item in items]
        digests = [digest(blob) for blob in blobs]
        self._blobs.update(zip(digests, blobs, strict=True))
        return _references(items, digests, self._clock)

    def get(self, digest: str) -> bytes:
        """Return the bytes of a blob (Evidence.get)."""
        try:
            return _verified(self._blobs[digest], digest)
        except KeyError:
            raise NotFoundError(f"there is no evidence {digest}") from None

    def has(self, digest: str) -> bool:
        """Say whether there is such a blob (Evidence.has)."""
        return digest in self._blobs

    def slice(self, ref: EvidenceRef) -> bytes:
        """Return the part that a reference names (Evidence.slice)."""
        return _part(self.get(ref.hash), ref)

    def verify(self, digest: str) -> None:
        """Raise unless the blob is whole (Evidence.verify)."""
        self.get(digest)


def _bytes_of(data: object) -> bytes:
    return data if isinstance(data, bytes) else canon(data)


def _is_there(path: Path, size: int) -> bool:
    # A file of another size is damage: the right content is at hand and takes its place.
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size


def _references(items: Sequence[EvidenceItem], digests: Sequence[str], clock: Clock) -> tuple[EvidenceRef, ...]:
    observed_at = rfc3339(clock.now_ms())
    return tuple(
        EvidenceRef(hash=key, source=item.source, observed_at=observed_at, confidentiality=item.confidentiality)
        for item, key in zip(items, digests, strict=True)
    )


def _verified(data: bytes, key: str) -> bytes:
    if digest(data) != key:
        raise EvidenceTamperedError(
            f"evidence {key} holds other bytes than its name says",
            hint="It was changed or the disk is damaged. Run `rune doctor`.",
        )
    return data


def _part(data: bytes, ref: EvidenceRef) -> bytes:
    if ref.slice is None:
        return data
    if not 0 <= ref.slice.start <= ref.slice.end <= len(data):
        raise NotFoundError(f"evidence {ref.hash} has {len(data)} bytes, not {ref.slice.start} to {ref.slice.end}")
    return data[ref.slice.start : ref.slice.end]
