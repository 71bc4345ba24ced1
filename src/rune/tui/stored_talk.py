"""A stored conversation as a talk shows it."""

from collections.abc import Sequence
from typing import NamedTuple

from rune.errors import NotFoundError
from rune.records.messages import ConversationMessageRecord
from rune.records.permissions import PermissionMode
from rune.surface.rows import ContextUse, ConversationRow
from rune.surface.surface import Surface
from rune.surface.views import Views
from rune.tui.tool_entries import question
from rune.tui.transcript_state import Transcript, restored


class StoredTalk(NamedTuple):
    """What is stored of a conversation. `context` is how full its window was, None where that is not known;
    `permission` what its tools may do without asking.
    """

    row: ConversationRow
    transcript: Transcript
    context: ContextUse | None
    permission: PermissionMode


async def read_stored(surface: Surface, conversation_id: str) -> StoredTalk:
    """Read a conversation, with the question that waits in it. Raises NotFoundError, StorageError."""
    views = surface.views
    messages = await views.transcript(conversation_id)
    row = await views.conversation(conversation_id)
    calls = {(call.message_id, call.tool_call_id): call for call in await views.tool_results(conversation_id)}
    waiting = await views.pending_approvals(conversation_id)
    asked = question(waiting[-1]) if waiting else None
    transcript = restored(messages, await views.ends(conversation_id), calls, asked)
    permission = await surface.operator.permission(conversation_id)
    return StoredTalk(row, transcript, await _context_use(views, row, messages), permission)


async def _context_use(
    views: Views, row: ConversationRow, messages: Sequence[ConversationMessageRecord]
) -> ContextUse | None:
    """Return how full the newest prompt was: of a fork in which nothing was said yet, its parent's, as long as that
    has nothing behind what they share.
    """
    use, parent = await views.context_use(row.id), row.forked_from
    while use is None and parent is not None and messages:
        try:
            said = await views.transcript(parent)
            if not said or said[-1].id != messages[-1].id:
                return None
            use, parent = await views.context_use(parent), (await views.conversation(parent)).forked_from
        except NotFoundError:  # it was erased
            return None
    return use
