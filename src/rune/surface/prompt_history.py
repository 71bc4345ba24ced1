"""What a person sent before, by folder, kept across runs: `state/prompt_history`, one JSON object a line.

Several processes may use it at once: each change replaces the file whole, under a lock. A line that cannot be
read is passed over and counted, and stays in the file until its turn to be trimmed comes.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import StorageUnavailableError
from rune.host.files import private_folder, replace_file
from rune.host.small_files import locked, read_bounded
from rune.text.storable import storable

FILE_NAME: Final = "prompt_history"
# All folders together; the oldest go first.
ENTRIES: Final = 2_000
BYTES: Final = 4_000_000
# Longer texts are files that were pasted: a hundred of them would push out everything else.
LONGEST: Final = 100_000
# What may stand in a file that someone else wrote; ours never grow beyond BYTES.
_READ_LIMIT: Final = 4 * BYTES


class Sent(msgspec.Struct, frozen=True):
    """One thing that was sent. `command`: it was typed as a command, so that it may be one again."""

    text: str
    command: bool = False


class Remembered(msgspec.Struct, frozen=True):
    """What was sent in one folder, oldest first. `damaged` lines of the file (of any folder) could not be read."""

    entries: tuple[Sent, ...] = ()
    damaged: int = 0


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    folder: str
    text: str
    command: bool = False


class PromptHistory:
    """The file of what was sent. Its functions block: call them on a thread."""

    def __init__(self, state: Path) -> None:
        """`state` is the folder of small state (`Home.state`); it is made when it is missing."""
        self._folder = state
        self._file = state / FILE_NAME
        self._lock = state / f"{FILE_NAME}.lock"

    def load(self, folder: str) -> Remembered:
        """Return what was sent in `folder` (a storable path). Raises StorageUnavailableError."""
        entries: list[Sent] = []
        damaged = 0
        try:
            lines = self._read()
        except OSError as error:
            raise self._unavailable(error, "read") from error
        for raw in lines:
            line = _decoded(raw)
            if line is None:
                damaged += 1
            elif line.folder == storable(folder):
                entries.append(Sent(line.text, line.command))
        return Remembered(tuple(entries), damaged)

    def add(self, folder: str, text: str, *, command: bool = False) -> bool:
        """Keep what was sent in `folder`; the same twice in a row is kept once, surrogates as U+FFFD.

        Returns False for a text that is too long to be kept. Raises StorageUnavailableError.
        """
        if len(text) > LONGEST:
            return False
        new = _Line(storable(folder), storable(text), command)
        try:
            private_folder(self._folder)
            with locked(self._lock):
                lines = self._read()
                last = next((line for raw in reversed(lines) if (line := _of_folder(raw, new.folder))), None)
                if last != new:
                    replace_file(self._file, _trimmed([*lines, msgspec.json.encode(new)]))
        except OSError as error:
            raise self._unavailable(error, "changed") from error
        return True

    def _read(self) -> list[bytes]:
        with contextlib.suppress(FileNotFoundError):
            # More lines than there may be are not ours; the newest count.
            lines = read_bounded(self._file, _READ_LIMIT).rsplit(b"\n", 4 * ENTRIES)[-4 * ENTRIES :]
            return [line for line in lines if line.strip()]
        return []

    def _unavailable(self, error: OSError, what: str) -> StorageUnavailableError:
        reason = error.strerror or str(error)
        return StorageUnavailableError(
            f"the history of messages cannot be {what}: {error.filename or self._file}: {reason}",
            hint="Give yourself permission there, free some space, or move the file away.",
        )


def _decoded(raw: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(raw, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _of_folder(raw: bytes, folder: str) -> _Line | None:
    line = _decoded(raw)
    return line if line is not None and line.folder == folder else None


def _trimmed(lines: Sequence[bytes]) -> bytes:
    """Return the newest lines that fit, as the content of the file."""
    kept: list[bytes] = []
    room = BYTES
    for line in reversed(lines[-ENTRIES:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return b"".join(line + b"\n" for line in reversed(kept))
