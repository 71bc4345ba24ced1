"""What a canary is made of: a claim, a check that raises when it does not hold, one line of output."""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from rune.bootstrap import Services, build
from rune.models.scripted import ScriptedTransport

Check = Callable[[Path], Awaitable[None]]


class BrokenClaimError(Exception):
    """The claim does not hold on this machine; the message says what was seen instead."""


def expect(condition: bool, seen: str) -> None:  # reads as a sentence: expect(a == b, "...")
    """Raise BrokenClaimError with what was seen when the condition is false."""
    if not condition:
        raise BrokenClaimError(seen)


def verdict(claim: str, check: Check) -> tuple[bool, str]:
    """Run a check in a home of its own; returns whether it held, and its one line."""
    with tempfile.TemporaryDirectory(prefix="rune-canary-") as folder:
        try:
            asyncio.run(_run(check, Path(folder)))
        except BrokenClaimError as error:
            return False, f"BROKEN  {claim}: {error}"
        except Exception as error:  # noqa: BLE001  # a canary that cannot run is a broken claim, with its reason shown
            return False, f"BROKEN  {claim}: {type(error).__name__}: {error}"
    return True, f"holds   {claim}"


async def _run(check: Check, folder: Path) -> None:
    await check(folder)


def alone(claim: str, check: Check) -> None:
    """Run one canary as a program: one line, exit code 0 or 1."""
    held, line = verdict(claim, check)
    sys.stdout.write(line + "\n")
    sys.exit(0 if held else 1)


async def scripted_services(folder: Path, transport: ScriptedTransport) -> Services:
    """Return started services on an own home that know only the scripted model."""
    services = build(
        {"RUNE_HOME": str(folder / "home"), "PATH": ""}, surface_kind="headless", transports=(transport,), tools=()
    )
    await services.start()
    return services
