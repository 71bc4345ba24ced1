"""What files held before a tool changed them: the one place that keeps unmasked bytes (tools.md, Sandbox, Secrets).

Named by content, so that one version of a file is kept once. What is old goes by itself (`observability.retention`).
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from rune.errors import EvidenceTamperedError, NotFoundError, StorageUnavailableError
from rune.host.files import open_regular, private_folder, replace_file

_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = 64
_CHUNK: Final = 1 << 20


class UndoStore:
    """Before-images in one folder, a file each, readable by their owner only. Blocks: call it on a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, data: bytes) -> str:
        """Keep what a file held, durable on return; returns its name, 64 hex digits of sha256.

        Raises StorageUnavailableError: what cannot be undone must not be changed.
        """
        name = hashlib.sha256(data).hexdigest()
        try:
            private_folder(self._folder)
            # Written anew also where it is there: what goes because it is old may go at this very moment, and whatever
            # somebody else put under this name is not what is to be given back.
            replace_file(self._folder / name, data)
        except OSError as error:
            raise StorageUnavailableError(
                f"what the file held cannot be kept for undoing: {error.strerror}",
                hint="Nothing was changed. Make room on the disk, or make the folder writable.",
            ) from error
        return name

    def get(self, sha256: str) -> bytes:
        """Return what a file held. Raises NotFoundError when it is kept no longer, EvidenceTamperedError,
        StorageUnavailableError.
        """
        if len(sha256) != _DIGITS or not _HEX.issuperset(sha256):
            raise NotFoundError(f"{sha256[:80]!r} names no version of a file")
        try:
            data = _read(self._folder / sha256)
        except FileNotFoundError as error:
            raise NotFoundError("what the file held before is not kept any more") from error
        except OSError as error:
            raise StorageUnavailableError(f"what the file held cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise EvidenceTamperedError(f"what was kept of the file is not what it held ({sha256[:12]})")
        return data


def _read(path: Path) -> bytes:
    descriptor = open_regular(path)
    with os.fdopen(descriptor, "rb") as file:
        return b"".join(iter(lambda: file.read(_CHUNK), b""))
