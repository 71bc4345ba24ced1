"""Two processes answer one question at once: `python -m tests.turn.campaigns.two_answers HOME ROUNDS`.

For each round one Rune asks, then two are started, wait for each other, and answer. Prints how each fared, as JSON.
This process forks and has no thread.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rune.errors import RuneError
from rune.models.scripted import says
from rune.records.tools import ToolCall
from rune.tools.executors.run_command import RunCommand
from tests.turn.rig import closing, rig
from tests.turn.test_action_protocols import large


async def ask(home: Path, number: int) -> str:
    """Have a turn pause; returns its question."""
    made = ToolCall(id="call_1", name="run_command", arguments={"command": f"echo round{number} >> ran.txt"})
    async with rig(home, (), model=large(says("", calls=[made])), tools=[RunCommand()]) as it:
        return closing(await it.turn(f"round {number}")).pending_approval or "nothing was asked"


async def answer(home: Path, approval: str, ready: Callable[[], None]) -> str:
    """Answer when both are ready; returns how that ended."""
    async with rig(home, (), model=large(says("Done.")), tools=[RunCommand()]) as it:
        await asyncio.to_thread(ready)
        try:
            closed = closing(await it.answered(approval))
        except RuneError as error:
            return type(error).__name__
        return "won" if closed.answer == "Done." else f"{closed.stop_reason}: {closed.error}"


def forked(do: Callable[[], str]) -> int:
    """Run it in a child; returns where its word comes from."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        try:
            os.write(writing, do().encode())
        except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    return reading


def word(reading: int) -> str:
    """Return what a child said, when it has ended."""
    said = b""
    while chunk := os.read(reading, 1 << 16):
        said += chunk
    os.close(reading)
    os.wait()
    return said.decode()


def main(home: Path, rounds: int) -> None:
    fared: list[list[str]] = []
    for number in range(rounds):
        approval = word(forked(lambda number=number: asyncio.run(ask(home, number))))
        waiting, go = os.pipe()
        here, there = os.pipe()

        def ready(there: int = there, waiting: int = waiting) -> None:
            os.write(there, b".")
            os.read(waiting, 1)

        def one(approval: str = approval, ready: Callable[[], None] = ready) -> str:
            return asyncio.run(answer(home, approval, ready))

        children = [forked(one), forked(one)]
        arrived = 0
        while arrived < len(children):
            arrived += len(os.read(here, 2))
        os.write(go, b"..")
        fared.append(sorted(word(each) for each in children))
        for descriptor in (waiting, go, here, there):
            os.close(descriptor)
    print(json.dumps(fared))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
