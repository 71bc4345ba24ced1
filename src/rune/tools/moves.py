"""The legal moves of a model that is held to a schema (tools.md, Helping small models act): pure.

The harness decides what is possible now, the model chooses among it: a path is one of the files that are there, only
what was read can be edited, and an answer is possible once the work was proved. None of it limits native calls.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

import msgspec

from rune.host.paths import real_path
from rune.records.tools import ToolCall, ToolResult, ToolSchema
from rune.tools.by_line import by_line
from rune.tools.demand import (
    Demand,
    asks_for_work,
    commands_in,
    demand_of,
    is_test,
    repairs,
    wants_git,
    wants_new,
    wants_run,
    wants_tests_changed,
)

__all__ = ["ENDINGS", "Made", "Moves", "Situation", "asks_for_work", "legal_moves", "situation_of"]

MOST_FILES: Final = 300
"""So many paths stand in an enumeration at most (docs/decisions/constrained-moves.md)."""

_READ: Final = "read_file"
_EDIT: Final = "edit_file"
_WRITE: Final = "write_file"
_COMMAND: Final = "run_command"
_CHECK: Final = "run_tests"
_LOOKS: Final = frozenset({_READ, "list_directory", "glob_files", "grep_files", "git_status", "git_diff", "git_log"})
_WORK: Final = _LOOKS | {_EDIT, _WRITE, _COMMAND, _CHECK}
# What no program runs: nothing proves a change of it.
_PROSE: Final = frozenset({".md", ".rst", ".txt", ".csv", ".html", ".css", ".svg", ""})
_COMMON: Final = frozenset({"python", "python3", "node", "bash", "sh", "npm", "yarn", "pnpm", "run", ".", "discover"})
_SHORT: Final = 2
_LATELY: Final = 8
_FEW_FILES: Final = 40
_RUNNERS: Final = {".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node"}
_FINDS: Final = frozenset({"list_directory", "glob_files", "grep_files"})
_ENOUGH_CALLS: Final = 10
_FAILED_EDITS: Final = 2
_SHORT_TASK: Final = 200  # characters: one thing to do, most likely
_TRY_ANOTHER: Final = 0.6


def _ending(name: str, description: str, said: str) -> ToolSchema:
    # Without an example: small models give it as their own reason.
    reason = {"type": "string", "description": said}
    parameters = {"type": "object", "properties": {"reason": reason}, "required": ["reason"]}
    return ToolSchema(name=name, description=description, parameters=parameters | {"additionalProperties": False})


NOTHING_TO_CHANGE: Final = _ending(
    "nothing_to_change",
    "Ends the task: you looked, and nothing needs to be changed.",
    "What you looked at, and why it is right as it is.",
)
STUCK: Final = _ending(
    "stuck",
    "Ends the task undone: you tried, and cannot go on.",
    "What you tried, and what is missing.",
)
ENDINGS: Final = (NOTHING_TO_CHANGE, STUCK)
"""Moves that end a turn and are no tools: nothing is executed, and the person is shown the reason as such, never as
done. They stand in the prompt behind the tools, and in the schema only where they are legal."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What the harness knows before a move. Paths are relative to the folder, as tools name them.

    `task` is the person's message. `files` are those that there are, () where that is unknown or too many to list;
    `seen` are those whose content the model was shown in this conversation and that are still there. `checks` are
    command lines that prove the work (the project's own tests, what the person named), () for none known.

    The rest is about this turn: `calls` counts them, `looked` those that read something. `changed` are the files that
    it changed, `proved` says that a check succeeded since the last change, `ran` that any command came to an end,
    whatever its exit code, `passed` that the newest one succeeded. `refused`: the person or a rule did not allow a
    call. `lines` are those that stand once in the files that may be edited, for a model that is to choose among them,
    () for one that writes what it looks for. `failed_edits` counts edits since the last change that were not possible,
    `stumbled`: the newest call was one.
    `fresh` are files that were read lately, whole, and did not change since: reading them again would say the same.
    `tested`: the tests ran, and nothing changed since.
    """

    task: str
    files: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    calls: int = 0
    looked: int = 0
    changed: tuple[str, ...] = ()
    proved: bool = False
    ran: bool = False
    passed: bool = False
    refused: bool = False
    failed_edits: int = 0
    lines: tuple[str, ...] = ()
    stumbled: bool = False
    fresh: tuple[str, ...] = ()
    tested: bool = False


class Moves(msgspec.Struct, frozen=True):
    """What is legal now: tools with schemas that are narrowed to it, endings among them, and whether an answer is.
    `temperature` is how much chance the choice is left to: none, but after a wrong edit, which would come again.
    """

    schemas: tuple[ToolSchema, ...]
    answer: bool
    temperature: float = 0.0


Made = tuple[ToolCall, ToolResult]
"""A call and what it came to."""


def legal_moves(schemas: Sequence[ToolSchema], situation: Situation) -> Moves:
    """Return what the model may do next, out of the tools that are on offer; there is always something.

    `schemas` are the tools as they stand in the prompt; endings are added where they are legal, whether they stand
    among them or not.
    """
    demand = demand_of(situation.task)
    names = {schema.name for schema in schemas}
    endings = {ending.name for ending in ENDINGS}
    narrowed = (_narrowed(each, situation, demand, names) for each in schemas if each.name not in endings)
    moves = [each for each in narrowed if each is not None]
    answer = _may_answer(situation, demand, names)
    if demand == "change" and not answer:
        moves += _endings(situation)
    if situation.proved and _is_all(situation):
        # What goes on after the proof undoes it.
        moves = [move for move in moves if move.name not in _WORK]
    return Moves(tuple(moves), answer or not moves, _TRY_ANOTHER if _in_vain(situation) else 0.0)


def _is_all(situation: Situation) -> bool:
    """Say whether a repair that is proved is all that was asked for."""
    task = situation.task
    return bool(situation.changed) and repairs(task) and not wants_new(task) and len(task) <= _SHORT_TASK


def situation_of(
    task: str,
    *,
    calls: Sequence[Made],
    earlier: Sequence[Made] = (),
    folder: Path,
    files: Sequence[str] = (),
    checks: Sequence[str] = (),
) -> Situation:
    """Fold a conversation's calls, oldest first, into what the harness knows. `calls` are those of this turn, and of
    the paused turns that it goes on with; `earlier` those before. `folder` is the real one of the workspace.
    """
    commands = tuple(dict.fromkeys((*checks, *commands_in(task))))
    known = _Known(folder, commands)
    for call, result in earlier:
        known.note(call, result)
    known.begin()
    for call, result in calls:
        known.note(call, result)
    listed = tuple(sorted(dict.fromkeys(files))) if len(files) <= MOST_FILES else ()
    return Situation(
        task=task,
        files=listed,
        seen=tuple(path for path in known.seen if not listed or path in listed or path in known.changed),
        checks=commands,
        calls=len(calls),
        looked=known.looked,
        changed=tuple(known.changed),
        proved=known.proved,
        ran=known.ran,
        passed=known.passed,
        refused=known.refused,
        failed_edits=known.failed_edits,
        stumbled=known.stumbled,
        fresh=known.fresh,
        tested=known.tested,
    )


class _Known:
    """What is known after so many calls."""

    def __init__(self, folder: Path, checks: Sequence[str]) -> None:
        self._folder = folder
        self._checks = checks
        self.seen: dict[str, None] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a turn: what was seen stays seen."""
        self.looked = 0
        self.changed: dict[str, None] = {}
        self.proved = self.ran = self.passed = self.refused = False
        self.failed_edits = 0
        self.tested = self.stumbled = False
        self._number = 0
        self._read: dict[str, int] = {}

    @property
    def fresh(self) -> tuple[str, ...]:
        """What was read so lately that it is still before the model's eyes."""
        return tuple(path for path, number in self._read.items() if self._number - number < _LATELY)

    def note(self, call: ToolCall, result: ToolResult) -> None:
        """Take in one more call."""
        self._number += 1
        self.refused = self.refused or result.outcome == "denied"
        for touch in result.files:
            path = self._named(touch.path)
            self.seen.pop(path, None)
            if touch.after is not None:
                self.seen[path] = None
            if touch.changed:
                self.changed[path] = None
                self._read.pop(path, None)
                self.proved = self.tested = False
                self.failed_edits = 0
        self.stumbled = call.name == _EDIT and result.outcome == "failed"
        self.looked += call.name in _LOOKS and result.outcome == "ok"
        if self.stumbled:
            self.failed_edits += 1
            self._read = {}  # what was copied wrongly is looked at again
        if call.name in {_COMMAND, _CHECK}:
            self._ran(call, result)
        elif call.name == _READ and result.outcome == "ok" and set(call.arguments) == {"path"}:
            self._read |= {self._named(touch.path): self._number for touch in result.files}

    def _ran(self, call: ToolCall, result: ToolResult) -> None:
        if result.exit_code is None:
            return
        self.ran, self.passed = True, result.exit_code == 0 and result.outcome == "ok"
        # Zero and failed: there was no test in what was to be run.
        self.tested = self.tested or (call.name == _CHECK and (self.passed or result.exit_code != 0))
        self.proved = self.passed and (call.name == _CHECK or not self._checks or self._is_check(call))

    def _is_check(self, call: ToolCall) -> bool:
        ran = set(str(call.arguments.get("command", "")).split())
        return any(is_test(word) for word in ran) or any(ran & _telling(check) for check in self._checks)

    def _named(self, stored: str) -> str:
        path = real_path(stored)
        return path.relative_to(self._folder).as_posix() if path.is_relative_to(self._folder) else str(path)


def _telling(command: str) -> set[str]:
    """Return the words of a command by which it is known again, however it is started: not its interpreter."""
    first, *others = command.split() or [""]
    words = {PurePosixPath(first).name, *others}
    return {word for word in words if word not in _COMMON and (len(word) > _SHORT or not word.startswith("-"))}


def _in_vain(situation: Situation) -> bool:
    """Say whether what the model did last was wrong: an edit that failed, or after which the tests still fail."""
    return bool(situation.failed_edits or (situation.changed and situation.tested and not situation.passed))


def _may_answer(situation: Situation, demand: Demand, names: set[str]) -> bool:
    if demand == "talk" or situation.refused:
        return True
    can_run = bool(names & {_COMMAND, _CHECK})
    if demand == "look":
        return bool(situation.calls or situation.seen) or not names & _LOOKS
    if not can_run and not names & {_EDIT, _WRITE}:
        return bool(situation.calls)  # nothing can be done here; the model can say so once it has looked
    return (situation.ran or not can_run) if demand == "run" else _is_done(situation, can_run=can_run)


def _is_done(situation: Situation, *, can_run: bool) -> bool:
    """Say whether a change was made and proved."""
    if not situation.changed:
        # By a command, perhaps; where there are checks, they passed before it as well.
        return situation.proved and situation.calls > 1 and not situation.checks
    if all(PurePosixPath(path).suffix.lower() in _PROSE for path in situation.changed):
        return True
    return situation.proved or not can_run


def _endings(situation: Situation) -> list[ToolSchema]:
    """Return how the turn may end without an answer."""
    found: list[ToolSchema] = []
    if not situation.changed and (situation.passed or (situation.looked > 1 and not situation.checks)):
        found.append(NOTHING_TO_CHANGE)
    if situation.calls >= _ENOUGH_CALLS:
        found.append(STUCK)
    return found


def _narrowed(schema: ToolSchema, situation: Situation, demand: Demand, names: set[str]) -> ToolSchema | None:
    """Return a tool as it is possible now, None where it is not."""
    match schema.name:
        case "read_file":
            return _readable(schema, situation)
        case "edit_file":
            return _editable(schema, situation, demand)
        case "write_file":
            return _writable(schema, situation, demand)
        case "run_tests":
            return _testable(schema, situation, demand)
        case _ if demand == "change" and repairs(situation.task):
            return _while_mending(schema, situation, names)
        case _:
            return schema


def _while_mending(schema: ToolSchema, situation: Situation, names: set[str]) -> ToolSchema | None:
    """Leave out what leads astray: a search among few files, commands but the check, git and all else unasked."""
    if schema.name in _FINDS:
        return None if 0 < len(situation.files) <= _FEW_FILES else schema
    if schema.name == _COMMAND and situation.checks and _CHECK in names:
        lines = _commands(situation)
        return _held(schema, "command", lines) if lines else None
    if schema.name == _COMMAND or (schema.name.startswith("git_") and wants_git(situation.task)):
        return schema
    return None


def _commands(situation: Situation) -> list[str]:
    """Return the commands that the message names, be it by naming a program of the project."""
    if not wants_run(situation.task):
        return []
    named = [path for path in situation.files if re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", situation.task)]
    started = (f"{runner} {path}" for path in named if (runner := _RUNNERS.get(PurePosixPath(path).suffix)))
    return list(dict.fromkeys((*commands_in(situation.task), *started)))


def _readable(schema: ToolSchema, situation: Situation) -> ToolSchema | None:
    if not situation.files:
        return schema
    paths = [path for path in situation.files if path not in situation.fresh]
    return _held(schema, "path", paths) if paths else None


def _testable(schema: ToolSchema, situation: Situation, demand: Demand) -> ToolSchema | None:
    if situation.tested or not situation.checks:
        return None
    if demand != "change" or not 0 < len(situation.files) <= _FEW_FILES:
        return schema
    # All of a small project's tests: a model that may choose runs those of a file that has none.
    return ToolSchema(
        name=schema.name, description=schema.description, parameters=schema.parameters | {"properties": {}}
    )


def _editable(schema: ToolSchema, situation: Situation, demand: Demand) -> ToolSchema | None:
    # What failed is not tried again at once: a small model says it again, word for word.
    if situation.stumbled or situation.failed_edits >= _FAILED_EDITS:
        return None
    paths = editable_paths(situation)
    if not paths:
        return None
    held = _held(schema, "path", paths[-MOST_FILES:])
    return by_line(held, situation.lines) if situation.lines else held


def _writable(schema: ToolSchema, situation: Situation, demand: Demand) -> ToolSchema | None:
    """Return the way to write whole files: new ones, and those on which edits fail."""
    if not (demand == "change" and repairs(situation.task)) or wants_new(situation.task):
        return schema
    if situation.failed_edits < _FAILED_EDITS:
        return None  # the last resort: a small model that writes a file anew may lose the rest of it
    paths = editable_paths(situation)
    return _held(schema, "path", paths[-MOST_FILES:]) if paths else None


def editable_paths(situation: Situation) -> list[str]:
    """Return the files that were read, without the tests while it is code that is to be mended."""
    demand = demand_of(situation.task)
    keep_tests = demand == "change" and repairs(situation.task) and not wants_tests_changed(situation.task)
    return [path for path in situation.seen if not (keep_tests and is_test(path))]


def _held(schema: ToolSchema, argument: str, values: Sequence[str]) -> ToolSchema:
    """Return a tool with nothing to decide but one of these values, and what else it must be given."""
    given = cast("Mapping[str, Any]", schema.parameters.get("properties", {}))
    needed = {argument, *cast("Sequence[str]", schema.parameters.get("required", ()))}
    narrowed = {name: each for name, each in given.items() if name in needed}
    narrowed[argument] = {"type": "string", "enum": list(values)}
    parameters = schema.parameters | {"properties": narrowed}
    return ToolSchema(name=schema.name, description=schema.description, parameters=parameters)
