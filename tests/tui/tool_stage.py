"""The real app with a model that calls Rune's own tools, in a folder with a file to change."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from rune.models.scripted import Answer, Answers, ScriptedTransport, says
from rune.models.transport import Capability, ModelInfo
from rune.records.tools import ToolCall
from rune.tui.widgets.approval_bar import ApprovalBar
from rune.tui.widgets.choices import READING_SECONDS
from tests.fakes.clock import CountedClock
from tests.tui.stage import Stage, stage

WINDOW: Final = 32_768
ABLE: Final[frozenset[Capability]] = frozenset({"chat", "tools"})
MODEL: Final = ModelInfo(name="large", provider="scripted", capabilities=ABLE, parameters="14B", context_length=WINDOW)
CART: Final = "def total(cart):\n    total = 0\n    return total\n"


def calls(name: str, text: str = "", **arguments: Any) -> Answer:
    """Return an answer that calls a tool."""
    return says(text, calls=[ToolCall(id=f"call_{name}", name=name, arguments=arguments)])


def edits(replace: str = "    total = Decimal(0)", *, search: str = "    total = 0", text: str = "") -> Answer:
    """Return an answer that changes the file."""
    return calls("edit_file", text, path="cart.py", edits=[{"search": search, "replace": replace}])


def able(answers: Answers) -> ScriptedTransport:
    """Return a model that is believed to call tools natively."""
    return ScriptedTransport(answers, models=[MODEL], window=WINDOW)


class ToolStage:
    """The app, its file and its clock."""

    def __init__(self, at: Stage, file: Path, clock: CountedClock) -> None:
        self.at, self.file, self.clock = at, file, clock

    @property
    def bar(self) -> ApprovalBar:
        return self.at.app.chat.query_one(ApprovalBar)

    async def asked(self) -> None:
        """Wait for a question, and let the person have read it."""
        await self.at.until_shown("waiting for you", "n no")
        await self.at.idle()
        self.clock.advance(READING_SECONDS)

    async def press(self, *keys: str) -> None:
        await self.at.pilot.press(*keys)

    async def answered(self, key: str, then: str) -> None:
        """Answer by a key, and wait for the end of the turn, which says `then`."""
        await self.press(key)
        await self.at.until_shown(then)
        await self.at.idle()


@asynccontextmanager
async def tool_stage(tmp_path: Path, answers: Answers, **more: Any) -> AsyncGenerator[ToolStage]:
    """Open the app in a folder with `cart.py`."""
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    file = folder / "cart.py"
    if not file.exists():
        file.write_text(CART)
    clock = CountedClock()
    async with stage(tmp_path, model=able(answers), folder=folder, clock=clock, **more) as at:
        yield ToolStage(at, file, clock)
