"""What is logged, and where: a file for each slot, and never the terminal.

One record is one line that begins with its time; a traceback follows in indented lines. What a
message brings along (line breaks, control sequences) is escaped, so that no text can look like a
record or reach a terminal that shows the file.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rune.observability.health import Masker, SubsystemHealthRegistry
from rune.observability.rotating_file import PIECE_LIMIT, PIECES, RotatingFile
from rune.records.times import rfc3339

_TEXT_LIMIT = 100_000
_INDENT = "    | "


def setup_logging(
    folder: Path,
    name: str,
    masker: Masker,
    *,
    health: SubsystemHealthRegistry,
    limit: int = PIECE_LIMIT,
    pieces: int = PIECES,
) -> Callable[[], None]:
    """Send all of this process's logging and warnings to `<folder>/<name>.log`, `pieces` files of about `limit` bytes.

    Rune's own records from INFO, the libraries' from WARNING. Nothing here or later raises or prints,
    also when the file cannot be written: then subsystem `log` says so in `health` (T2). Returns a
    callable that puts logging back as it was.
    """
    root, own = logging.getLogger(), logging.getLogger("rune")
    levels = root.level, own.level
    handler = _FileHandler(RotatingFile(folder / f"{name}.log", limit=limit, pieces=pieces), masker, health)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    own.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)

    def close() -> None:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        root.setLevel(levels[0])
        own.setLevel(levels[1])
        handler.close()

    return close


class _FileHandler(logging.Handler):
    """Writes records to one rotating file; what goes wrong on the way is told to `health`."""

    def __init__(self, file: RotatingFile, masker: Masker, health: SubsystemHealthRegistry) -> None:
        super().__init__()
        self._file = file
        self._masker = masker
        self._health = health
        self._within = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        # While a failure to log is being reported, logging it would only fail again.
        if getattr(self._within, "reporting", False):
            return
        try:
            self._file.append(self._render(record).encode())
        except Exception as error:  # noqa: BLE001 - whoever logs must not fail for it, and nothing may reach stderr
            self._within.reporting = True
            try:
                self._health.record_failure("log", error, 2)
            finally:
                self._within.reporting = False
        else:
            self._health.record_success("log")

    def close(self) -> None:
        self._file.close()
        super().close()

    def _render(self, record: logging.LogRecord) -> str:
        message = _one_line(self._masker(record.getMessage()))
        when = rfc3339(int(record.created * 1000))
        lines = [f"{when} {record.levelname} {record.process} {record.name}: {message}"]
        for text in (_traceback(record), record.stack_info):
            if text:
                lines += [f"{_INDENT}{_one_line(line)}" for line in self._masker(text).split("\n")]
        return "\n".join(lines) + "\n"


def _traceback(record: logging.LogRecord) -> str:
    exc_info: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None] | None
    exc_info = record.exc_info
    if not exc_info or exc_info[1] is None:
        return record.exc_text or ""
    return logging.Formatter().formatException(exc_info)


def _one_line(text: str) -> str:
    cut = text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]} ... ({len(text):,} characters)"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
