"""A look at everything ends when nobody waits for it any more."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rune.bootstrap.examination import examine
from rune.errors import ModelUnavailableError
from rune.models.scripted import says
from tests.fakes.ids import CountedIds
from tests.store.journals import fill
from tests.turn.rig import rig


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


async def test_what_is_written_while_it_looks_is_no_fault_of_the_views(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        await it.say()
        checks = {check.name: check for check in examine({"RUNE_HOME": str(tmp_path / "home"), "PATH": ""})}
        assert (await checks["journal"].look()).state == "ok"
        await it.say("and more")
        finding = await checks["views"].look()
        assert (finding.state, finding.mend) == ("ok", "")
        assert "each row is as the journal says" in finding.detail


async def test_a_file_that_is_no_model_is_not_called_a_stand_in(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no model")
    environ = {"RUNE_HOME": str(tmp_path / "home"), "PATH": "", "RUNE_EMBEDDED_MODEL": str(tmp_path / "m.gguf")}
    checks = {check.name: check for check in examine(environ)}
    with pytest.raises(ModelUnavailableError, match="not a usable GGUF"):
        await checks["stand-in"].look()
