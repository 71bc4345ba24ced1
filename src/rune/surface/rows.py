"""What screens list and show, as plain values: nothing of the store or of a model's transport in them, but for a
search's hit, which is plain as it is.
"""

from typing import Literal

import msgspec

from rune.records.messages import Channel
from rune.records.models import ActionProtocol, ScoreBasis, Thinking
from rune.records.turns import StopReason
from rune.store.hits import MessageHit

Level = Literal["green", "yellow", "orange", "red"]

__all__ = ("ContextUse", "ConversationRow", "Level", "MessageHit", "ModelRow", "TurnEnd")


class TurnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended; `reason` None: it has not. `error` and `hint` are empty unless it failed.

    `cut_off`: it has no end, and nobody has its conversation open who could bring it to one. `may_have_run` are
    the effects of calls of which nobody knows whether they ran (foreign text): a kill came in between.
    """

    reason: StopReason | None
    error: str = ""
    hint: str = ""
    cut_off: bool = False
    may_have_run: tuple[str, ...] = ()


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model that could answer. `size` in bytes, `window` the tokens that it was trained for; None: not known.
    `stand_in`: the small embedded model. `refused` says why it may not be used as things are set ("": it may).

    `loaded`: it is in memory now, with the window `loaded_window` in force (tokens), `loaded_size` bytes of memory, of
    which the share `on_gpu` (0 to 1) lies on a GPU, until `expires_at` (RFC 3339, "": no end that is known); None where
    its server does not say. `protocol` is how it is asked to act, and `protocol_basis` on what that rests; None: it
    was not looked up. `thinks`: it can think before it answers.
    """

    name: str
    provider: str
    remote: bool = False
    size: int | None = None
    parameters: str = ""
    quantisation: str = ""
    window: int | None = None
    capabilities: tuple[str, ...] = ()
    stand_in: bool = False
    refused: str = ""
    loaded: bool = False
    loaded_window: int | None = None
    loaded_size: int | None = None
    on_gpu: float | None = None
    expires_at: str = ""
    protocol: ActionProtocol | None = None
    protocol_basis: ScoreBasis | None = None
    thinks: bool = False


class ConversationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a list. `last_active` is RFC 3339; `held_by` the process that has it open, None: nobody,
    or this one. `model` answered last, or was chosen since; "" before there was one. `forked_from` is the
    conversation that it was branched off, None: it began by itself. `hidden`: it is not listed unless asked for.
    `thinking` is how much its models think.
    """

    id: str
    title: str
    channel: Channel
    folder: str
    last_active: str
    messages: int
    held_by: int | None = None
    private: bool = False
    model: str = ""
    forked_from: str | None = None
    hidden: bool = False
    thinking: Thinking = "auto"


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """How full the last prompt of a conversation was, in tokens; `budget` is what a prompt may have of `window`.
    `served`: `used` was counted by the server, else it is the estimate.
    """

    used: int
    budget: int
    window: int
    level: Level
    served: bool
