"""Several Runes on one home that are killed and started again: `python -m ... FOLDER KILLS SEED`.

Each takes leases, emits through a ledger with views, and tells what was acknowledged. Meanwhile the views' files are
deleted under them. At the end everything is counted. Prints figures and faults as JSON.
"""

import asyncio
import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from itertools import groupby
from pathlib import Path

from rune.errors import LeaseHeldError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.small_files import locked
from rune.records.events import SessionEnded
from rune.records.messages import ConversationMessageRecord
from rune.store.codec import decode_body
from rune.store.leases import LeaseBook
from rune.store.ledger import Draft, Ledger
from rune.store.projections import ProjectionEngine
from tests.store.builders import a_message, an_id
from tests.store.campaigns.reckoning import open_home
from tests.store.spine import Reports, hashes, open_views

_RUNES = 4
_KILLS_A_HOME = 60
_CONVERSATIONS = [an_id("cnv", number) for number in range(1, 6)]
_PATIENCE = 30.0
_VIEWS = "views-1.db"


class Rune:
    """One of them, in a process of its own."""

    def __init__(self, home: Path, chance: random.Random, out: int) -> None:
        self._home, self._chance, self._out = home, chance, out
        self._clock = SystemClock()
        self._ids = UlidSource(self._clock)
        self._book = LeaseBook(home / "leases", self._clock)

    async def live(self) -> None:
        """Open the home and write until killed."""
        engine: ProjectionEngine | None = None
        store, evidence = open_home(
            self._home,
            sync=os.fdatasync,
            segment_bytes=16 << 10,
            lookup=lambda event_id: engine.lookup(event_id) if engine else None,
        )
        engine = open_views(self._home / _VIEWS, store, evidence)
        ledger = Ledger(store, engine, self._clock, self._ids, report=Reports().of_ledger)
        await ledger.start()
        while True:
            conversation = self._chance.choice(_CONVERSATIONS)
            try:
                lease = await asyncio.to_thread(self._book.take, conversation)
            except LeaseHeldError:
                note = SessionEnded(id=self._ids.new_id("ses"))
                await self._emit(ledger, engine, Draft(event_type="session.ended", body=note, partition="system"))
                continue
            try:
                await self._hold(conversation, ledger, engine)
            finally:
                lease.release()

    async def _hold(self, conversation: str, ledger: Ledger, engine: ProjectionEngine) -> None:
        await ledger.adopt(conversation)
        tenure = self._ids.new_id("trn")
        for _ in range(self._chance.randint(1, 5)):
            number = self._ids.new_id("msg").removeprefix("msg_")
            body = a_message(number, conversation, turn_id=tenure)
            event_id = self._ids.new_id("evt") if self._chance.random() < 0.3 else None
            draft = Draft(event_type="user.message", body=body, partition=conversation, event_id=event_id)
            await self._emit(ledger, engine, draft)
            if event_id is not None:
                await self._emit(ledger, engine, draft)
        await ledger.release(conversation)

    async def _emit(self, ledger: Ledger, engine: ProjectionEngine, draft: Draft) -> None:
        event = await ledger.emit(draft)
        self.say(f"{event.event_id} {event.pseq}")
        if await engine.run(lambda: engine.lookup(event.event_id)) is None:
            self.say(f"failed: {event.event_id} was emitted and its views do not know it")

    def say(self, line: str) -> None:
        os.write(self._out, f"{line}\n".encode())


class ManyRunes:
    """All of them, and what they told."""

    def __init__(self, home: Path, seed: int) -> None:
        self._home = home
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 a repeatable choice
        self._living: dict[int, int] = {}
        self._heard: dict[int, bytes] = {}
        self._started = 0
        self.told: dict[str, int] = {}
        self.figures = {"kills": 0, "acknowledged": 0, "views deleted": 0}
        self.faults: list[str] = []

    def run(self, kills: int) -> None:
        """Keep four running, kill one after some acknowledgements, start another, that often."""
        try:
            for _ in range(kills):
                while len(self._living) < _RUNES:
                    self._start()
                self._listen(self._chance.randint(0, 40))
                if self._chance.random() < 0.3:
                    self._delete_views()
                self._kill(self._chance.choice(list(self._living)))
                if self.faults:
                    break
        finally:
            for reading in list(self._living):
                self._kill(reading)
        self._count()

    def _start(self) -> None:
        reading, writing = os.pipe()
        self._started += 1
        child = os.fork()
        if child == 0:
            rune = Rune(self._home, random.Random(f"{self._seed}-{self._started}"), writing)  # noqa: S311 repeatable
            try:
                asyncio.run(rune.live())
            except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
                rune.say(f"failed: {error!r}")
            os._exit(1)
        os.close(writing)
        self._living[reading], self._heard[reading] = child, b""

    def _listen(self, wanted: int) -> None:
        until = len(self.told) + wanted
        deadline = time.monotonic() + _PATIENCE
        while len(self.told) < until and not self.faults:
            ready = select.select(list(self._living), [], [], max(0, deadline - time.monotonic()))[0]
            if not ready:
                self.faults.append("nothing was acknowledged any more")
            for reading in ready:
                self._hear(reading, os.read(reading, 1 << 16))

    def _hear(self, reading: int, chunk: bytes) -> None:
        *lines, self._heard[reading] = (self._heard[reading] + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"failed"):
                self.faults.append(line.decode())
                continue
            event_id, pseq = line.decode().split()
            if self.told.setdefault(event_id, int(pseq)) != int(pseq):
                self.faults.append(f"{event_id} was given two places")

    def _kill(self, reading: int) -> None:
        child = self._living.pop(reading)
        os.kill(child, signal.SIGKILL)
        while chunk := os.read(reading, 1 << 16):
            self._hear(reading, chunk)
        os.close(reading)
        os.waitpid(child, 0)
        self.figures["kills"] += 1

    def _delete_views(self) -> None:
        """Delete them as Rune does, under its lock, or as a person does, without."""
        views = self._home / _VIEWS
        if self._chance.random() < 0.5:
            views.unlink(missing_ok=True)
        else:
            with locked(views.with_suffix(".lock")):
                for suffix in ("-wal", "-shm", ""):
                    views.with_name(views.name + suffix).unlink(missing_ok=True)
        self.figures["views deleted"] += 1

    def _count(self) -> None:
        """Compare journal, views and what was told."""
        self.figures["acknowledged"] = len(self.told)
        store, evidence = open_home(self._home, read_only=True)
        found = [envelope for _, envelope in store.replay()]
        places = {envelope.event_id: envelope.pseq for envelope in found}
        self._expect(len(places) == len(found), "an event is in the journal twice")
        lost = [event_id for event_id, pseq in self.told.items() if places.get(event_id) != pseq]
        self._expect(not lost, f"lost, or at another place: {lost[:5]}")
        self._expect(all(it.event_type != "journal.forked" for it in found), "a fork was reported")
        engine = open_views(self._home / _VIEWS, store, evidence)
        self._expect(engine.catch_up().forks == (), "the views tell of a fork")
        unknown = [event_id for event_id in places if engine.lookup(event_id) is None]
        self._expect(not unknown, f"not in the views: {unknown[:5]}")
        before = hashes(engine)
        applied = engine.rebuild().applied
        self._expect(applied == len(found), f"a rebuild applied {applied} of {len(found)}")
        self._expect(hashes(engine) == before, "a rebuild gives other views")
        engine.close()
        for conversation in _CONVERSATIONS:
            events = list(store.replay(conversation))
            given = [envelope.pseq for _, envelope in events]
            self._expect(given == list(range(1, len(given) + 1)), f"{conversation} has places {given[:50]}")
            bodies = [decode_body(envelope, evidence) for _, envelope in events]
            tenures = [body.turn_id for body in bodies if isinstance(body, ConversationMessageRecord)]
            runs = [tenure for tenure, _ in groupby(tenures)]
            self._expect(len(runs) == len(set(runs)), f"two wrote {conversation} at the same time")

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(fault)


def main(folder: Path, kills: int, seed: int) -> None:
    started = time.monotonic()
    figures: Counter[str] = Counter()
    faults: list[str] = []
    # A home of its own after some: making its views anew takes longer the more there is.
    for start in range(0, kills, _KILLS_A_HOME):
        home = folder / f"home-{start}"
        home.mkdir()
        campaign = ManyRunes(home, seed + start)
        campaign.run(min(_KILLS_A_HOME, kills - start))
        figures.update(campaign.figures)
        faults += [f"{home.name}: {fault}" for fault in campaign.faults]
        if faults:
            break  # the home stays for whoever looks at it
        shutil.rmtree(home)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**figures, "seconds": seconds, "faults": faults[:20]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
