"""Kill Runes in mid-turn, again and again: `python -m tests.turn.campaigns.kill_turns HOMES FOLDER KILLS SEED`.

HOMES may be in memory, which tools may not touch; what they work on is under FOLDER. Each starts on what the one before
left. Prints figures and faults as JSON. This process forks and has no thread.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.store.campaigns.reckoning import open_home
from tests.turn.campaigns.kept_account import Account
from tests.turn.campaigns.killed_life import NEVER, Aim, Places, inspect, live

_KILLS_A_HOME = 15
_LONGEST = 0.5
_EVENTS = (
    "turn.started",
    "response.generated",
    "tool.intent",
    "tool.result",
    "approval.requested",
    "approval.decided",
    "turn.finished",
)
_HOWS = ("before", "half", "after")


class KillTurns:
    """Homes in which one Rune after the other is killed."""

    def __init__(self, homes: Path, folder: Path, seed: int) -> None:
        self._homes = homes
        self._folder = folder
        self._chance = random.Random(seed)  # noqa: S311 a repeatable choice of moments
        self._number = 0
        self._killed = 0
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []

    def run(self, kills: int) -> None:
        """Kill that often."""
        start = 0
        while self._killed < kills and not self.faults:
            base = self._folder / f"base-{start}"
            start += 1
            places = Places(self._homes / f"home-{start}", base / "project", base / "effects")
            places.folder.mkdir(parents=True)
            for name in ("a.txt", "b.txt"):
                (places.folder / name).write_text(f"this is {name}\n")
            places.effects.touch()
            self._home(places, min(kills, self._killed + _KILLS_A_HOME))
            if not self.faults:
                shutil.rmtree(base)
                shutil.rmtree(places.home)

    def _home(self, places: Places, until: int) -> None:
        account = Account()
        cursor: dict[str, object] = {}
        while self._killed < until and not self.faults:
            self._one(places, self._aim(), account, cursor)
        shown = self._one(places, NEVER, account, cursor)
        self.figures["unknown"] += len(account.unknown())
        for call in account.unknown():
            if not any(call.turn_id == turn_id and call.effect in effects for turn_id, effects in shown):
                self.faults.append(f"{call.id} may have run, and nobody is told")
        self._expect(not account.open_turns, f"turns without an end: {account.open_turns}")
        self.figures["effects"] += len(places.effects.read_text().split())
        self.figures["calls that acted"] += len(account.intents)
        self._take(self._child(lambda out: inspect(places, out)), NEVER)

    def _one(
        self, places: Places, aim: Aim, account: Account, cursor: dict[str, object]
    ) -> list[tuple[str, list[str]]]:
        before = set(account.open_turns), set(account.unended())
        self._number += 1
        number = self._number
        said, killed = self._child(lambda out: live(places, number, aim, out))
        self._killed += killed
        self.figures["kills"] += killed
        self.figures[f"killed at {aim.what} {aim.how}" if aim.what != "time" else "killed at any time"] += killed
        shown = self._take((said, killed), aim)
        words = {line.partition(" ")[0] for line in said}
        if not killed:
            self._expect("ended" in words, f"life {number} ended early: {said[-3:]}")
        self._read(places, account, cursor)
        if "recovered" in words:
            still = before[0] & account.open_turns, before[1] & set(account.unended())
            self._expect(still == (set(), set()), f"not recovered: {still}")
            self.figures["recoveries"] += bool(before[0])
        self.figures["questions answered later"] += sum(line.startswith("answers") for line in said)
        account.compare(places.effects)
        self.faults += [f"life {number} {aim}: {fault}" for fault in account.faults]
        return shown

    def _read(self, places: Places, account: Account, cursor: dict[str, object]) -> None:
        if not (places.home / "journal").is_dir():
            return
        store, evidence = open_home(places.home, read_only=True)
        found = list(store.read(cursor))  # type: ignore[arg-type]  # offsets, of a type that only the store names
        cursor.update({offset.writer: offset for offset, _ in found})
        account.take(found, evidence)

    def _aim(self) -> Aim:
        drawn = self._chance.random()
        if drawn < 0.3:
            return Aim("time", seconds=self._chance.uniform(0, _LONGEST))
        if drawn < 0.45:
            return Aim("act", self._chance.choice(("before", "after")))
        how = self._chance.choice(_HOWS)
        return Aim(self._chance.choice(_EVENTS), how, self._chance.choice((1, 1, 2, 3)))

    def _child(self, do: Callable[[int], None]) -> tuple[list[str], bool]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                do(writing)
            except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
                os.write(writing, f"fault {error!r}\n".encode())
            os._exit(0)
        os.close(writing)
        said = b""
        while chunk := os.read(reading, 1 << 16):
            said += chunk
        os.close(reading)
        _, status = os.waitpid(child, 0)
        return said.decode().splitlines(), os.waitstatus_to_exitcode(status) == -signal.SIGKILL

    def _take(self, told: tuple[list[str], bool], aim: Aim) -> list[tuple[str, list[str]]]:
        shown: list[tuple[str, list[str]]] = []
        for line in told[0]:
            word, _, text = line.partition(" ")
            if word == "fault":
                self.faults.append(f"{aim}: {text}")
            elif word == "shown":
                turn_id, effects = json.loads(text)
                shown.append((turn_id, effects))
        return shown

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(fault)


def main(homes: Path, folder: Path, kills: int, seed: int) -> None:
    campaign = KillTurns(homes, folder, seed)
    started = time.monotonic()
    campaign.run(kills)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**campaign.figures, "seconds": seconds, "faults": campaign.faults[:20]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
