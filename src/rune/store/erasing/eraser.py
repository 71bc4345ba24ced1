"""Erasing for good: bodies in the journal, evidence, views (spine.md, Erasing).

The order is what makes it whole after a kill at any moment. That bodies are erased is durable first, with what is put
back. Then everything goes that only their text leads to, and the bodies themselves after it, so that whoever goes on
still knows what to look for. A note in the journal's folder (ids only) stays until the views are made anew.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from rune.errors import SlotHeldError
from rune.host.clock import Clock
from rune.host.files import LockedFile, lock_file, replace_file, sync_folder
from rune.host.ids import IdSource
from rune.host.small_files import locked, read_bounded
from rune.records.events import BodyErased, Event, JournalRepaired
from rune.records.record import Record
from rune.records.times import rfc3339
from rune.store.alone import alone
from rune.store.codec import BlobReader, decode_body
from rune.store.durable_store import DurableEventStore
from rune.store.erasing.aim import TASKS, TITLED, Aim, resolve
from rune.store.erasing.choice import Choice, Chosen, TitleOf, choose, titles_in
from rune.store.erasing.remains import Remains, blobs_holding, read_whole, remains
from rune.store.erasing.rewriting import rewrite_segment
from rune.store.erasures import ErasureIndex, lines_of_all
from rune.store.event_store import Cursor
from rune.store.evidence_names import blobs_behind, blobs_of
from rune.store.evidence_store import EvidenceStore
from rune.store.failures import unavailable
from rune.store.holders import note, read_note, this_process
from rune.store.hybrid_clock import HybridClock
from rune.store.journal import SlotWriter
from rune.store.leases import LeaseBook
from rune.store.lost_bodies import BodyReader
from rune.store.order import Located
from rune.store.segments import list_segments, segment_name
from rune.text.sought import Sought

NOTE = "erasing.json"
LOCK = "erasing.lock"
# So many ids stay in the line: a `body.erased` whose list lay in evidence could lose it.
_NAMED_AT_ONCE = 50
_REASONS = 20
_LONGEST_NOTE = 1 << 30
_REASON = "asked for by the owner:"
_ID = b'"event_id":"'
_ID_LENGTH = 30


class ErasurePlan(msgspec.Struct, frozen=True, kw_only=True):
    """All that an erasure will do to journal and evidence. `forks` share what goes; `resumed`: one that was
    interrupted is finished with it.
    """

    aim: Aim
    choice: Choice
    remains: Remains
    sought: Sought
    forks: frozenset[str]
    resumed: bool
    head: Cursor

    @property
    def fresh(self) -> tuple[Chosen, ...]:
        """The bodies that no `body.erased` names yet."""
        return tuple(each for each in self.choice.chosen.values() if each.erasing_id is None)

    @property
    def nothing(self) -> bool:
        """Whether all of it is gone already."""
        return not (self.choice.chosen or self.remains.bodies or self.resumed)

    @property
    def held(self) -> frozenset[str]:
        """The conversations and slots that nobody else may have meanwhile."""
        chosen = self.choice.chosen.values()
        conversations = {each.partition for each in chosen if each.partition.startswith("cnv_")}
        return frozenset(conversations | {each.writer for each in chosen})

    @property
    def ids(self) -> frozenset[str]:
        """The ids under which the text may be found where it is cut off."""
        return frozenset(self.choice.chosen) | self.aim.conversations | frozenset(self.aim.messages)


class Eraser:
    """Erases in one home. `step` is told the name of each stage before it begins. All of it blocks."""

    def __init__(
        self,
        *,
        journal: Path,
        evidence: Path,
        leases: LeaseBook,
        clock: Clock,
        ids: IdSource,
        device_id: str,
        title_of: TitleOf,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._journal = journal
        self._root = evidence
        self._leases = leases
        self._clock = clock
        self._ids = ids
        self._device_id = device_id
        self._title_of = title_of
        self._step = step
        self._evidence = EvidenceStore(evidence, clock)
        self._decode = BodyReader(partial(decode_body, evidence=self._evidence), lambda _: None).read

    @contextmanager
    def prepared(self, texts: Sequence[str]) -> Generator[ErasurePlan]:
        """Give the plan for these ids, which nobody can invalidate as long as this lasts; without ids, for what an
        interrupted erasure left.

        Raises NotFoundError, UsageError, LeaseHeldError (a conversation or a slot is open in another Rune; nothing
        was changed), CorruptJournalError, StorageUnavailableError.
        """
        with ExitStack() as stack:
            # First of all: what one erasure notes and forgets must not be another's.
            stack.enter_context(alone(self._journal / LOCK, "an erasure"))
            plan = self._plan(texts)
            taken: set[str] = set()
            while True:
                for name in sorted(plan.held - taken):
                    stack.enter_context(self._leases.take(name) if name.startswith("cnv_") else self._slot(name))
                    taken.add(name)
                if self._reader().head() != plan.head:
                    plan = self._plan(texts)
                if plan.held <= taken:
                    break
            yield plan

    def erase(self, plan: ErasurePlan, clean: Callable[[], None], views: Callable[[], None]) -> None:
        """Carry a plan out, inside of `prepared`. `clean` removes what the text leads to elsewhere in the home,
        `views` throws the views away and makes them anew.

        Not from a thread that runs an event loop. Raises as `prepared`; after an error or a kill the same call again
        goes on.
        """
        self._step("body.erased")
        erasing = self._announce(plan)
        self._write_note(erasing)
        self._step("places")
        clean()
        self._step("evidence")
        self._remove_blobs(plan)
        for writer, number in sorted({(each.writer, each.segment) for each in plan.choice.chosen.values()}, key=_age):
            self._step(f"segment {segment_name(writer, number)}")
            rewrite_segment(self._journal, writer, number, erasing)
        self._step("bodies")
        self._unlink(plan.remains.bodies)
        self._step("views")
        views()
        self._step("note")
        self._forget_note()

    def _plan(self, texts: Sequence[str]) -> ErasurePlan:
        store = self._reader()
        head = store.head()

        def events() -> Iterator[Located]:
            return store.read({})

        aim = resolve(events(), self._decode, texts)
        titles = titles_in(events(), self._decode, aim, self._title_of) if aim.conversations else frozenset[str]()
        choice = choose(events(), self._decode, aim, self._title_of, titles)
        sought = Sought(choice.texts)
        holding = blobs_holding(self._root, sought)
        messages = frozenset(aim.messages)
        found = remains(events(), self._decode, self._evidence, choice, sought, holding, messages)
        bodies = choice.chosen.values()
        shared = aim.conversations | {each.partition for each in bodies if each.event_type not in (*TITLED, *TASKS)}
        return ErasurePlan(
            aim=aim,
            choice=choice,
            remains=found,
            sought=sought,
            forks=aim.lineage(shared) - shared,
            resumed=bool(set(choice.chosen) & aim.erasing.keys()) or (self._journal / NOTE).exists(),
            head=head,
        )

    def _reader(self) -> DurableEventStore:
        return DurableEventStore.open(
            self._journal,
            clock=self._clock,
            ids=self._ids,
            device_id="",
            evidence=self._evidence,
            read_only=True,
        )

    def _slot(self, writer: str) -> LockedFile:
        path = self._journal / f"{writer}.lock"
        try:
            lock = lock_file(path)
            if lock is None:
                holder = read_note(path)
                raise SlotHeldError(writer, pid=holder.pid, since=holder.since)
            lock.write(note(this_process(self._clock)))
        except OSError as error:
            raise unavailable(error, f"cannot take the place {writer} in the journal") from error
        return lock

    def _announce(self, plan: ErasurePlan) -> dict[str, str]:
        """Make durable what is erased, by which event, and what is put back; returns the erasing ids by event."""
        erasing = {each.event_id: each.erasing_id for each in plan.choice.chosen.values() if each.erasing_id}
        events = self._repaired(plan)
        fresh = [each.event_id for each in plan.fresh]
        missed = sorted(plan.remains.missed - plan.aim.gone)
        for place in range(0, max(len(fresh), len(missed)), _NAMED_AT_ONCE):
            until = place + _NAMED_AT_ONCE
            body = BodyErased(
                event_ids=tuple(fresh[place:until]),
                reason=_reason(plan.aim.named),
                blobs=tuple(missed[place:until]) or msgspec.UNSET,
            )
            events.append(self._event("body.erased", "system", body, actor_id="owner"))
            erasing.update(dict.fromkeys(body.event_ids, events[-1].event_id))
        if fresh or missed:
            places = dict(plan.choice.last_pseq)
            for fact in plan.choice.put_back:
                places[fact.partition] += 1
                events.append(self._event(fact.event_type, fact.partition, fact.body, pseq=places[fact.partition]))
        if events:
            asyncio.run(self._append(events))
        return erasing

    async def _append(self, events: Sequence[Event]) -> None:
        # The slots whose segments change are held: it writes in another one.
        store = await asyncio.to_thread(
            DurableEventStore.open,
            self._journal,
            clock=self._clock,
            ids=self._ids,
            device_id=self._device_id,
            evidence=self._evidence,
        )
        try:
            await store.append_many(events)
        finally:
            await store.close()

    def _repaired(self, plan: ErasurePlan) -> list[Event]:
        """Cut torn tails off the slots that are held: they may hold the text too, and are cleaned beside them."""
        erasures = ErasureIndex(self._journal, self._evidence)
        segments = list_segments(self._journal)
        events: list[Event] = []
        for name in sorted(plan.held & segments.keys()):
            writer = SlotWriter(
                self._journal, name, clock=self._clock, hlc=HybridClock(self._clock), device_id=self._device_id
            )
            try:
                repair = writer.open(segments[name], erasures.names)
            finally:
                writer.close()
            if repair is not None:
                body = JournalRepaired(
                    segment=repair.segment, kept_as=repair.kept_as, bytes=repair.bytes, reason=repair.reason
                )
                events.append(self._event("journal.repaired", "system", body))
        return events

    def _event(self, event_type: str, partition: str, body: Record, *, actor_id: str = "rune", pseq: int = 0) -> Event:
        return Event(
            event_id=self._ids.new_id("evt"),
            event_type=event_type,
            partition_key=partition,
            actor_id=actor_id,
            timestamp=rfc3339(self._clock.now_ms()),
            body=body,
            pseq=pseq,
        )

    def _remove_blobs(self, plan: ErasurePlan) -> None:
        read = {name: read_whole(self._evidence, name) for name in plan.remains.blobs}
        kept = {name: content for name, content in read.items() if content is not None}
        self._unlink(plan.remains.blobs)
        unfinished = self._root / "unfinished"
        for path in sorted(unfinished.iterdir()) if unfinished.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):  # whoever was writing it has finished it
                if plan.sought.within(path.read_bytes()):
                    path.unlink()
        # A Rune that runs beside this one may have come to need one of them meanwhile.
        for _, envelope in self._reader().read(plan.head):
            body = self._decode(envelope)
            for name in (blobs_of(body) | blobs_behind(body, self._evidence)) & kept.keys():
                if not plan.sought.within(kept[name]):
                    self._evidence.put(kept[name], source="erasing")

    def _unlink(self, names: frozenset[str]) -> None:
        paths = [self._root / name[7:9] / name[9:] for name in sorted(names)]
        try:
            for path in paths:
                path.unlink(missing_ok=True)
            for folder in sorted({path.parent for path in paths if path.parent.is_dir()}):
                sync_folder(folder)
        except OSError as error:
            raise unavailable(error, f"cannot remove evidence from {str(self._root)!r}") from error

    def _write_note(self, erasing: dict[str, str]) -> None:
        noted = sorted({*erasing, *_noted(self._journal)})
        try:
            replace_file(self._journal / NOTE, msgspec.json.encode(noted) + b"\n")
        except OSError as error:
            raise unavailable(error, f"cannot note in {str(self._journal)!r} what is being erased") from error

    def _forget_note(self) -> None:
        try:
            (self._journal / NOTE).unlink(missing_ok=True)
            sync_folder(self._journal)
        except OSError as error:
            raise unavailable(error, f"cannot remove the note in {str(self._journal)!r}") from error


def _reason(named: Sequence[str]) -> str:
    more = f" and {len(named) - _REASONS:,} more" if len(named) > _REASONS else ""
    return " ".join((_REASON, *named[:_REASONS])) + more


def unfinished(folder: Path, evidence: BlobReader) -> tuple[str, ...]:
    """Return the ids of events whose erasing was begun and is not whole; () when there are none.

    `folder` is the journal's. A body that a `body.erased` names is still there, or what follows it was not done.
    Raises StorageUnavailableError.
    """
    named = ErasureIndex(folder, evidence).all_named()
    found = set(_noted(folder))
    if named:
        found |= {event_id for line in lines_of_all(folder) if (event_id := _unerased(line)) in named}
    return tuple(sorted(found))


def discard_views(folder: Path) -> tuple[str, ...]:
    """Remove every views file of a folder with what belongs to it; returns their names. Raises StorageUnavailableError.

    A Rune that has one open sees that it is gone and makes its own anew.
    """
    names = {path.name.partition(".db")[0] for path in folder.glob("views-*.db*")}
    gone: list[str] = []
    try:
        for name in sorted(names):
            with locked(folder / f"{name}.lock"):
                # The side files first: a new file must never meet the log of an old one.
                for path in (*sorted(folder.glob(f"{name}.db?*")), folder / f"{name}.db"):
                    if path.exists():
                        path.unlink()
                        gone.append(path.name)
        sync_folder(folder)
    except OSError as error:
        raise unavailable(error, f"cannot remove the views in {str(folder)!r}") from error
    return tuple(gone)


def _age(place: tuple[str, int]) -> tuple[int, str]:
    """Sort the older segments first: what began in one ends in a later one, and never the other way round."""
    return place[1], place[0]


def _unerased(line: bytes) -> str:
    """Return the id of a line whose body is there; "" for one without."""
    start = line.find(_ID) + len(_ID)
    if start < len(_ID) or b'","body":{"erased":"evt_' in line[-60:]:
        return ""
    return line[start : start + _ID_LENGTH].decode("ascii", "replace")


def _noted(folder: Path) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(read_bounded(folder / NOTE, _LONGEST_NOTE), type=tuple[str, ...])
    except FileNotFoundError:
        return ()
    except (msgspec.DecodeError, OSError):
        return ("unknown",)  # something stands there all the same: it is not finished
