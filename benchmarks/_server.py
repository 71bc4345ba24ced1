"""A model server on loopback, in a process of its own: only the measured process's CPU counts."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from _measure import ROOT


@contextlib.contextmanager
def server(folder: Path, *answers: dict[str, object]) -> Generator[str]:
    """Run a model server on loopback in a process of its own; yields its address."""
    script = folder / "script.json"
    script.write_text(json.dumps({"models": ["bench:latest"], "answers": list(answers)}))
    command = [sys.executable, "-m", "tests.ollama_server", "--script", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            if running.stdout is None:
                raise RuntimeError("the server has no stdout")
            yield running.stdout.readline().split()[-1]
        finally:
            running.kill()
