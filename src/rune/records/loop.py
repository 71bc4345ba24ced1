"""The state of a tool loop that an approval interrupts: ids and counters only."""

from rune.records.record import Record


class LoopState(Record, frozen=True, kw_only=True):
    """What a paused turn needs to go on in another process. `failures` counts by call digest."""

    schema_version: int = 1
    turn_id: str
    iterations_used: int
    iteration_budget: int
    capsule: str
    round_message_ids: tuple[str, ...]
    failures: dict[str, int]
