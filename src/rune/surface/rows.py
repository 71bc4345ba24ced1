"""What screens list and show, as plain values: nothing of the store or of a model's transport in them, but for a
search's hit, which is plain as it is.
"""

from typing import Literal

import msgspec

from rune.records.approvals import Decision
from rune.records.messages import Channel
from rune.records.models import ActionProtocol, ScoreBasis, Thinking
from rune.records.tools import Outcome
from rune.records.turns import StopReason
from rune.store.approvals import Standing
from rune.store.hits import MessageHit
from rune.turn.events import AskedCall

Level = Literal["green", "yellow", "orange", "red"]

__all__ = (
    "ApprovalRow",
    "CallRow",
    "ContextUse",
    "ConversationRow",
    "Level",
    "MessageHit",
    "ModelRow",
    "TurnEnd",
)


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
    `thinking` is how much its models think. `waits`: a question in it waits for the person's answer.
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
    waits: bool = False


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """How full the last prompt of a conversation was, in tokens; `budget` is what a prompt may have of `window`.
    `served`: `used` was counted by the server, else it is the estimate.
    """

    used: int
    budget: int
    window: int
    level: Level
    served: bool


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model made, and what came of it. `message_id` is the answer that holds it, `tool_call_id` its id in
    there, `result_message_id` what the model was told of it ("": nothing yet), `call_id` its own in all of Rune ("":
    nothing of it was prepared or is kept).

    `effect`, `detail`, `summary`, `text` (what the model was given) are foreign text. `detail` is "" for a call that
    changes nothing. `outcome` None: it has no end. With `waits` it waits for the person's answer, itself or behind one
    of the same answer that does; else it was not carried out.
    `output` is the evidence id of all of its output where that is more than `text`; `allowed_by` as in
    `turn.events.ToolFinished`.
    """

    call_id: str
    message_id: str
    tool_call_id: str
    name: str
    effect: str
    detail: str = ""
    result_message_id: str = ""
    outcome: Outcome | None = None
    waits: bool = False
    milliseconds: int | None = None
    summary: str = ""
    text: str = ""
    output: str | None = None
    exit_code: int | None = None
    allowed_by: str | None = None


class ApprovalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the person. `asked_at` and `expires_at` are RFC 3339; `title` and `folder` those of its
    conversation ("": not known any more); `calls` are answered together. What tools say in there is foreign text.

    `standing` other than `open`: it was answered at `closed_at`, by `decision`, with `reason` as the person's word to
    the model, or nobody answered in time.
    """

    id: str
    conversation_id: str
    turn_id: str
    asked_at: str
    expires_at: str
    folder: str
    title: str
    calls: tuple[AskedCall, ...]
    standing: Standing = "open"
    decision: Decision | None = None
    reason: str = ""
    closed_at: str = ""
