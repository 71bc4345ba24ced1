"""Traces as a plain file for other programs. The journal's `inference.traced` is the record; this is a convenience."""

import json
from pathlib import Path

from rune.errors import StorageUnavailableError
from rune.observability.rotating_file import PIECE_LIMIT, PIECES, RotatingFile
from rune.records.record import to_builtins
from rune.records.traces import InferenceTraceRecord


class TraceFile:
    """`<folder>/inference_traces-<slot>.jsonl`, one trace a line, ASCII; `pieces` files of about `limit` bytes."""

    def __init__(self, folder: Path, slot: str, *, limit: int = PIECE_LIMIT, pieces: int = PIECES) -> None:
        self._path = folder / f"inference_traces-{slot}.jsonl"
        self._file = RotatingFile(self._path, limit=limit, pieces=pieces)

    def append(self, trace: InferenceTraceRecord) -> None:
        """Write one trace; not synced. Raises StorageUnavailableError, which the caller records as T2."""
        line = json.dumps(to_builtins(trace), ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        try:
            self._file.append(line.encode("ascii") + b"\n")
        except OSError as error:
            raise StorageUnavailableError(
                f"{self._path}: {error.strerror or error}",
                hint="The trace is in the journal; only the copy for other programs is missing.",
            ) from error

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        self._file.close()
