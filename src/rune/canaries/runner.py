"""Finds the canaries and runs them."""

import importlib
import pkgutil
from collections.abc import Callable

import rune.canaries
from rune.canaries.claim import verdict
from rune.errors import UsageError

_NOT_CLAIMS = ("claim", "prompts", "runner")


def names() -> tuple[str, ...]:
    """Return the names of all canaries on disk."""
    found = pkgutil.iter_modules(rune.canaries.__path__)
    return tuple(sorted(module.name for module in found if module.name not in _NOT_CLAIMS))


def run_canaries(name: str | None, say: Callable[[str], None]) -> bool:
    """Run one or all, one line each; True when every claim holds. Raises UsageError for an unknown name."""
    known = names()
    if name is not None and name not in known:
        raise UsageError(f"there is no canary {name!r}", hint=f"There are: {', '.join(known)}.")
    held = True
    for one in known if name is None else (name,):
        module = importlib.import_module(f"rune.canaries.{one}")
        good, line = verdict(module.CLAIM, module.check)
        held = held and good
        say(line)
    return held
