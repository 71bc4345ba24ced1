"""Write the golden home of this version: `python -m tests.store.campaigns.write_golden_home`. Run by hand, once.

What a released version wrote must open for ever: the home is never written again after its release. A change of
what is stored gets a home of its own, `v2`, beside it.
"""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from rune.records.events import BodyErased, Event
from rune.store.erasing.rewriting import rewrite_segment
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION
from tests.store.journals import fill, open_now, opened
from tests.store.samples import MOMENT, one_of_each, said
from tests.store.spine import STORY, events

HOME = Path(__file__).parents[2] / "data" / "homes" / "v1"
_SEGMENT_BYTES = 12_000


async def write(home: Path) -> None:
    """Fill a home with one event of each kind, a story, two writers, long bodies, an erased one and a torn tail."""
    ids, clock = CountedIds(), CountedClock()
    long = said(ids, "a long answer " * 900)
    forgotten = said(ids, "what was here was erased")
    batches: Sequence[Sequence[Event]] = (
        events(*STORY, partition=CONVERSATION, prefix="9"),
        *((event,) for event in one_of_each(ids)),
        (long, forgotten, said(ids, 'caf\u00e9 "\\ \u2028 \U0001f30a')),
    )
    async with opened(home, ids=ids, clock=clock, segment_bytes=_SEGMENT_BYTES) as store:
        offsets = [offset for batch in batches for offset in await store.append_many(batch)]
        other = open_now(home, ids=ids, clock=clock)
        await other.append_many([said(ids, "from a second process"), said(ids, "and long " * 1500)])
        await other.close()
        erasing = _erasing(ids, forgotten)
        await store.append(erasing)
    offset = offsets[-2]
    rewrite_segment(home / "journal", offset.writer, offset.segment, {forgotten.event_id: erasing.event_id})
    last = max((home / "journal").glob("w000-*.jsonl"))
    with last.open("ab") as file:
        file.write(b'{"actor_id":"owner","authorization":null,"dev')
    await fill(home, ids, [1], clock=clock)


def _erasing(ids: CountedIds, event: Event) -> Event:
    return Event(
        event_id=ids.new_id("evt"),
        event_type="body.erased",
        partition_key="system",
        actor_id="owner",
        timestamp=MOMENT,
        body=BodyErased(event_ids=(event.event_id,), reason="asked for"),
    )


def main() -> None:
    if HOME.exists():
        raise SystemExit(f"{HOME} is there: a golden home is written once")
    asyncio.run(write(HOME))
    # What only a running Rune needs, and what git would not keep.
    for lock in (HOME / "journal").glob("*.lock"):
        lock.unlink()
    shutil.rmtree(HOME / "evidence" / "unfinished")


if __name__ == "__main__":
    main()
