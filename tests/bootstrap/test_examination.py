"""A look at everything ends when nobody waits for it any more."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rune.bootstrap.examination import examine
from tests.fakes.ids import CountedIds
from tests.store.journals import fill


async def test_a_check_that_is_cancelled_ends_on_its_thread_too(tmp_path: Path) -> None:
    await fill(tmp_path, CountedIds(), [1000])
    checks = {check.name: check for check in examine({"RUNE_HOME": str(tmp_path), "PATH": ""})}
    begin = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        busy = asyncio.ensure_future(asyncio.to_thread(begin.wait))
        await asyncio.sleep(0)
        looking = asyncio.ensure_future(checks["journal"].look())
        await asyncio.sleep(0)
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking
        begin.set()
        await busy
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    # The pass, which others share, ends before it was through.
    with pytest.raises(asyncio.CancelledError):
        await checks["turns"].look()
    assert (await checks["permissions"].look()).name == "permissions"
