"""What is said about messages beside their words: why there is no answer, and what may have run."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from rune.records.messages import ConversationMessageRecord
from rune.records.turns import StopReason
from rune.surface.rows import TurnEnd

_WORDS = {
    StopReason.CANCELLED: "cancelled by you",
    StopReason.INTERRUPTED: "Rune was ended in mid-turn",
    StopReason.LENGTH: "the length limit was reached",
}


class Remark(msgspec.Struct, frozen=True):
    """One remark: words of Rune's own, and behind a colon what comes from elsewhere ("": nothing)."""

    text: str
    foreign: str = ""


def remarks(
    conversation_id: str, messages: Sequence[ConversationMessageRecord], ends: Mapping[str, TurnEnd]
) -> dict[str, list[Remark]]:
    """Return what is to be said below messages, by their ids. `messages` are all of the conversation, oldest first."""
    answered = {message.turn_id for message in messages if message.role == "assistant"}
    branches = set(_branches(conversation_id, messages))
    last = {message.turn_id: message.id for message in messages}
    found: dict[str, list[Remark]] = {}
    for message in messages:
        end = ends.get(message.turn_id, TurnEnd(reason=None))
        said: list[Remark] = []
        if message.role == "user" and message.turn_id not in answered and message.id in branches:
            # What became of the turn lies behind the branch: it belongs to the other conversation alone.
            found[message.id] = [Remark("the fork begins here")]
            continue
        if message.role == "assistant" and not message.complete:
            said.append(Remark(f"the answer broke off: {_how(end)}", end.error))
        elif message.role == "user" and message.turn_id not in answered:
            said.append(Remark(f"no answer: {_how(end)}", end.error))
        if last[message.turn_id] == message.id:
            said += [Remark("may have run", effect) for effect in end.may_have_run]
        if said:
            found[message.id] = said
    return found


def _branches(conversation_id: str, messages: Sequence[ConversationMessageRecord]) -> Iterator[str]:
    """Iterate over the ids of messages behind which one branched off: here, and where what is shared did before."""
    for message, following in pairwise(messages):
        if message.conversation_id != following.conversation_id:
            yield message.id
    if messages and messages[-1].conversation_id != conversation_id:
        yield messages[-1].id


def _how(end: TurnEnd) -> str:
    if end.reason is None:
        return "it was cut off" if end.cut_off else "the turn has not ended"
    return _WORDS.get(end.reason, end.reason.value.replace("_", " "))
