"""Drafts of facts, as a caller gives them to the ledger."""

from rune.records.events import SessionEnded
from rune.store.ledger import Draft
from tests.store.builders import CONVERSATION, a_message, an_id


def said(number: int | str, conversation_id: str = CONVERSATION, *, event_id: str | None = None) -> Draft:
    return Draft(
        event_type="user.message",
        body=a_message(number, conversation_id),
        partition=conversation_id,
        actor_id="owner",
        event_id=event_id,
    )


def ended(number: int, *, event_id: str | None = None) -> Draft:
    return Draft(
        event_type="session.ended", body=SessionEnded(id=an_id("ses", number)), partition="system", event_id=event_id
    )
