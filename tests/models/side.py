"""Side calls, a scorecard and a probe over parts that remember, for tests."""

import asyncio
from collections.abc import Sequence
from typing import Any

from rune.errors import StorageUnavailableError
from rune.models.scorecard import Scorecard
from rune.models.side_call import SideCalls
from rune.models.transport import ModelInfo
from rune.records.models import ModelScoreRecord
from rune.records.traces import InferenceTraceRecord
from rune.text.tokens import estimate
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds


def a_model(name: str = "river:3b", **fields: Any) -> ModelInfo:
    known: dict[str, Any] = {
        "name": name,
        "provider": "ollama",
        "capabilities": frozenset({"chat", "tools"}),
        "context_length": 8192,
        "parameters": "3.2B",
        "digest": "one",
        "family": "llama",
    }
    return ModelInfo(**(known | fields))


class KeptTraces:
    """Keeps traces in memory; `failure` is raised instead, `gate` holds up."""

    def __init__(self) -> None:
        self.traces: list[InferenceTraceRecord] = []
        self.blobs: dict[str, bytes] = {}
        self.failure: StorageUnavailableError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def keep(self, trace: InferenceTraceRecord, blobs: Sequence[bytes]) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.traces.append(trace)
        names = [block.blob for recipe in trace.requests for block in recipe.blocks]
        others = [blob for recipe in trace.requests for blob in (recipe.tools, recipe.format) if blob]
        self.blobs |= dict(zip([*names, *others], blobs, strict=True))


class KeptScores:
    """Keeps scores in memory: the newest of each model, and who kept them."""

    def __init__(self) -> None:
        self.kept: list[tuple[ModelScoreRecord, bool]] = []

    async def newest(self, provider: str, model: str, digest: str) -> ModelScoreRecord | None:
        wanted = (provider, model, digest)
        found = [score for score, _ in self.kept if (score.provider, score.model, score.digest) == wanted]
        return found[-1] if found else None

    async def keep(self, score: ModelScoreRecord, /, *, by_owner: bool) -> None:
        await asyncio.sleep(0)  # as a disk does: others get their turn
        self.kept.append((score, by_owner))


class SideRig:
    """Everything at once; `reports` holds what failed in the background."""

    def __init__(self) -> None:
        self.traces = KeptTraces()
        self.scores = KeptScores()
        self.clock = CountedClock()
        self.reports: list[tuple[str, Exception]] = []
        self.calls = SideCalls(
            traces=self.traces,
            estimate=estimate,
            clock=self.clock,
            ids=CountedIds(),
            background=lambda subsystem, error: self.reports.append((subsystem, error)),
        )
        self.card = Scorecard(self.scores, self.scores.keep)
