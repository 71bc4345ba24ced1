"""Campaigns run in a process of their own: it forks without other threads, and its death harms no test."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[3]


def run(module: str, *arguments: object, before: tuple[str, ...] = (), seconds: float = 100) -> dict[str, Any]:
    """Run `tests.store.campaigns.<module>`; returns the figures that it prints last.

    `before` is what starts it instead of the shell (`unshare --mount`). Its own messages go to stderr.
    """
    command = [*before, sys.executable, "-m", f"tests.store.campaigns.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, timeout=seconds, check=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{module}: {figures}")
    return figures
