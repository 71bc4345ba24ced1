"""What goes by itself: what undoes old changes to files, and logs of places in the journal that nobody writes.

The journal and the evidence are not among it (architecture.md, Storage).
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rune.config.settings import RetentionSettings
from rune.errors import StorageUnavailableError
from rune.host.clock import Clock
from rune.host.files import is_locked
from rune.host.paths import Home
from rune.host.sweeping import Swept, folder_size, sweep_folder

MEGABYTE: Final = 1024 * 1024
_DAY_MS: Final = 24 * 60 * 60 * 1000
# `w000.log`, `w000.log.2`, `reader.log`, `inference_traces-w003.jsonl.1`
_LOG: Final = re.compile(r"(?P<slot>w[0-9]{3}|[a-z-]+)\.log(?:\.(?P<piece>[0-9]+))?")
_TRACES: Final = re.compile(r"inference_traces-(?P<slot>w[0-9]{3}|[a-z-]+)\.jsonl(?:\.(?P<piece>[0-9]+))?")

Report = Callable[[str, StorageUnavailableError], None]


class Retention:
    """Removes what is due on one home. `report` is told, once for each kind, what could not be removed."""

    def __init__(self, home: Home, settings: RetentionSettings, clock: Clock, report: Report) -> None:
        self._home = home
        self._settings = settings
        self._clock = clock
        self._report = report
        self._stopping = threading.Event()

    def sweep(self) -> None:
        """Remove all that is due. Blocks: call it on a thread. Raises nothing."""
        settings = self._settings
        undone = sweep_folder(
            self._home.undo,
            now_ms=self._clock.now_ms(),
            days=settings.undo_days,
            most_bytes=settings.undo_megabytes * MEGABYTE,
            go_on=lambda: not self._stopping.is_set(),
        )
        self._tell("undo", self._home.undo, undone)
        for subsystem, folder, form in (("log", self._home.logs, _LOG), ("trace_file", self._home.state, _TRACES)):
            self._tell(subsystem, folder, self._sweep_logs(folder, form))

    def stop(self) -> None:
        """Have `sweep` end before its next file; the next start goes on. From any thread."""
        self._stopping.set()

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return files and bytes of `undo`, `logs` and `traces`. Blocks."""
        traces = [path for path in _listed(self._home.state) if _TRACES.fullmatch(path.name)]
        sizes = [path.lstat().st_size for path in traces if path.exists()]
        return {
            "undo": folder_size(self._home.undo),
            "logs": folder_size(self._home.logs),
            "traces": (len(sizes), sum(sizes)),
        }

    def _sweep_logs(self, folder: Path, form: re.Pattern[str]) -> Swept:
        before_ms = self._clock.now_ms() - self._settings.log_days * _DAY_MS
        count, freed, failures = 0, 0, list[OSError]()
        for path in _listed(folder):
            match = form.fullmatch(path.name)
            if match is None or self._stopping.is_set():
                continue
            try:
                found = path.lstat()
                surplus = match["piece"] is not None and int(match["piece"]) >= self._settings.log_pieces
                old = found.st_mtime_ns // 1_000_000 < before_ms
                # A piece beyond those that are kept is never looked at again, also where its slot runs.
                if surplus or (old and not self._runs(match["slot"])):
                    path.unlink()
                    count, freed = count + 1, freed + found.st_size
            except FileNotFoundError:
                continue  # another process sweeps too
            except OSError as error:
                failures.append(error)
        return Swept(files=count, bytes=freed, failures=tuple(failures))

    def _runs(self, slot: str) -> bool:
        return is_locked(self._home.journal / f"{slot}.lock")

    def _tell(self, subsystem: str, folder: Path, swept: Swept) -> None:
        if not swept.failures:
            return
        first = swept.failures[0]
        more = f", and {len(swept.failures) - 1} more" if len(swept.failures) > 1 else ""
        problem = f"what is due in {folder} could not be removed: {first.filename}: {first.strerror or first}{more}"
        self._report(subsystem, StorageUnavailableError(problem, hint="Give yourself permission there."))


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []  # there is none yet, or whoever needs it says why it cannot be read
