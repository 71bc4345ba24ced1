"""Bursts are passed on in few pieces, whole and in order."""

import asyncio
from itertools import pairwise

from rune.tui.flushes import A_SECOND, Flushes
from tests.turn.rig import until


async def test_a_burst_comes_in_one_piece_and_in_order() -> None:
    pieces: list[list[int]] = []
    flushes: Flushes[int] = Flushes(pieces.append)
    for number in range(1000):
        flushes.put(number)
    assert pieces == []
    await until(lambda: bool(pieces))
    assert pieces == [list(range(1000))]


async def test_there_are_at_most_so_many_in_a_second() -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    flushes: Flushes[int] = Flushes(lambda _: times.append(loop.time()))
    began = loop.time()
    while len(times) < 12:
        flushes.put(1)
        await asyncio.sleep(0)
    assert loop.time() - began >= 11 / A_SECOND * 0.99
    assert all(later - earlier >= 1 / A_SECOND * 0.99 for earlier, later in pairwise(times))


async def test_flushing_hands_over_at_once_and_leaves_no_timer() -> None:
    pieces: list[list[str]] = []
    flushes: Flushes[str] = Flushes(pieces.append)
    flushes.put("a")
    flushes.flush()
    flushes.flush()
    await asyncio.sleep(0)
    assert pieces == [["a"]]


async def test_what_is_none_of_a_burst_goes_at_once_and_holds_up_nothing() -> None:
    pieces: list[list[str]] = []
    flushes: Flushes[str] = Flushes(pieces.append)
    flushes.put("a")
    flushes.at_once("b")
    assert pieces == [["a", "b"]]
    flushes.put("c")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pieces[1:] == [["c"]]
