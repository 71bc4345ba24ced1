"""Where the app begins: what the command line asked for."""

from typing import Final

import msgspec

from rune.records.messages import Channel
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode

CHANNELS: Final[tuple[Channel, ...]] = ("task", "chat")


class AppStart(msgspec.Struct, frozen=True, kw_only=True):
    """`folder` as in TurnRequest. `resume` is an id or part of one; `carry_on` continues the newest conversations
    of the folder. `model`, `thinking`, `permission` and `max_steps` hold for every turn of this run; None: as
    configured.
    """

    folder: str
    channel: Channel = "task"
    resume: str | None = None
    carry_on: bool = False
    model: str | None = None
    thinking: Thinking | None = None
    permission: PermissionMode | None = None
    max_steps: int | None = None
