"""What a surface hands to the operator."""

import msgspec

from rune.records.messages import Channel, Provenance
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One message and where it belongs.

    `conversation_id` None starts a conversation. `folder` is where the person is: the storable text of its
    real path (`host.paths.storable_path`). `model` None leaves the choice to conversation, config and
    router, `thinking` and `permission` None leave it as the conversation has it. `max_steps` None: as configured.
    `provenance` is `piped` when any of the text came from a pipe.
    """

    text: str
    folder: str
    channel: Channel = "task"
    conversation_id: str | None = None
    model: str | None = None
    thinking: Thinking | None = None
    provenance: Provenance = "owner"
    max_steps: int | None = None
    permission: PermissionMode | None = None
