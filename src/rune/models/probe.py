"""Measures with which action protocol a model acts better: a small fixed set of tasks, each asked both ways.

For surfaces: a `Prober` stands in bootstrap. `rune models probe NAME` and `/model` do

    async with aclosing(prober.probe(transport, info, num_ctx)) as steps:
        async for step in steps:
            ...            # step.done of step.total; step.outcome is one row of the table, None while it begins
    # the last step has `score`: the ModelScoreRecord that was kept; its `probe` is the whole table

Closing the generator (or cancelling its task) stops it, and nothing is kept then. `num_ctx` is the window that
conversations use for this model, so that the server does not load it anew (models.md, rule 9). A model that leaves
the machine is refused where it is looked up, not here.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

import msgspec

from rune.errors import (
    CapabilityMissingError,
    ModelError,
    ModelNotFoundError,
    ModelUnavailableError,
    RemoteRefusedError,
    UnusableCallError,
)
from rune.host.clock import Clock
from rune.models.probe_tasks import TASKS, TOOLS, ProbeTask, brief, seen
from rune.models.scorecard import Scorecard
from rune.models.side_call import NO_TOOLS, SideAnswer, SideCalls, SideRequest
from rune.models.text_tools.acting import acting
from rune.models.text_tools.constrained import answer_schema, instructions
from rune.models.transport import (
    ChatChunk,
    ChatTransport,
    Completed,
    ModelInfo,
    TextDelta,
    ToolCallReady,
)
from rune.records.models import ActionProtocol, ModelScoreRecord, ProbeOutcome
from rune.records.tools import ToolCall

PROMPT: Final = "probe"
# For the whole of it, half for each protocol: that a model is too slow to act is a result too.
SECONDS: Final = 600.0
MOST_TOKENS: Final = 256

# Constrained first: native calls are where servers and models fail, and may leave a server in a state.
_PROTOCOLS: Final[tuple[ActionProtocol, ...]] = ("constrained", "native")
# What says that there is nothing to measure, now or with this model.
_NO_MEASURE: Final = (ModelUnavailableError, ModelNotFoundError, RemoteRefusedError)


class ProbeStep(msgspec.Struct, frozen=True, kw_only=True):
    """How far a probe is. `done` of `total` tasks have an outcome; `task` and `protocol` are what this step is about.

    `outcome` is None when the task begins now. `score` is there on the last step only: what was kept.
    """

    done: int
    total: int
    task: str
    protocol: ActionProtocol
    outcome: ProbeOutcome | None = None
    score: ModelScoreRecord | None = None


class Prober:
    """Runs the probe and keeps its result. `seconds` bounds a whole probe, loading included."""

    def __init__(
        self,
        side_calls: SideCalls,
        scorecard: Scorecard,
        clock: Clock,
        *,
        tasks: Sequence[ProbeTask] = TASKS,
        seconds: float = SECONDS,
    ) -> None:
        self._side_calls = side_calls
        self._scorecard = scorecard
        self._clock = clock
        self._tasks = tasks
        self._seconds = seconds

    async def probe(self, transport: ChatTransport, info: ModelInfo, num_ctx: int) -> AsyncGenerator[ProbeStep, None]:
        """Ask every task under both protocols, one after the other; the better protocol is kept as `model.score`.

        Raises ModelUnavailableError, ModelNotFoundError, RemoteRefusedError, ContextOverflowError: then nothing could
        be measured; and StorageError when the result cannot be kept. Each other failure of the model is the outcome of
        its task.
        """
        asked = _Asked(transport, info, num_ctx)
        outcomes: list[ProbeOutcome] = []
        total = len(_PROTOCOLS) * len(self._tasks)
        step = None
        for protocol in _PROTOCOLS:
            end = self._clock.monotonic() + self._seconds / len(_PROTOCOLS)
            for task in self._tasks:
                yield ProbeStep(done=len(outcomes), total=total, task=task.name, protocol=protocol)
                outcome = await self._outcome(asked, task, protocol, end=end)
                outcomes.append(outcome)
                step = ProbeStep(done=len(outcomes), total=total, task=task.name, protocol=protocol, outcome=outcome)
                if len(outcomes) < total:
                    yield step
        if step is not None:
            yield msgspec.structs.replace(step, score=await self._scorecard.measured(info, outcomes))

    async def _outcome(self, asked: "_Asked", task: ProbeTask, protocol: ActionProtocol, *, end: float) -> ProbeOutcome:
        started = self._clock.monotonic()
        if protocol == "native" and "tools" not in asked.info.capabilities:
            passed, what, taken = False, "does not support tools", None
        elif started >= end:
            passed, what, taken = False, "not asked: the time was up", None
        else:
            passed, what = await self._tried(asked, task, protocol, seconds=end - started)
            taken = round((self._clock.monotonic() - started) * 1000)
        return ProbeOutcome(task=task.name, protocol=protocol, passed=passed, seen=what, milliseconds=taken)

    async def _tried(
        self, asked: "_Asked", task: ProbeTask, protocol: ActionProtocol, *, seconds: float
    ) -> tuple[bool, str]:
        """Return whether the model did what was wanted, and what it did. Raises what says that nothing can be
        measured.
        """
        try:
            async with asyncio.timeout(seconds):
                answer = await self._side_calls.ask(
                    asked.transport, asked.info, asked.num_ctx, _request(task, protocol)
                )
            text, calls = await _acted(answer, protocol)
        except _NO_MEASURE:
            raise
        except (ModelError, TimeoutError) as error:
            return False, _said_of(error)
        return task.passed(text, calls), seen(text, calls)


class _Asked(msgspec.Struct, frozen=True):
    """Whom the probe asks."""

    transport: ChatTransport
    info: ModelInfo
    num_ctx: int


def _request(task: ProbeTask, protocol: ActionProtocol) -> SideRequest:
    constrained = protocol == "constrained"
    return SideRequest(
        task=PROMPT,
        messages=task.messages(protocol),
        max_tokens=MOST_TOKENS,
        details=instructions(TOOLS) if constrained else "",
        tools=NO_TOOLS if constrained else _offered(),
        format=answer_schema(TOOLS) if constrained else None,
        # The same model shall come to the same score.
        temperature=0.0,
    )


def _offered() -> bytes:
    functions = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in TOOLS
    ]
    return msgspec.json.encode(functions)


async def _acted(answer: SideAnswer, protocol: ActionProtocol) -> tuple[str, list[ToolCall]]:
    """Return what a turn would have made of the answer. Raises ModelError as that does."""
    text: list[str] = []
    calls: list[ToolCall] = []
    async with aclosing(acting(_replayed(answer), tools=TOOLS, protocol=protocol)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextDelta):
                text.append(chunk.text)
            elif isinstance(chunk, ToolCallReady):
                calls.append(chunk.call)
    return "".join(text), calls


async def _replayed(answer: SideAnswer) -> AsyncGenerator[ChatChunk, None]:
    if answer.text:
        yield TextDelta(answer.text)
    for call in answer.calls:
        yield ToolCallReady(call)
    yield Completed(answer.reason, answer.usage)


def _said_of(error: ModelError | TimeoutError) -> str:
    match error:
        case UnusableCallError():
            return brief(f"a call that cannot be used: {error.reason}")
        case CapabilityMissingError():
            return f"does not support {error.capability}"
        case ModelError():
            return brief(error.message)
        case _:
            return "did not finish in time"
