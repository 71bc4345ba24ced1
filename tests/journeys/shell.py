"""Rune as a person starts it: real processes on a real home."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 60


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Runs `python -m rune` in a folder, with a home of its own and nothing else from outside."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.folder = tmp_path / "project"
        self.folder.mkdir()
        self.environ = {
            "RUNE_HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "OLLAMA_HOST": "127.0.0.1:1",
            "PYTHONWARNINGS": "error::ResourceWarning",
        }

    def script(self, *answers: dict[str, Any], window: int = 8192) -> None:
        """Let a scripted model answer; the last answer is given again and again."""
        path = self.folder.parent / "script.json"
        path.write_text(json.dumps({"answers": list(answers), "window": window}))
        self.environ["RUNE_SCRIPTED_MODEL"] = str(path)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "rune", *arguments]

    def run(self, *arguments: str, stdin: bytes | None = None, folder: Path | None = None) -> Ran:
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=folder or self.folder,
            env=self.environ,
            timeout=SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start it and go on; the caller ends it."""
        return subprocess.Popen(
            self.command(*arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environ,
        )

    def events(self, *types: str) -> list[Any]:
        chosen: Sequence[str] = [part for name in types for part in ("--type", name)]
        return self.run("events", "--json", "--limit", "10000", *chosen).lines()
