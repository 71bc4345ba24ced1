"""What was given names what begins or ends with it, and thousands of ids are looked up in one pass."""

import cProfile
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.events import SessionEnded
from rune.records.record import Record
from rune.store.erasing.aim import Aim, resolve
from rune.store.event_store import Offset
from rune.store.order import Located
from tests.store.builders import an_id


def journal(ids: Sequence[str]) -> list[Located]:
    """Return an event of each id."""
    return [
        (
            Offset("w000", seq, 1, seq),
            EventEnvelope(
                event_id=event_id,
                event_type="session.ended",
                partition_key="system",
                pseq=0,
                actor_id="rune",
                timestamp="2026-11-30T14:00:00.000Z",
                hlc=seq,
                writer="w000",
                seq=seq,
                payload_hash="",
                prev="",
                authorization=None,
                device_id="",
                more=0,
                parent_id=None,
                crc="",
                body=msgspec.Raw(b"{}"),
            ),
        )
        for seq, event_id in enumerate(ids, 1)
    ]


def nothing(_: EventEnvelope) -> Record:
    return SessionEnded(id="ses_1")


def named(ids: Sequence[str], *texts: str) -> Aim:
    return resolve(journal(ids), nothing, texts)


@given(
    st.lists(st.text("ab01", min_size=8, max_size=8), min_size=1, max_size=8, unique=True), st.text("ab01", min_size=4)
)
def test_a_text_names_the_one_id_that_it_begins_or_ends(rests: list[str], text: str) -> None:
    ids = [f"evt_{rest}" for rest in rests]
    fitting = [each for each in ids if each[4:].startswith(text) or each[4:].endswith(text)]
    for given_as in (text, f"evt_{text}"):
        if len(fitting) == 1:
            assert named(ids, given_as).events == {fitting[0]}
        else:
            with pytest.raises(NotFoundError, match="could be" if fitting else "nothing has the id"):
                named(ids, given_as)


def test_thousands_of_ids_cost_no_more_than_one_look_at_each_event() -> None:
    ids = [an_id("evt", number) for number in range(4_000)]
    profile = cProfile.Profile()
    found = profile.runcall(named, ids, *ids[:2_000])
    assert found.events == set(ids[:2_000])
    calls = sum(entry.callcount for entry in profile.getstats())
    assert calls < 50 * len(ids)
