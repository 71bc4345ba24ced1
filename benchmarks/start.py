"""How soon Rune is there: `rune --version`, the app's first frame, the first key on its screen; and what it then holds.

Bars: `--version` takes at most four times a bare Python, the first frame at most two and a half times, with nothing
heavy imported before either; a key typed in the moment of the start is shown within one and a half times what
the smallest Textual app with a field takes; an app that waits holds at most 75 MB.
On a quiet machine: 30 ms for `--version`, 25 ms for the frame.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from _measure import Bar, best_ratio, figures, fingerprint, paired, report, wants_json

RUNS = 10
APP_RUNS = 3
SECONDS = 60
TIMES_BARE_PYTHON = 4.0
FRAME_TIMES_BARE_PYTHON = 2.5
TIMES_SMALLEST_APP = 1.5
IDLE_MB = 75.0
QUIET_MS = 30.0
QUIET_FRAME_MS = 25.0
HEAVY = {"textual", "rich", "httpx", "apsw", "numpy", "pydantic"}
HEAVY_FOR_A_FRAME = HEAVY | {"asyncio", "argparse", "enum", "msgspec", "re", "signal", "typing"}

SCREEN = b"\x1b[?1049h"
KEY = "§".encode()
RUNE = ("-m", "rune")
SMALLEST = """
from textual.app import App
from textual.widgets import Input

class Smallest(App):
    def compose(self):
        yield Input()

Smallest().run()
"""


def _milliseconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-P", *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def _imported(*arguments: str) -> set[str]:
    """Return the names of all modules that a process imports."""
    command = [sys.executable, "-P", "-X", "importtime", *arguments]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return set(re.findall(r"^import time:.*\|\s*([\w.]+)$", told, flags=re.MULTILINE))


class _Started:
    """A process on a terminal that reads all it writes. `milliseconds` since the start are those of the last read."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, began: float) -> None:
        self.process = process
        self.milliseconds = 0.0
        self._master = master
        self._began = began
        self._written = b""

    def read_until(self, seen: Callable[[bytes], bool]) -> float:
        """Read on until what was written is as wanted; returns the milliseconds that took since the start."""
        while not seen(self._written):
            piece = os.read(self._master, 1 << 16)
            self.milliseconds = (time.perf_counter() - self._began) * 1000
            self._written += piece
            if self.milliseconds > SECONDS * 1000:
                raise TimeoutError(f"it only wrote {self._written!r}")
        return self.milliseconds


@contextmanager
def _started(*arguments: str) -> Generator[_Started]:
    """Start Python on a terminal with a key typed at once, in a home of its own; kill it in the end."""
    with tempfile.TemporaryDirectory() as home:
        script = Path(home) / "script.json"
        script.write_text(json.dumps({"answers": [{"text": "yes"}], "window": 8192}))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "RUNE_HOME": f"{home}/rune",
            "RUNE_SCRIPTED_MODEL": str(script),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        master, slave = pty.openpty()
        os.write(master, KEY)
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-P", *arguments], stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=home
        )
        os.close(slave)
        try:
            yield _Started(process, master, began)
        finally:
            process.kill()
            process.wait()
            os.close(master)


def _first_bytes(wanted: bytes, *arguments: str) -> float:
    with _started(*arguments) as started:
        return started.read_until(lambda written: wanted in written)


def _key_shown(screens: int, *arguments: str) -> float:
    """Return when the key stands on the screen that is the `screens`-th to be opened."""
    with _started(*arguments) as started:
        return started.read_until(lambda written: KEY in b"".join(written.split(SCREEN)[screens:]))


def _idle_megabytes(*arguments: str) -> float:
    """Return what a process holds once it has shown the key and nothing changes any more for a second."""
    with _started(*arguments) as started:
        started.read_until(lambda written: KEY in b"".join(written.split(SCREEN)[2:]))
        held, since = 0.0, time.monotonic()
        while time.monotonic() < since + 1:
            time.sleep(0.1)
            now = _resident_megabytes(started.process.pid)
            if abs(now - held) > 0.1:
                held, since = now, time.monotonic()
        return held


def _resident_megabytes(pid: int) -> float:
    told = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"^VmRSS:\s+(\d+) kB$", told, flags=re.MULTILINE)[0]) / 1024


def _before_the_frame() -> set[str]:
    """Return the names of what is imported before the first frame, over what Python itself takes for `-m`."""
    own = _imported("-c", "import runpy")
    return _imported("-c", "import rune.__main__, rune.cli.first_frame, rune.cli.signals") - own


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    _milliseconds(*RUNE, "--version")  # bytecode is written once, not measured
    _milliseconds("-c", "import rune.cli.app, rune.tui.app, rune.bootstrap")

    batches = paired(lambda: _milliseconds("-c", "pass"), lambda: _milliseconds(*RUNE, "--version"), runs=RUNS)
    bare = ("-c", "import os; os.write(1, b'there')")
    frames = paired(partial(_first_bytes, b"there", *bare), partial(_first_bytes, SCREEN, *RUNE), runs=RUNS)
    keys = paired(partial(_key_shown, 1, "-c", SMALLEST), partial(_key_shown, 2, *RUNE), runs=APP_RUNS)
    idle = _idle_megabytes(*RUNE)

    version_heavy = {name for name in _imported(*RUNE, "--version") if name.partition(".")[0] in HEAVY}
    frame_heavy = {name for name in _before_the_frame() if name.partition(".")[0] in HEAVY_FOR_A_FRAME}
    rows = [
        figures(what, "ms", [pair[column] for batch in taken for pair in batch])
        for what, taken, column in (
            ("python -c pass", batches, 0),
            ("rune --version", batches, 1),
            ("python's first byte", frames, 0),
            ("first frame", frames, 1),
            ("smallest app: key shown", keys, 0),
            ("rune: key shown", keys, 1),
        )
    ]
    bars = [
        _ratio("--version, times a bare Python", TIMES_BARE_PYTHON, best_ratio(batches)),
        _ratio("first frame, times a bare Python", FRAME_TIMES_BARE_PYTHON, best_ratio(frames)),
        _ratio("key shown, times the smallest app", TIMES_SMALLEST_APP, best_ratio(keys)),
        _ratio("heavy modules for --version", 0, len(version_heavy)),
        _ratio("heavy modules before the frame", 0, len(frame_heavy)),
        _ratio("resident when idle, MB", IDLE_MB, idle),
        Bar(what="--version, milliseconds, p50", limit=QUIET_MS, seen=rows[1].p50, holds=None),
        Bar(what="first frame, milliseconds, p50", limit=QUIET_FRAME_MS, seen=rows[3].p50, holds=None),
    ]
    return report("start", rows, bars, facts=fingerprint(["textual"]), as_json=as_json)


def _ratio(what: str, limit: float, seen: float) -> Bar:
    return Bar(what=what, limit=limit, seen=seen, holds=seen <= limit)


if __name__ == "__main__":
    sys.exit(main())
