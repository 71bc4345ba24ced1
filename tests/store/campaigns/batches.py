"""What a campaign writes: batches whose every byte follows from seed, run and number, so that all can be checked."""

import random
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rune.records.events import Event
from tests.store.samples import said

_OUTGROWN = 9_000
_IDS = "evt_{run:08}{number:08}{index:05}{size:05}"


class Key(NamedTuple):
    """One batch: the `number`-th that the `run`-th process wrote."""

    run: int
    number: int


class Named(NamedTuple):
    """What an id of a campaign's event says: which batch, which line of it, how many lines it has."""

    key: Key
    line: int
    size: int


class OneId:
    """An IdSource that gives one id."""

    def __init__(self, event_id: str) -> None:
        self._id = event_id

    def new_id(self, kind: str) -> str:
        return self._id


def batch_of(seed: int, key: Key) -> tuple[Event, ...]:
    """Return the events of a batch: mostly one small one, some of two to six, some with a body beyond a line."""
    chance = random.Random(f"{seed}-{key.run}-{key.number}")  # noqa: S311 a repeatable choice
    size = 1 if chance.random() < 0.65 else chance.randint(2, 6)
    return tuple(_event(chance, key, index, size) for index in range(size))


def named(event_id: str) -> Named:
    """Return what the id of a campaign's event says."""
    digits = event_id.removeprefix("evt_")
    run, number, index, size = digits[:8], digits[8:16], digits[16:21], digits[21:]
    return Named(Key(int(run), int(number)), int(index), int(size))


def keys_from(run: int, first: int = 0) -> Iterator[Key]:
    """Iterate over the batches of a run for ever."""
    while True:
        yield Key(run, first)
        first += 1


def _event(chance: random.Random, key: Key, index: int, size: int) -> Event:
    length = chance.randint(_OUTGROWN, _OUTGROWN + 5_000) if chance.random() < 0.1 else chance.randint(0, 400)
    event_id = _IDS.format(run=key.run, number=key.number, index=index, size=size)
    event = said(OneId(event_id), f"{event_id} " + "r" * length)
    return msgspec.structs.replace(event, timestamp=f"2026-11-30T14:{chance.randrange(60):02}:00.{index:03}Z")
