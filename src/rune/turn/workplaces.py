"""Where the tools of a conversation work: its folder, and what the model has seen of it."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from rune.config.instructions import git_root
from rune.errors import NotFoundError
from rune.host.environment import command_environment
from rune.host.paths import real_path
from rune.records.tools import FileTouch, ToolCall, ToolResult
from rune.store.evidence_store import Evidence
from rune.store.intents import IntentRepository
from rune.text.masking import Masker
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from rune.tools.undo import UndoStore
from rune.tools.workplace import Workplace
from rune.turn.session import Session


class Workplaces:
    """Makes one workplace for each conversation that is held. `own` are Rune's folders, which no tool touches;
    `environ` is what commands are given a part of.
    """

    def __init__(
        self,
        *,
        own: Sequence[Path],
        environ: Mapping[str, str],
        masker: Masker,
        undo: UndoStore,
        evidence: Evidence,
        results: IntentRepository,
    ) -> None:
        self._own = tuple(own)
        self._environ = environ
        self._masker = masker
        self._undo = undo
        self._evidence = evidence
        self._results = results

    async def of(self, session: Session) -> Workplace:
        """Return the workplace of a conversation; the same for as long as it is held."""
        if session.conversation is None:
            raise RuntimeError("a conversation that has not begun has no workplace")
        if session.place is None:
            place = await asyncio.to_thread(self.at, session.conversation_id, real_path(session.conversation.folder))
            if not session.made:
                session.made += await self._made(session)
            for _, result in session.made:
                note_seen(place, result.files)
            session.place = place
        session.place.mode = session.permission
        return session.place

    def at(self, conversation_id: str, folder: Path) -> Workplace:
        """Return a workplace in a folder, of which nothing was seen yet. Blocks."""
        folder = folder.resolve()
        around = {git_root(folder), Path(tempfile.gettempdir()).resolve()} - {folder}
        home = Path(given).resolve() if (given := self._environ.get("HOME")) else None
        places = Places(reading=tuple(sorted(around)), writing=(folder,), own=self._own, home=home)
        return Workplace(
            conversation_id=conversation_id,
            folder=folder,
            places=places,
            files=WorkspaceFiles(folder, places),
            environment=command_environment(self._environ, writable=[folder]),
            masker=self._masker,
            undo=self._undo,
            keep=self._keep,
            fetch=self._fetch,
            seen={},
        )

    async def _keep(self, data: bytes, source: str) -> str:
        return (await asyncio.to_thread(self._evidence.put, data, source=source)).hash

    async def _fetch(self, digest: str) -> bytes:
        return await asyncio.to_thread(self._evidence.get, digest)

    async def _made(self, session: Session) -> list[tuple[ToolCall, ToolResult]]:
        """Return the calls that a conversation made before this process had it open."""
        told = {message.id: message for message in session.history if message.role == "tool"}
        asked: dict[str, ToolCall] = {}
        by_message: dict[str, ToolCall] = {}
        for message in session.history:
            if message.role == "assistant":
                asked = {call.id: call for call in message.tool_calls}
            elif message.role == "tool" and message.tool_call_id in asked:
                by_message[message.id] = asked[message.tool_call_id]
        stored = await self._results.results(session.conversation_id)
        results = [each.result for each in stored if each.result.message_id in told]
        return [(by_message[each.message_id], each) for each in results if each.message_id in by_message]


def note_seen(place: Workplace, touches: Sequence[FileTouch]) -> None:
    """Note what the model knows of files: read or written by a tool, it is what it saw."""
    for touch in touches:
        path = real_path(touch.path)
        if touch.after is None:
            place.seen.pop(path, None)
        else:
            place.seen[path] = touch.after


def find_artifact(results: IntentRepository) -> Callable[[str, str], Awaitable[str]]:
    """Return what finds an artifact by the beginning of its hash: only those that were shown in the conversation."""

    async def find(conversation_id: str, part: str) -> str:
        wanted = part.removeprefix("sha256:").lower()
        stored = await results.results(conversation_id)
        outputs = {each.result.output for each in stored if each.result.output is not None}
        found = [output for output in outputs if wanted and output.removeprefix("sha256:").startswith(wanted)]
        if len(found) != 1:
            raise NotFoundError(f"there is no artifact {part[:80]!r} in this conversation")
        return found[0]

    return find
