"""Homes with conversations in which something is to be erased."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.records.messages import ConversationMessageRecord
from rune.records.record import Record
from rune.records.tasks import TaskStatus
from rune.records.traces import InferenceTraceRecord, RecipeBlock, RecipeMessage
from rune.records.turns import StopReason
from rune.store.codec import decode_body
from rune.store.durable_store import DurableEventStore
from rune.store.erasing.eraser import Eraser
from rune.store.evidence_store import EvidenceStore
from rune.store.leases import LeaseBook
from rune.store.ledger import once
from rune.turn.recorder import title_of
from tests.store.builders import TIME, a_conversation, a_message, a_task, a_trace, a_turn, an_id
from tests.store.samples import DEVICE


class Told:
    """A conversation of one turn: its number gives all its ids."""

    def __init__(self, number: int, text: str, answer: str = "Elbe, Oder, Spree and others") -> None:
        self.id = an_id("cnv", number)
        self.said = self._message(number, text, "user")
        self.answer = self._message(f"{number}a", answer, "assistant")
        self.task = an_id("tsk", number)
        self._number = number
        self._text = text

    def _message(self, number: int | str, text: str, role: str) -> ConversationMessageRecord:
        n = str(number).rstrip("a")
        spoken = "user" if role == "user" else "assistant"
        return a_message(number, self.id, role=spoken, content=text, task_id=an_id("tsk", n), turn_id=an_id("trn", n))

    def events(self, blobs: Sequence[str]) -> list[Event]:
        title = title_of(self._text)
        task = msgspec.structs.replace(a_task(self._number, self.id, status=TaskStatus.OPEN), title=title)
        steps: list[tuple[str, Record]] = [
            ("conversation.created", a_conversation(self.id, title=title)),
            ("task.created", task),
            ("turn.started", a_turn(self._number, self.id)),
            ("user.message", self.said),
            ("response.generated", self.answer),
            ("task.transition", task),
            ("inference.traced", self._trace(blobs)),
            ("turn.finished", a_turn(self._number, self.id, stop_reason=StopReason.ANSWERED)),
        ]
        return [
            Event(
                event_id=once(body.id)
                if isinstance(body, ConversationMessageRecord)
                else an_id("evt", f"{self._number}{place}"),
                event_type=kind,
                partition_key=self.id,
                actor_id="rune",
                timestamp=TIME,
                body=body,
                pseq=place,
            )
            for place, (kind, body) in enumerate(steps, 1)
        ]

    def _trace(self, blobs: Sequence[str]) -> InferenceTraceRecord:
        trace = a_trace(self._number, self.id, history=0)
        recipe = msgspec.structs.replace(
            trace.requests[0],
            prefix="",
            blocks=tuple(RecipeBlock(name="b", placement="prefix", tokens=1, blob=blob) for blob in blobs),
            history=(RecipeMessage(message_id=self.said.id, rendering="0" * 64),),
        )
        return msgspec.structs.replace(trace, requests=(recipe,))


def tell(home: Path, *conversations: Told, blobs: Sequence[bytes] = (), segment_bytes: int = 64 << 20) -> list[str]:
    """Write conversations into the home's journal, each naming all blobs; returns the blobs' ids."""
    clock = SystemClock()
    evidence = EvidenceStore(home / "evidence", clock)
    names = [evidence.put(blob, source="test").hash for blob in blobs]

    async def write() -> None:
        store = await asyncio.to_thread(
            DurableEventStore.open,
            home / "journal",
            clock=clock,
            ids=UlidSource(clock),
            device_id=DEVICE,
            evidence=evidence,
            segment_bytes=segment_bytes,
        )
        for conversation in conversations:
            for event in conversation.events(names):
                await store.append(event)
        await store.close()

    asyncio.run(write())
    return names


def an_eraser(home: Path) -> Eraser:
    clock = SystemClock()
    return Eraser(
        journal=home / "journal",
        evidence=home / "evidence",
        leases=LeaseBook(home / "leases", clock),
        clock=clock,
        ids=UlidSource(clock),
        device_id=DEVICE,
        title_of=title_of,
    )


def erase(home: Path, *ids: str) -> None:
    """Erase in journal and evidence alone."""
    eraser = an_eraser(home)
    with eraser.prepared(ids) as plan:
        eraser.erase(plan, lambda: None, lambda: None)


def read_back(home: Path) -> list[tuple[EventEnvelope, Record]]:
    """Return every event with its body, all of it verified."""
    clock = SystemClock()
    evidence = EvidenceStore(home / "evidence", clock)
    store = DurableEventStore.open(
        home / "journal", clock=clock, ids=UlidSource(clock), device_id="", evidence=evidence, read_only=True
    )
    decode = partial(decode_body, evidence=evidence)
    return [(envelope, decode(envelope)) for _, envelope in store.replay()]


def files_with(home: Path, *needles: bytes) -> list[str]:
    """Return the files of a home that hold any of these bytes: a plain grep, which knows nothing of Rune."""
    files = sorted(path for path in home.rglob("*") if path.is_file())
    return [str(path.relative_to(home)) for path in files if any(needle in path.read_bytes() for needle in needles)]
