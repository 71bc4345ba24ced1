"""From an answered question to the tool that starts, and from a cancel to the last process gone.

Bars: 50 ms from the answer to `tool_started`, on a home whose journal syncs; 100 ms from Esc until nothing of a command
runs any more, 2 s where it ignores signals. The floor of the first is a bare write and sync, four of which lie between:
the decision, the intent, and the prompt's evidence.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from _measure import Bar, Figures, figures, fingerprint, report, wants_json

from rune.bootstrap import Services, build
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import Capability, ModelInfo
from rune.records.tools import ToolCall
from rune.turn.events import ApprovalAsked, ToolOutput, ToolStarted
from rune.turn.flight import CancelToken
from rune.turn.request import TurnRequest

TIMES = 20
ANSWERED_MS, GONE_MS, STUBBORN_MS = 50.0, 100.0, 2_000.0
ABLE: frozenset[Capability] = frozenset({"chat", "tools"})
QUIET = "echo begun; sleep 300 & sleep 300"
STUBBORN = "trap '' TERM INT; echo begun; sleep 300 & while true; do sleep 1; done"


def model(command: str) -> ScriptedTransport:
    """Return a model that asks for a command, and says so afterwards."""
    call = ToolCall(id="call_1", name="run_command", arguments={"command": command})
    info = ModelInfo(name="large", provider="scripted", capabilities=ABLE, parameters="14B", context_length=32_768)
    return ScriptedTransport(
        lambda request: says("Done.") if b'"role":"tool"' in request.messages else says("", calls=[call]), models=[info]
    )


async def asked(services: Services, folder: Path) -> str:
    """Run a turn up to its question, and return its id."""
    request = TurnRequest(text="do it", folder=str(folder))
    events = [event async for event in services.surface.operator.send_task(request)]
    return next(event.approval_id for event in events if isinstance(event, ApprovalAsked))


async def answered(services: Services, folder: Path) -> float:
    """Return the milliseconds from an answer to the tool's start."""
    question = await asked(services, folder)
    began = time.perf_counter()
    started = 0.0
    async for event in services.surface.operator.answer(question, "allow"):
        if isinstance(event, ToolStarted):
            started = (time.perf_counter() - began) * 1000
    return started


async def cancelled(services: Services, folder: Path) -> float:
    """Return the milliseconds from a cancel to the turn's end, which waits until nothing of the command is left."""
    question = await asked(services, folder)
    token = CancelToken()
    began = 0.0
    async for event in services.surface.operator.answer(question, "allow", token=token):
        if isinstance(event, ToolOutput) and not began:
            began = time.perf_counter()
            token.cancel()
    return (time.perf_counter() - began) * 1000


def synced(folder: Path) -> float:
    """Return the milliseconds of one write and sync."""
    descriptor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        began = time.perf_counter()
        os.write(descriptor, b"x" * 2_000)
        os.fdatasync(descriptor)
        return (time.perf_counter() - began) * 1000
    finally:
        os.close(descriptor)


async def measured(base: Path, command: str, kind: str, times: int) -> list[float]:
    """Run one kind of measurement on a home of its own."""
    folder = base / "work"
    folder.mkdir(exist_ok=True)
    environ = {"RUNE_HOME": str(base / kind), "PATH": os.environ.get("PATH", "")}
    services = build(environ, surface_kind="headless", transports=(model(command),))
    await services.start()
    try:
        what = answered if kind == "answered" else cancelled
        return [await what(services, folder) for _ in range(times)]
    finally:
        await services.close()


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as name:
        base = Path(name).resolve()
        answers = asyncio.run(measured(base, "true", "answered", TIMES))
        floors = [synced(base) for _ in range(TIMES)]
        quiet = asyncio.run(measured(base, QUIET, "quiet", TIMES // 2))
        stubborn = asyncio.run(measured(base, STUBBORN, "stubborn", 3))
    rows: list[Figures] = [
        figures("one write and sync", "ms", floors),
        figures("answered to started", "ms", answers),
        figures("cancel to gone", "ms", quiet),
        figures("cancel to gone, signals ignored", "ms", stubborn),
    ]
    limits = (ANSWERED_MS, GONE_MS, STUBBORN_MS)
    bars = [
        Bar(what=row.what, limit=limit, seen=row.p50, holds=None) for row, limit in zip(rows[1:], limits, strict=True)
    ]
    return report("approvals", rows, bars, facts=fingerprint(), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
