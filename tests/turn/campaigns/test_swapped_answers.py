"""Files and folders that are swapped between the answer and the act, through the whole loop."""

import asyncio
import json
import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ChatRequest, ModelInfo
from rune.records.tools import ToolCall
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.run_command import RunCommand
from rune.turn.events import ToolFinished
from tests.tools.test_swap_campaign import APPROVED, OTHER, Swapper, exchange_works
from tests.tools.workspace import make_tree
from tests.turn.rig import closing, rig

WINDOW = 8192
TASK_ENDS = 40
LATEST = 0.02
"""So many seconds after an answer the swapping begins, at most: some answers are acted upon in peace."""

RUN = {"command": "echo it > made-here.txt; cat a.py", "cwd": "src"}
EDIT = {"path": "src/a.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}


class Interrupted(Swapper):
    """Swaps only while it is let to, and puts everything back before it rests."""

    def __init__(self, ws: Path, *, only_folders: bool) -> None:
        super().__init__(ws)
        self.acts = (self._folder,) if only_folders else (self._link, self._other, self._folder, self._gone)
        self.swaps: int = 0
        self.on = threading.Event()
        self.resting = threading.Lock()

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                self.on.wait(0.05)
                with self.resting:
                    if self.on.is_set():
                        self._choose.choice(self.acts)()
                        self.swaps += 1
        except BaseException as error:  # noqa: BLE001 - it is shown by the test, in its own thread
            self.error = error
            self.ending.set()

    def _link(self) -> None:
        new = self.ws / "src" / "new-link"
        new.symlink_to(self._choose.choice(("../../ws-evil/a.py", "../other.py", "../elsewhere/a.py")))
        self._there_and_back(new)

    def _other(self) -> None:
        new = self.ws / "src" / "new-file"
        new.write_bytes(OTHER)
        self._there_and_back(new)

    def _gone(self) -> None:
        (self.ws / "src" / "a.py").unlink(missing_ok=True)
        self._wait_a_little()
        self._approved()

    def _there_and_back(self, new: Path) -> None:
        new.replace(self.ws / "src" / "a.py")
        self._wait_a_little()
        self._approved()

    def _approved(self) -> None:
        back = self.ws / "src" / "new-approved"
        back.write_bytes(APPROVED)
        back.replace(self.ws / "src" / "a.py")
        self._wait_a_little()


def model(wanted: ToolCall) -> ScriptedTransport:
    """Return one that wants the call once a turn, and is content with whatever comes of it."""

    def answer(request: ChatRequest) -> list[Step]:
        last = json.loads(request.messages)[-1]
        return says("", calls=[wanted]) if last["role"] == "user" else says("Oh.")

    able: frozenset[Capability] = frozenset({"chat", "tools"})
    info = ModelInfo(name="large", provider="scripted", capabilities=able, parameters="14B", context_length=WINDOW)
    return ScriptedTransport(answer, models=[info], window=WINDOW)


async def answered_while_swapped(base: Path, swaps: int, wanted: ToolCall) -> Counter[str]:
    """Answer question after question while names are swapped; returns how often the call was made and how often not."""
    ws, canary = make_tree(base)
    (ws / "src" / "a.py").write_bytes(APPROVED)
    swapper = Interrupted(ws, only_folders=wanted.name == "run_command")
    counts: Counter[str] = Counter()
    chance = random.Random(7)  # noqa: S311 - the same every time
    swapper.start()
    try:
        async with rig(base / "home", (), model=model(wanted), tools=[EditFile(), RunCommand()]) as it:
            it.folder = ws
            conversation: str | None = None
            while swapper.swaps < swaps:
                assert not swapper.ending.is_set(), swapper.error
                conversation = None if counts["turns"] % TASK_ENDS == 0 else conversation
                paused = closing(await it.turn("mend it", conversation))
                conversation = paused.conversation_id
                assert paused.pending_approval is not None
                begins = asyncio.get_running_loop().call_later(chance.uniform(0, LATEST), swapper.on.set)
                events = await it.answered(paused.pending_approval)
                begins.cancel()
                swapper.on.clear()
                assert closing(events).answer == "Oh."
                counts["turns"] += 1
                counts.update(event.outcome for event in events if isinstance(event, ToolFinished))
                with swapper.resting:
                    check(ws, untouched=canary.untouched)
                    (ws / "src" / "made-here.txt").unlink(missing_ok=True)
                    (ws / "src" / "a.py").unlink(missing_ok=True)
                    (ws / "src" / "a.py").write_bytes(APPROVED)
    finally:
        swapper.ending.set()
        swapper.on.set()
        swapper.join(20)
    assert swapper.error is None
    counts["swaps"] = swapper.swaps
    return counts


def check(ws: Path, *, untouched: bool) -> None:
    """Nothing but the approved file was written."""
    assert untouched
    assert (ws / "other.py").read_bytes() == OTHER
    assert (ws / "elsewhere" / "a.py").read_bytes() == APPROVED
    assert [each.name for each in (ws / "elsewhere").iterdir()] == ["a.py"]
    for left in ws.rglob(".rune-*"):  # what lost its name to another in the very moment of being given back: not lost
        assert left.is_symlink() or left.read_bytes() in {OTHER, APPROVED}
        left.unlink()


@pytest.mark.parametrize(
    "swaps", [200, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
async def test_an_answer_writes_only_what_was_approved(tmp_path: Path, swaps: int) -> None:
    if not exchange_works(tmp_path):
        pytest.skip("this file system cannot exchange two names")
    counts = await answered_while_swapped(tmp_path, swaps, ToolCall(id="", name="edit_file", arguments=EDIT))
    print(counts)
    assert min(counts["failed"], counts["ok"]) > swaps // 200


@pytest.mark.parametrize(
    "swaps", [50, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])], ids=["short", "long"]
)
async def test_a_command_runs_in_the_folder_that_was_approved(tmp_path: Path, swaps: int) -> None:
    if not exchange_works(tmp_path):
        pytest.skip("this file system cannot exchange two names")
    counts = await answered_while_swapped(tmp_path, swaps, ToolCall(id="", name="run_command", arguments=RUN))
    print(counts)
    assert counts["ok"] > 0
