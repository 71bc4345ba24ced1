"""What is being written is written whole, whoever cancels and however often."""

import asyncio

import pytest

from rune.turn.flight import CancelToken, uninterrupted


async def test_a_fact_is_finished_before_a_cancellation_is_raised() -> None:
    gate = asyncio.Event()
    finished: list[str] = []

    async def write() -> str:
        await gate.wait()
        finished.append("written")
        return "offset"

    task = asyncio.create_task(uninterrupted(write()))
    for _ in range(5):
        await asyncio.sleep(0)
        task.cancel()
    assert not finished
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["written"]


async def test_without_a_cancellation_the_result_comes_back() -> None:
    async def write() -> str:
        await asyncio.sleep(0)
        return "offset"

    assert await uninterrupted(write()) == "offset"


@pytest.mark.parametrize("cancel_first", [False, True])
async def test_a_failed_write_is_raised_even_when_the_caller_was_cancelled(cancel_first: bool) -> None:
    gate = asyncio.Event()

    async def write() -> str:
        await gate.wait()
        raise OSError("disk full")

    task = asyncio.create_task(uninterrupted(write()))
    await asyncio.sleep(0)
    if cancel_first:
        task.cancel()
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(OSError, match="disk full"):
        await task


async def test_a_token_that_was_cancelled_early_stops_the_work_when_it_comes() -> None:
    token = CancelToken()
    token.cancel()
    work = asyncio.ensure_future(asyncio.Event().wait())
    token.bind(work)
    await asyncio.wait({work})
    assert work.cancelled()
