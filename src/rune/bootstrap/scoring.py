"""What Rune knows of how models act: side calls, the scorecard, the probe."""

from functools import partial
from typing import NamedTuple

from rune.bootstrap.core import Core
from rune.errors import StorageError
from rune.models.first_guess import first_guess
from rune.models.probe import Prober
from rune.models.scorecard import Scorecard
from rune.models.side_call import SideCalls
from rune.models.transport import ModelInfo
from rune.records.models import ActionProtocol, ModelScoreRecord
from rune.store.ledger import Draft, Ledger
from rune.store.model_scores import ModelScoreRepository
from rune.store.side_traces import SideTraceJournal
from rune.text.tokens import estimate
from rune.turn.failures import TurnFailures
from rune.turn.flight import CallCounts


class Scoring(NamedTuple):
    """The parts, put together once a process."""

    side_calls: SideCalls
    scorecard: Scorecard
    prober: Prober


def open_scoring(core: Core) -> Scoring:
    """Connect them; nothing runs yet."""
    side_calls = SideCalls(
        traces=SideTraceJournal(core.ledger, core.evidence, core.trace_file.append),
        estimate=estimate,
        clock=core.clock,
        ids=core.ids,
        background=core.failures.background,
    )
    scorecard = Scorecard(ModelScoreRepository(core.engine), partial(_keep, core.ledger))
    return Scoring(side_calls, scorecard, Prober(side_calls, scorecard, core.clock))


async def protocol_of(scorecard: Scorecard, failures: TurnFailures, info: ModelInfo) -> ActionProtocol:
    """Return the protocol for a turn. What is known and cannot be read fails no turn: it goes on with a guess (T1)."""
    try:
        return (await scorecard.protocol_for(info)).protocol
    except StorageError as error:
        failures.degraded("scorecard", error)
        return first_guess(info)[0]


async def count_calls(scorecard: Scorecard, info: ModelInfo, calls: CallCounts) -> None:
    """Add how one turn's calls came out. Raises StorageError."""
    await scorecard.count(info, valid=calls.valid, repaired=calls.repaired, failed=calls.failed)


async def _keep(ledger: Ledger, score: ModelScoreRecord, *, by_owner: bool) -> None:
    actor = "owner" if by_owner else "rune"
    await ledger.emit(Draft(event_type="model.score", body=score, partition="model", actor_id=actor))
