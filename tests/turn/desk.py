"""A conversation whose tools changed real files, for tests of /diff and /undo."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from rune.records.tools import Outcome, PreparedCall, ToolCall, ToolResult
from rune.store.ledger import Draft
from rune.tools.executor import Tool
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.write_file import WriteFile
from rune.tools.prepare import digest_of
from rune.tools.workplace import Workplace
from rune.turn.changes import Changes, Undone
from tests.store.builders import CONVERSATION, a_conversation, a_turn, an_id
from tests.store.spine import Faulty, Spine, a_spine
from tests.tools.executors.places import watch, workplace


class Desk:
    """A conversation whose tools change files, as the loop has them do it."""

    def __init__(self, base: Path, spine: Spine) -> None:
        self.base = base
        self.spine = spine
        self.place = workplace(base)
        self.folder = self.place.folder
        self.turn = ""
        self._calls = 0
        self.changes = Changes(
            results=spine.intents,
            turns=spine.turns,
            ledger=spine.ledger,
            undo=self.place.undo,
            workplace=self._workplace,
            clock=spine.clock,
            ids=spine.ids,
        )

    def _workplace(self, conversation_id: str, folder: Path) -> Workplace:
        assert folder == self.folder
        return msgspec.structs.replace(workplace(self.base), conversation_id=conversation_id)

    async def begin(self, number: int, *, resumes: int | None = None) -> None:
        """Begin a turn; what is called next belongs to it."""
        record = msgspec.structs.replace(a_turn(number), resumes=None if resumes is None else an_id("trn", resumes))
        await self.emit("turn.started", record)
        self.turn = record.id

    async def call(self, tool: Tool, *, killed: bool = False, acts: bool = True, **arguments: Any) -> PreparedCall:
        """Have a tool act. `killed`: its receipt says that nobody knows; `acts` False: nor did it come so far."""
        plan = await tool.prepare(arguments, self.place)
        self._calls += 1
        call = ToolCall(id=f"call_{self._calls}", name=tool.schema.name, arguments=arguments)
        prepared = PreparedCall(
            id=an_id("cal", self._calls),
            turn_id=self.turn,
            call=call,
            effect=plan.effect,
            detail=plan.detail,
            preconditions=dict(plan.preconditions),
            digest=digest_of(call, plan.preconditions),
            confinement="none",
            why="",
            rule="",
        )
        await self.emit("tool.intent", prepared)
        done = await tool.execute(plan, self.place, watch()) if acts else None
        outcome: Outcome = "unknown" if killed or done is None else done.outcome
        result = ToolResult(
            id=prepared.id,
            turn_id=self.turn,
            tool=call.name,
            digest=prepared.digest,
            outcome=outcome,
            summary="",
            output=None,
            milliseconds=1,
            confinement="none",
            exit_code=None,
            files=() if outcome == "unknown" or done is None else done.files,
        )
        await self.emit("tool.result", result)
        return prepared

    async def write(self, name: str, content: str, **how: Any) -> None:
        """Write a file whole, as a model that has read it."""
        target = self.place.files.target(name)
        if target.facts is not None:
            self.place.seen[target.path] = target.facts.sha256
        await self.call(WriteFile(), path=name, content=content, **how)

    async def edit(self, name: str, search: str, replace: str, **how: Any) -> None:
        await self.call(EditFile(), path=name, edits=[{"search": search, "replace": replace}], **how)

    async def undo(self) -> Undone:
        return await self.changes.undo(CONVERSATION, str(self.folder))

    async def undone(self) -> dict[str, str]:
        """Undo, and return what became of each file."""
        return {file.name: file.did for file in (await self.undo()).files}

    async def diff(self) -> dict[str, str]:
        return {file.name: file.diff for file in (await self.changes.diff(CONVERSATION, str(self.folder))).files}

    async def notes(self) -> str:
        changed = await self.changes.diff(CONVERSATION, str(self.folder))
        return "\n".join(note for file in changed.files for note in file.notes)

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    async def emit(self, event_type: str, body: Any) -> None:
        await self.spine.ledger.emit(Draft(event_type=event_type, body=body, partition=CONVERSATION))


@asynccontextmanager
async def a_desk(base: Path, *, store: Faulty | None = None) -> AsyncGenerator[Desk]:
    async with a_spine(base / "views.db", store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.conversations.create(a_conversation(folder=str(base / "work")))
        desk = Desk(base, spine)
        (desk.folder / "a.py").write_bytes(b"one\r\ntwo\n")
        (desk.folder / "b.py").write_bytes(b"b\n")
        yield desk
