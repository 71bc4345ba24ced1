"""Watching for what can answer: models that appear and vanish, servers that come and go, and how often it looks."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from rune.errors import ModelUnavailableError
from rune.models.catalog import Catalog, Offer
from rune.models.discovery import Discovery
from rune.models.ollama.transport import OllamaTransport
from rune.models.router import Router
from rune.models.scripted import ScriptedTransport
from rune.models.transport import ModelInfo
from tests.ollama_server import OllamaServer, ServedModel

DOWN = ModelUnavailableError("nobody answers at http://127.0.0.1:11434")
TRANSPORT = ScriptedTransport()


def catalog(*names: str, down: bool = False, provider: str = "ollama") -> Catalog:
    offers = [
        Offer(TRANSPORT, ModelInfo(name=name, provider=provider, capabilities=frozenset(), digest=name))
        for name in names
    ]
    return Catalog(offers=tuple(offers), failures=(DOWN,) if down else ())


class Paused:
    """A sleep that keeps how long it was asked for, and lasts until `go`."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._over = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.begun.set()
        await self._over.wait()
        self._over.clear()

    def go(self) -> None:
        self._over.set()


class Surveys:
    """Gives these catalogs in order, the last one again and again; counts how often it was asked."""

    def __init__(self, *catalogs: Catalog) -> None:
        self.catalogs = list(catalogs)
        self.asked = 0

    async def __call__(self) -> Catalog:
        self.asked += 1
        return self.catalogs.pop(0) if len(self.catalogs) > 1 else self.catalogs[0]


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


async def first(changes: AsyncGenerator[Catalog], count: int) -> list[Sequence[str]]:
    return [(await asyncio.wait_for(anext(changes), 10)).names() for _ in range(count)]


async def test_the_first_look_and_then_only_what_changes_is_told() -> None:
    surveys = Surveys(catalog(down=True), catalog(down=True), catalog("a"), catalog("a"), catalog("a", "b"), catalog())
    async with aclosing(Discovery(surveys, sleep=at_once).changes()) as changes:
        assert await first(changes, 4) == [(), ("a",), ("a", "b"), ()]
    assert surveys.asked == 6


async def test_the_same_name_with_other_weights_is_a_change() -> None:
    fresh = Offer(TRANSPORT, ModelInfo(name="a", provider="ollama", capabilities=frozenset(), digest="other"))
    surveys = Surveys(catalog("a"), Catalog(offers=(fresh,), failures=()))
    async with aclosing(Discovery(surveys, sleep=at_once).changes()) as changes:
        assert await first(changes, 2) == [("a",), ("a",)]


async def test_nothing_is_asked_before_and_after_somebody_listens() -> None:
    surveys, sleep = Surveys(catalog("a")), Paused()
    discovery = Discovery(surveys, sleep=sleep)
    assert (surveys.asked, discovery.last) == (0, None)
    async with aclosing(discovery.changes()) as changes:
        assert await first(changes, 1) == [("a",)]
        waiting = asyncio.ensure_future(anext(changes))
        await sleep.begun.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    asked = surveys.asked
    sleep.go()
    discovery.hurry()
    await asyncio.sleep(0)
    assert surveys.asked == asked == 1
    assert discovery.last is not None


async def looked(surveys: Surveys, times: int) -> list[float]:
    """Return how long each pause was when so many looks saw no change after the first."""
    seconds: list[float] = []
    enough = asyncio.Event()

    async def sleep(wanted: float) -> None:
        seconds.append(wanted)
        if len(seconds) == times:
            enough.set()
            await asyncio.Event().wait()

    async with aclosing(Discovery(surveys, sleep=sleep).changes()) as changes:
        await anext(changes)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.wait_for(enough.wait(), 10)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    return seconds


async def test_while_no_model_is_there_it_looks_often_and_then_seldom() -> None:
    for nothing in (catalog(down=True), catalog("small", provider="embedded"), catalog()):
        seconds = await looked(Surveys(nothing), 60)
        assert seconds[:10] == [2.0] * 10
        assert seconds == sorted(seconds)
        assert seconds[-1] == 15.0


async def test_where_a_model_is_it_looks_every_half_minute() -> None:
    assert await looked(Surveys(catalog("a")), 5) == [30.0] * 5


async def test_a_server_that_goes_away_is_looked_for_often_again() -> None:
    surveys = Surveys(catalog("a"), catalog(down=True))
    seconds: list[float] = []

    async def sleep(wanted: float) -> None:
        seconds.append(wanted)
        await asyncio.sleep(0)

    async with aclosing(Discovery(surveys, sleep=sleep).changes()) as changes:
        assert await first(changes, 2) == [("a",), ()]
        surveys.catalogs = [catalog(down=True), catalog(down=True), catalog("b")]
        assert await first(changes, 1) == [("b",)]
    assert seconds[0] == 30.0
    assert set(seconds[1:]) == {2.0}


async def test_a_change_without_a_model_makes_it_look_often_again() -> None:
    surveys = Surveys(*[catalog(down=True)] * 60, catalog())
    seconds: list[float] = []

    async def sleep(wanted: float) -> None:
        seconds.append(wanted)
        await asyncio.sleep(0)

    async with aclosing(Discovery(surveys, sleep=sleep).changes()) as changes:
        await first(changes, 2)
        assert seconds[-1] == 15.0
        surveys.catalogs = [catalog(), catalog("a")]
        await first(changes, 1)
    assert seconds[-2:] == [2.0, 2.0]


async def test_who_knows_of_a_change_makes_it_look_at_once() -> None:
    surveys, sleep = Surveys(catalog("a"), catalog("a", "b")), Paused()
    discovery = Discovery(surveys, sleep=sleep)
    async with aclosing(discovery.changes()) as changes:
        assert await first(changes, 1) == [("a",)]
        waiting = asyncio.ensure_future(anext(changes))
        await sleep.begun.wait()
        discovery.hurry()
        assert (await asyncio.wait_for(waiting, 10)).names() == ("a", "b")


WHERE_IMPORTED = """
import asyncio, importlib.abc, sys, threading
from rune.models.catalog import survey
from rune.models.discovery import Discovery
from rune.models.ollama.transport import OllamaTransport

slow = {"httpx", "httpcore", "anyio"}
on_the_loop = set()

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in slow and threading.current_thread() is threading.main_thread():
            on_the_loop.add(name)

async def main():
    sys.meta_path.insert(0, Watch())
    transport = OllamaTransport("http://127.0.0.1:1")
    await Discovery(lambda: survey([transport])).look()
    await transport.close()

assert not slow & set(sys.modules)
asyncio.run(main())
assert slow <= set(sys.modules)
print(sorted(on_the_loop))
"""


def test_the_first_look_imports_nothing_slow_on_the_event_loop() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", WHERE_IMPORTED], check=False, capture_output=True, text=True, timeout=60
    )
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


async def test_a_server_that_is_started_later_is_seen_and_missed_when_it_ends() -> None:
    port = free_port()
    transport = OllamaTransport(f"http://127.0.0.1:{port}")
    sleep = Paused()
    server = OllamaServer([ServedModel("qwen3:4b")])
    try:
        async with aclosing(Discovery(Router([transport]).survey, sleep=sleep).changes()) as changes:
            nobody = await asyncio.wait_for(anext(changes), 10)
            assert (nobody.names(), len(nobody.failures)) == ((), 1)
            await server.start(port)
            sleep.go()
            assert (await asyncio.wait_for(anext(changes), 10)).names() == ("qwen3:4b",)
            await server.close()
            sleep.go()
            assert (await asyncio.wait_for(anext(changes), 10)).names() == ()
    finally:
        await server.close()
        await transport.close()
