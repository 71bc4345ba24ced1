"""How a model asks for tools, how well it does, and that it could not be reached."""

from typing import Literal

from rune.records.record import Record

ActionProtocol = Literal["native", "constrained"]
ScoreBasis = Literal["guess", "measured", "owner"]
ThinkLevel = Literal["off", "on", "low", "medium", "high"]
Thinking = Literal["auto", "off", "on", "low", "medium", "high"]
"""What a conversation is set to; `auto` leaves it to the model."""


class ProbeOutcome(Record, frozen=True, kw_only=True):
    """One task of the probe under one protocol. `seen` says in a few words what the model did; milliseconds."""

    task: str
    protocol: ActionProtocol
    passed: bool
    seen: str
    milliseconds: int | None


class ModelScoreRecord(Record, frozen=True, kw_only=True):
    """Body of `model.score`: what is known of a model from now on, the newest one holds (models.md, Action protocols).

    `digest` names the exact weights, "" where the server gives none. `protocol` is the one to use and `basis` says
    why. `valid`, `repaired` and `failed` count the calls seen so far; `probe` is empty until it was measured.
    """

    schema_version: int = 1
    model: str
    provider: str
    digest: str
    protocol: ActionProtocol
    basis: ScoreBasis
    valid: int = 0
    repaired: int = 0
    failed: int = 0
    probe: tuple[ProbeOutcome, ...] = ()


class ModelUnavailable(Record, frozen=True, kw_only=True):
    """Body of `model.unavailable`: a model or its server could not be reached."""

    schema_version: int = 1
    provider: str
    model: str
    message: str
