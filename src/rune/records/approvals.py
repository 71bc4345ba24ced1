"""A question that waits for the person."""

from typing import Literal

from rune.records.record import Record
from rune.records.tools import PreparedCall

Decision = Literal["allow", "deny"]


class PendingApprovalRecord(Record, frozen=True, kw_only=True):
    """Body of every `approval.*` event. `loop_state` is an evidence id; `decided_by` and `decision`
    are None until it is answered.
    """

    schema_version: int = 1
    id: str
    turn_id: str
    conversation_id: str
    calls: tuple[PreparedCall, ...]
    loop_state: str
    expires_at: str
    decided_by: str | None = None
    decision: Decision | None = None
    reason: str = ""
