"""What a branch shares with the conversation that it was branched off, where that is not there any more."""

from collections.abc import Sequence

from rune.records.messages import ConversationMessageRecord, ConversationRecord


def missing_share(record: ConversationRecord, messages: Sequence[ConversationMessageRecord]) -> str:
    """Say in one line that messages which a branch shares are gone; "" where none are known to be.

    `messages` are all that it has, with those that it shares.
    """
    if record.fork_msg_id is None or any(message.id == record.fork_msg_id for message in messages):
        return ""
    some = any(message.conversation_id != record.id for message in messages)
    what = "some of the messages that it shares" if some else "the messages that it shares"
    return f"[{what} with {record.forked_from} were erased there, or are lost]"
