"""Views that are deleted, and made anew by another process, at the very end of a pass."""

from pathlib import Path

import pytest

from rune.errors import ViewsStoppedError
from tests.fakes.ids import CountedIds
from tests.store.builders import an_id
from tests.store.journals import open_now
from tests.store.spine import count_of, notes, open_views


async def test_views_that_another_process_has_just_begun_are_not_taken_for_those_that_were_followed(
    memory_home: Path, ids: CountedIds
) -> None:
    store = open_now(memory_home, ids=ids)
    path = memory_home / "views-1.db"
    engine = open_views(path, store)

    first = engine.read(lambda _: path.stat().st_ino)

    def begin_anew(*_: object) -> None:
        if path.stat().st_ino != first:
            return
        path.unlink()
        another = open_views(path, open_now(memory_home, read_only=True))
        another.stop()
        with pytest.raises(ViewsStoppedError):
            another.catch_up()
        another.close()

    await store.append_many(notes(3))
    engine.catch_up(begin_anew)
    # Else the next place in a conversation would be one that is given already.
    assert engine.lookup(an_id("evt", 53)) is not None
    assert count_of(engine) == 3
    engine.close()
    await store.close()
