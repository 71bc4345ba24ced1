"""What was sent stays as sent, and what that saves: a conversation with the embedded model.

Bars: every prompt begins with the whole last one, but for traced breaks (at most 1 in 20); at least 0.95 of the last
prompt comes from the cache; the first token with the cache takes at most a quarter of the time without. The floor is
the same turn after a call with another prompt, which has taken the only slot and with it the cache.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise
from pathlib import Path

from _measure import Bar, best_ratio, figures, fingerprint, report, wants_json

from rune.bootstrap import Services, build
from rune.host.paths import resolve_home
from rune.models.embedded.model_file import embedded_model_path, fetch_embedded
from rune.models.embedded.transport import EmbeddedTransport
from rune.models.transport import ChatRequest, LoadOptions
from rune.records.traces import InferenceTraceRecord
from rune.turn.events import TurnClosed, TurnOpened
from rune.turn.request import TurnRequest

TURNS = 20
BATCHES = 5
LEAST_CACHED = 0.95
MOST_BREAKS = 1 / 20
TIMES_COLD = 0.25
# About 1,500 tokens: long enough that reading it anew is what one waits for.
BOOK = "The river comes from the mountains and goes past the town, the mill and the old bridge to the sea. " * 70

_Pairs = list[list[tuple[float, float]]]


class _Talk:
    """One conversation with the real product below the surfaces."""

    def __init__(self, services: Services, model: EmbeddedTransport, folder: Path) -> None:
        self._services = services
        self._model = model
        self._folder = folder
        self._identity: str | None = None

    async def say(self, text: str) -> InferenceTraceRecord:
        """Return the trace of one turn."""
        request = TurnRequest(text=text, folder=str(self._folder), conversation_id=self._identity)
        trace_id: str | None = None
        async for event in self._services.surface.operator.send_task(request):
            match event:
                case TurnOpened(conversation_id=identity):
                    self._identity = identity
                case TurnClosed(trace_id=found, error=error):
                    if error:
                        raise RuntimeError(error)
                    trace_id = found
                case _:
                    pass
        return await self._services.surface.views.trace(trace_id)

    async def drop_cache(self, num_ctx: int) -> None:
        """Ask something else with the same load options: there is one slot, and it forgets the conversation."""
        (info,) = await self._model.models()
        other = ChatRequest(
            model=info.name,
            messages=b'[{"role":"user","content":"Say yes."}]',
            tools=b"[]",
            options=LoadOptions(num_ctx=num_ctx),
            estimated=16,
            max_tokens=2,
        )
        async with aclosing(self._model.chat(other)) as chunks:
            async for _ in chunks:
                pass


@asynccontextmanager
async def _talk(home: Path, model_file: Path) -> AsyncGenerator[_Talk]:
    environ = {"RUNE_HOME": str(home), "PATH": ""}
    model = EmbeddedTransport(model_file, log_path=home / "model.log")
    services = build(environ, surface_kind="headless", transports=(model,))
    try:
        await services.start()
        yield _Talk(services, model, home.parent)
    finally:
        await services.close()


async def _measure(
    folder: Path, model_file: Path
) -> tuple[list[InferenceTraceRecord], list[list[tuple[float, float]]]]:
    async with _talk(folder / "many" / "home", model_file) as talk:
        many = [await talk.say(f"{BOOK if not number else ''}Answer in one word: {number}?") for number in range(TURNS)]
    pairs: _Pairs = []
    async with _talk(folder / "two" / "home", model_file) as talk:
        num_ctx = (await talk.say(f"{BOOK}Answer in one word: which river?")).num_ctx
        for _ in range(BATCHES):
            await talk.drop_cache(num_ctx)
            cold = await talk.say("And in one more word?")
            warm = await talk.say("And in one other word?")
            pairs.append([(float(cold.first_token_ms or 0), float(warm.first_token_ms or 0))])
    return many, pairs


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    home = resolve_home({})
    model_file = embedded_model_path(home.models, {}, "") or fetch_embedded(home.models, progress=lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        many, pairs = asyncio.run(_measure(Path(folder), model_file))
    reuse = [trace.prefix_reuse for trace in many[1:] if trace.prefix_reuse is not None]
    breaks = [trace.prefix_break for trace in many[1:] if trace.prefix_break]
    cached = [
        (after.cached_tokens or 0) / (before.prompt_tokens_served or 1)
        for before, after in pairwise(many)
        if not after.prefix_break
    ]
    cold = figures("first token, cache dropped", "ms", [pair[0] for batch in pairs for pair in batch])
    warm = figures("first token, with the cache", "ms", [pair[1] for batch in pairs for pair in batch])
    unbroken = min((share for share, trace in zip(reuse, many[1:], strict=False) if not trace.prefix_break), default=0)
    bars = [
        Bar(what="share of the last request sent anew, least", limit=0.0, seen=1 - unbroken, holds=unbroken == 1),
        Bar(
            what="breaks a turn", limit=MOST_BREAKS, seen=len(breaks) / TURNS, holds=len(breaks) / TURNS <= MOST_BREAKS
        ),
        Bar(
            what="tokens read again of the last prompt, most",
            limit=1 - LEAST_CACHED,
            seen=max(0.0, 1 - min(cached)),  # what was answered is cached as well
            holds=min(cached) >= LEAST_CACHED,
        ),
        Bar(
            what="times the first token without the cache",
            limit=TIMES_COLD,
            seen=best_ratio(pairs),
            holds=best_ratio(pairs) <= TIMES_COLD,
        ),
    ]
    return report("prefix", [cold, warm], bars, facts=fingerprint(("xllamacpp",)), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
