"""/diff and /undo: what Rune's tools changed in a conversation, and taking back the last turn's part of it.

Both go by what files held and hold (hashes in receipts, contents in the undo store), never by git, which is not
touched. Nothing is taken back over what something else wrote since.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from rune.errors import NotFoundError, RuneError, StorageError, ToolError, UsageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.host.paths import real_path
from rune.records.tools import FileTouch, Outcome, PreparedCall, ToolCall, ToolResult
from rune.store.intents import IntentRepository, StoredResult
from rune.store.ledger import Draft, Ledger
from rune.store.turns import TurnRepository
from rune.tools.file_diff import file_diff
from rune.tools.naming import shown_name
from rune.tools.prepare import digest_of
from rune.tools.undo import UndoStore
from rune.tools.workplace import Workplace
from rune.turn.acting_out import CONFINEMENT
from rune.turn.change_book import UNDO, ChangeBook, TurnChanges, book_of, preconditions_of, settled, trail_of

ELSE: Final = "by something else than Rune's tools (you, an editor, a command)"
OWNER: Final = "owner"
CUT_OFF: Final = "it may have been done in part: Rune was killed between its beginning and its end"
CUT_OFF_SAID: Final = "An earlier /undo was cut off. What it had done already counts."
CUT_OFF_DONE: Final = "An earlier /undo was cut off after it had taken back all of that turn."
GONE: Final = "what it held before is not kept any more"

Did = Literal["restored", "removed", "made again", "left"]


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not what it was before Rune's tools changed it. `diff` is from then to now, "" where what it held
    is not kept any more or cannot be read; `notes` are sentences. Foreign text.
    """

    name: str
    added: int
    removed: int
    diff: str
    notes: tuple[str, ...] = ()


class ChangedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """All of a conversation's, by name."""

    files: tuple[ChangedFile, ...]


class UndoneFile(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file. `why` says it for one that was left, and `diff` is what taking it back would have done
    to what it holds now.
    """

    name: str
    did: Did
    why: str = ""
    diff: str = ""


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an undo; `call_id` is that of its receipt, `turn_id` the turn that was taken back."""

    call_id: str
    turn_id: str
    files: tuple[UndoneFile, ...]
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing was left."""
        return all(file.did != "left" for file in self.files)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an undo: what the tools made of it (`left`), what it was to be again (`then`), hashes as in
    FileTouch, and both contents. `why` says why it is left alone, "" for one that can be taken back.
    """

    stored: str
    path: Path
    name: str
    left: str | None
    then: str | None
    now_data: bytes | None = None
    then_data: bytes | None = None
    why: str = ""
    note: str = ""

    @property
    def did(self) -> Did:
        """What taking it back is."""
        if self.then is None:
            return "removed"
        return "restored" if self.left is not None else "made again"


class Changes:
    """Shows and takes back. `workplace` makes a place to work in for a conversation and its folder. Whoever calls
    `undo` holds the conversation, and no turn of it runs.
    """

    def __init__(
        self,
        *,
        results: IntentRepository,
        turns: TurnRepository,
        ledger: Ledger,
        undo: UndoStore,
        workplace: Callable[[str, Path], Workplace],
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._results = results
        self._turns = turns
        self._ledger = ledger
        self._undo = undo
        self._workplace = workplace
        self._clock = clock
        self._ids = ids

    async def diff(self, conversation_id: str, folder: str) -> ChangedFiles:
        """Return all that Rune's tools changed in the conversation: from before its first change to now. `folder` is
        stored text. Raises StorageError.
        """
        book = await self._book(conversation_id)

        def look() -> ChangedFiles:
            place = self._workplace(conversation_id, real_path(folder))
            with place.files:
                found = (self._changed(place, path, book) for path in book.files)
                files = [file for file in found if file is not None]
            return ChangedFiles(files=tuple(sorted(files, key=lambda file: file.name)))

        return await asyncio.to_thread(look)

    async def undo(self, conversation_id: str, folder: str) -> Undone:
        """Take back what the last turn's tools changed that was not taken back yet, file by file where it still holds
        what they left. Each /undo takes one turn; one that could not be taken back whole is tried again only when more
        of it can be.

        Journaled as a call of the person's own: the intent before anything is written, the receipt after. Raises
        UsageError when there is nothing to take back, StorageError; nothing was written then, but where the receipt
        could not be.
        """
        cut_off = await self._end_cut_off(conversation_id)
        book = await self._book(conversation_id)
        place = await asyncio.to_thread(self._workplace, conversation_id, real_path(folder))
        try:
            for changes in reversed(book.turns):
                steps = await asyncio.to_thread(self._steps, place, changes)
                due = [step for step in steps if not step.why]
                if due or (steps and not changes.tried):
                    undone = await self._take_back(place, changes.turn_id, steps, due)
                    return msgspec.structs.replace(undone, notes=(CUT_OFF_SAID, *undone.notes)) if cut_off else undone
                if changes.turn_id in cut_off:  # what the person wanted then is done: not one turn more
                    call_id = cut_off[changes.turn_id]
                    return Undone(call_id=call_id, turn_id=changes.turn_id, files=(), notes=(CUT_OFF_DONE,))
        finally:
            await asyncio.to_thread(place.files.close)
        raise UsageError(
            "there is nothing to take back", hint="/diff shows what Rune's tools changed in this conversation."
        )

    async def _book(self, conversation_id: str) -> ChangeBook:
        results = await self._results.results(conversation_id)
        cut_off = await self._cut_off(conversation_id, results)
        unknown = (_stored(call, _receipt(call, "unknown", CUT_OFF, (), milliseconds=None)) for call in cut_off)
        return book_of([*results, *unknown], await self._turns.turns(conversation_id))

    async def _cut_off(self, conversation_id: str, results: Sequence[StoredResult]) -> list[PreparedCall]:
        """Return the undos of this conversation that have no receipt, of turns whose calls have."""
        changed = sorted({stored.result.turn_id for stored in results})
        found = [call for turn_id in changed for call in await self._results.unanswered(turn_id)]
        here = {"conversation": conversation_id}  # a fork shares turns with another one, whose undo may just be running
        return [call for call in found if call.call.name == UNDO and here.items() <= call.call.arguments.items()]

    async def _end_cut_off(self, conversation_id: str) -> dict[str, str]:
        """Give each undo that was killed in its middle a receipt that says so; what it did is seen by the files.
        Returns their ids by turn.
        """
        killed = await self._cut_off(conversation_id, await self._results.results(conversation_id))
        receipts = [_receipt(call, "unknown", CUT_OFF, (), milliseconds=None) for call in killed]
        if receipts:
            await self._ledger.emit_many([_fact(conversation_id, "tool.result", receipt) for receipt in receipts])
        return {call.turn_id: call.id for call in killed}

    def _changed(self, place: Workplace, stored: str, book: ChangeBook) -> ChangedFile | None:
        """Compare what a file held before the first change with now; None for one that the tools left as it was."""
        path = real_path(stored)
        name = shown_name(place.named(path))
        try:
            now, sha256 = _content(place, path)
        except ToolError as error:
            return ChangedFile(name=name, added=0, removed=0, diff="", notes=(error.message,))
        touches = settled(book.files[stored], sha256)
        if not touches:
            return None
        first, last = touches[0], touches[-1]
        trail = trail_of(touches)
        if first.before in (sha256, last.after):
            return None
        notes: list[str] = []
        if trail.broken:
            notes.append(f"It was changed in between {ELSE}.")
        if last.after != sha256:
            notes.append(f"It was {'removed' if sha256 is None else 'changed'} since {ELSE}.")
        try:
            then = None if first.before is None else self._undo.get(first.before)
        except StorageError as error:
            notes.append(f"{_sentence(error)}: no difference can be shown.")
            return ChangedFile(name=name, added=0, removed=0, diff="", notes=tuple(notes))
        found = file_diff(then, now, name)
        return ChangedFile(
            name=name,
            added=found.added,
            removed=found.removed,
            diff=place.masker.mask(found.text),
            notes=tuple(notes),
        )

    def _steps(self, place: Workplace, changes: TurnChanges) -> list[Step]:
        """Look at each file of a turn; those that are as they were before it are not among them."""
        found = (self._step(place, path, changes) for path in sorted(changes.files))
        return [step for step in found if step is not None]

    def _step(self, place: Workplace, stored: str, changes: TurnChanges) -> Step | None:
        path = real_path(stored)
        name = shown_name(place.named(path))
        try:
            now, sha256 = _content(place, path)
        except ToolError as error:
            last = trail_of(changes.files[stored])
            return Step(stored=stored, path=path, name=name, left=last.after, then=last.before, why=error.message)
        touches = settled(changes.files[stored], sha256)
        if not touches:
            return None
        trail = trail_of(touches)
        if trail.before in (trail.after, sha256):
            return None
        note = f"{name}: before that it was changed {ELSE}, and is now as that left it" if trail.broken else ""
        step = Step(stored=stored, path=path, name=name, left=trail.after, then=trail.before, now_data=now, note=note)
        try:
            then = None if trail.before is None else self._undo.get(trail.before)
        except StorageError as error:
            return msgspec.structs.replace(step, why=_sentence(error))
        step = msgspec.structs.replace(step, then_data=then)
        if sha256 != trail.after:
            what = "removed" if sha256 is None else "changed"
            return msgspec.structs.replace(step, why=f"it was {what} since {ELSE}")
        return step

    async def _take_back(self, place: Workplace, turn_id: str, steps: Sequence[Step], due: Sequence[Step]) -> Undone:
        call = self._prepared(place, turn_id, due)
        intent = _fact(place.conversation_id, "tool.intent", call)
        started = self._clock.monotonic()
        failed: dict[str, str] = {}
        if due:
            await asyncio.to_thread(self._keep, due)
            await self._ledger.emit(intent)
            failed = await asyncio.to_thread(_restore, place, due)
        done = [step for step in due if step.stored not in failed]
        files = tuple(
            _undone(place, step, failed.get(step.stored, step.why))
            for step in sorted(steps, key=lambda step: step.name)
        )
        summary = f"{_files(len(done))} taken back" + (
            f", {len(steps) - len(done)} left" if len(done) < len(steps) else ""
        )
        receipt = _receipt(
            call,
            "ok" if done else "failed",
            summary,
            tuple(FileTouch(path=step.stored, before=step.left, after=step.then) for step in done),
            milliseconds=round((self._clock.monotonic() - started) * 1000),
        )
        ended = _fact(place.conversation_id, "tool.result", receipt)
        # One of which nothing could be taken back is journaled too: the next /undo goes on with the turn before.
        await self._ledger.emit_many([ended] if due else [intent, ended])
        notes = tuple(step.note for step in done if step.note)
        return Undone(call_id=call.id, turn_id=turn_id, files=files, notes=notes)

    def _prepared(self, place: Workplace, turn_id: str, due: Sequence[Step]) -> PreparedCall:
        call_id = self._ids.new_id("cal")
        call = ToolCall(id=call_id, name=UNDO, arguments={"turn": turn_id, "conversation": place.conversation_id})
        conditions = preconditions_of((step.stored, step.left, step.then) for step in due)
        return PreparedCall(
            id=call_id,
            turn_id=turn_id,
            call=call,
            effect=f"takes back {_files(len(due))}",
            detail="".join(_difference(place, step) for step in due),
            preconditions=conditions,
            digest=digest_of(call, conditions),
            confinement=CONFINEMENT,
            why="",
            rule="",
        )

    def _keep(self, steps: Sequence[Step]) -> None:
        """Keep what is about to be taken back, too: nothing that a file held is ever lost by an undo."""
        for step in steps:
            if step.now_data is not None:
                self._undo.keep(step.now_data)


def _content(place: Workplace, path: Path) -> tuple[bytes | None, str | None]:
    """Return what a file holds and its hash, None for no file. Raises ToolError, also for what may not be written."""
    target = place.files.target(str(path))
    if target.facts is None:
        return None, None
    content = place.files.read(str(path))
    return content.data, content.facts.sha256


def _restore(place: Workplace, steps: Sequence[Step]) -> dict[str, str]:
    """Give each file what it held; return, by path, why some could not be."""
    failed: dict[str, str] = {}
    for step in steps:
        try:
            if step.then is None and step.left is not None:
                place.files.remove(str(step.path), step.left)
            elif step.then_data is not None:
                place.files.replace(str(step.path), step.then_data, step.left)
        except ToolError as error:
            failed[step.stored] = error.message
    return failed


def _undone(place: Workplace, step: Step, why: str) -> UndoneFile:
    if not why:
        return UndoneFile(name=step.name, did=step.did)
    compared = step.then_data is not None or (step.then is None and step.now_data is not None)
    return UndoneFile(name=step.name, did="left", why=why, diff=_difference(place, step) if compared else "")


def _difference(place: Workplace, step: Step) -> str:
    return place.masker.mask(file_diff(step.now_data, step.then_data, step.name).text)


def _receipt(
    call: PreparedCall, outcome: Outcome, summary: str, files: tuple[FileTouch, ...], *, milliseconds: int | None
) -> ToolResult:
    return ToolResult(
        id=call.id,
        turn_id=call.turn_id,
        tool=UNDO,
        digest=call.digest,
        outcome=outcome,
        summary=summary,
        output=None,
        milliseconds=milliseconds,
        confinement=call.confinement,
        exit_code=None,
        files=files,
    )


def _stored(call: PreparedCall, receipt: ToolResult) -> StoredResult:
    return StoredResult(prepared=call, result=receipt, authorization=OWNER, at="")


def _fact(conversation_id: str, event_type: str, body: PreparedCall | ToolResult) -> Draft:
    return Draft(event_type=event_type, body=body, partition=conversation_id, actor_id=OWNER, authorization=OWNER)


def _sentence(error: RuneError) -> str:
    return GONE if isinstance(error, NotFoundError) else error.message


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
