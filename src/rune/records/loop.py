"""The state of a tool loop that an approval interrupts: ids and counters only."""

from rune.records.record import Record


class LoopState(Record, frozen=True, kw_only=True):
    """What a paused turn needs to go on in another process. `capsule` is the evidence id of the prompt that was sent
    last; `round_message_ids` are the messages since then, the answer with the calls first. `failures` counts failures
    in a row by call key (`tools.prepare.key_of`), `recent` are the newest calls with their results, oldest first;
    `nudged`: the model was told once that it goes in circles. `protocol` is how it asks for tools; `acted`: a call was
    made.

    A state of another `schema_version` is never guessed at (`turn.resumption`).
    """

    schema_version: int = 2
    turn_id: str
    message_id: str
    iterations_used: int
    iteration_budget: int
    capsule: str
    round_message_ids: tuple[str, ...]
    failures: dict[str, int]
    recent: tuple[str, ...]
    nudged: bool
    protocol: str
    acted: bool
