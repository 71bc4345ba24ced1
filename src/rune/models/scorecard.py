"""Which action protocol a model is used with, and how well it does: the newest `model.score` of it holds.

For surfaces and turns: `protocol_for(info)` says what to use and why, `fix(info, protocol)` keeps the owner's choice
(None takes it back), `known(info)` gives the whole record, `count(...)` adds the calls of one turn.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from rune.models.first_guess import first_guess, is_small
from rune.models.transport import ModelInfo
from rune.records.models import ActionProtocol, ModelScoreRecord, ProbeOutcome, ScoreBasis


class ScoreReads(Protocol):
    """Where what is known is read."""

    async def newest(self, provider: str, model: str, digest: str) -> ModelScoreRecord | None:
        """Return what is known of exactly these weights. Raises StorageError."""
        ...


class ScoreWrites(Protocol):
    """Where it is kept; what was kept is read from then on."""

    async def __call__(self, score: ModelScoreRecord, /, *, by_owner: bool) -> None:
        """Keep a record as `model.score`. Raises StorageUnavailableError."""
        ...


class ProtocolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The protocol to use, on what that rests, and why in a few words for a person."""

    protocol: ActionProtocol
    basis: ScoreBasis
    why: str


class Scorecard:
    """What is known of models. Used from one event loop; one change at a time, each upon what is stored by then."""

    def __init__(self, reads: ScoreReads, keep: ScoreWrites) -> None:
        self._reads = reads
        self._keep = keep
        self._changing = asyncio.Lock()

    async def known(self, info: ModelInfo) -> ModelScoreRecord | None:
        """Return what is kept about exactly these weights; None when nothing is. Raises StorageError."""
        return await self._reads.newest(info.provider, info.name, info.digest)

    async def protocol_for(self, info: ModelInfo) -> ProtocolChoice:
        """Return the protocol to use: the owner's choice, else what was measured, else a first guess.

        Raises StorageError.
        """
        return chosen(info, await self.known(info))

    async def fix(self, info: ModelInfo, protocol: ActionProtocol | None) -> ModelScoreRecord:
        """Keep the owner's choice; None takes it back: what was measured counts again, or the first guess.

        Raises StorageError.
        """
        async with self._changing:
            score = await self._score(info)
            if protocol is None:
                changed = _unfixed(info, score)
            else:
                changed = msgspec.structs.replace(score, protocol=protocol, basis="owner")
            await self._keep(changed, by_owner=True)
            return changed

    async def measured(self, info: ModelInfo, probe: Sequence[ProbeOutcome]) -> ModelScoreRecord:
        """Keep what a probe came to; an owner's choice stays. Raises StorageError."""
        async with self._changing:
            score = msgspec.structs.replace(await self._score(info), probe=tuple(probe))
            if score.basis != "owner":
                score = _unfixed(info, score)
            await self._keep(score, by_owner=False)
            return score

    async def count(self, info: ModelInfo, *, valid: int = 0, repaired: int = 0, failed: int = 0) -> None:
        """Add the calls of one turn; nothing is kept where there were none. Raises StorageError."""
        if not (valid or repaired or failed):
            return
        async with self._changing:
            score = await self._score(info)
            changed = msgspec.structs.replace(
                score, valid=score.valid + valid, repaired=score.repaired + repaired, failed=score.failed + failed
            )
            await self._keep(changed, by_owner=False)

    async def _score(self, info: ModelInfo) -> ModelScoreRecord:
        score = await self.known(info)
        if score is not None:
            return score
        return ModelScoreRecord(
            model=info.name,
            provider=info.provider,
            digest=info.digest,
            protocol=first_guess(info)[0],
            basis="guess",
        )


def chosen(info: ModelInfo, score: ModelScoreRecord | None) -> ProtocolChoice:
    """Return the protocol for a model of which `score` is known."""
    if score is not None and score.basis == "owner":
        return ProtocolChoice(protocol=score.protocol, basis="owner", why="its owner chose it")
    if score is not None and score.basis == "measured":
        passed = {protocol: _passed(score.probe, protocol) for protocol in ("native", "constrained")}
        tasks = len(score.probe) // 2
        why = f"{passed['native']} of {tasks} tasks native, {passed['constrained']} constrained"
        return ProtocolChoice(protocol=score.protocol, basis="measured", why=why)
    # What is stored of a guess may be an earlier version's; the model's description is at hand.
    protocol, why = first_guess(info)
    return ProtocolChoice(protocol=protocol, basis="guess", why=why)


def better(info: ModelInfo, probe: Sequence[ProbeOutcome]) -> ActionProtocol:
    """Return under which protocol more tasks went well; with as many under both, constrained below 8B, else native."""
    native, constrained = _passed(probe, "native"), _passed(probe, "constrained")
    if native != constrained:
        return "native" if native > constrained else "constrained"
    return "constrained" if is_small(info) or "tools" not in info.capabilities else "native"


def _passed(probe: Sequence[ProbeOutcome], protocol: ActionProtocol) -> int:
    return sum(outcome.passed for outcome in probe if outcome.protocol == protocol)


def _unfixed(info: ModelInfo, score: ModelScoreRecord) -> ModelScoreRecord:
    """Return the record without its owner's choice."""
    if score.probe:
        return msgspec.structs.replace(score, protocol=better(info, score.probe), basis="measured")
    return msgspec.structs.replace(score, protocol=first_guess(info)[0], basis="guess")
