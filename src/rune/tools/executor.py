"""The port of every tool: what a call would do, and doing it (tools.md, Prepare, approve, run once).

A call is prepared first. What comes of that is all that a person approves and all that is journaled; it is made again
when an approval is answered, be it tomorrow and in another process, and runs only when it came out the same.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from rune.records.tools import ChecklistState, FileTouch, Outcome, ToolSchema
from rune.text.safe_text import SafeText
from rune.tools.workplace import Workplace

ToolKind = Literal["read", "edit", "run", "session"]
"""`read` changes nothing and runs at once, also beside others; `edit` changes files; `run` starts a program that may do
anything; `session` touches only what Rune itself shows (a checklist)."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A checked call, ready to act. `effect` is one line for its card ("src/cart.py +3 -1"); `detail` is all that a
    person needs to decide, exactly what would happen (the diff; the command with its folder). Foreign text: whoever
    shows it makes it safe.

    `preconditions` is what has to be the same when it acts, by name; with tool and arguments it makes the digest.
    `touches` are real paths that would be written. `asks` says why the person is asked whatever mode and rules say, ""
    when they decide. `rule` is what "always" would allow, never wider than a folder of what is touched; "" when there
    is none to offer. `state` is what `execute` needs of `prepare`; it is never stored.
    """

    effect: str
    detail: str = ""
    preconditions: Mapping[str, str] = {}
    touches: tuple[Path, ...] = ()
    asks: str = ""
    rule: str = ""
    state: Any = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to. `text` is for the model, `summary` one line for the card and the receipt; `output` is an
    evidence id when there is more than `text` (already kept). `files` are those it read or changed. `checklist` is the
    model's own list, whole, where the call changed it.
    """

    text: str
    summary: str
    outcome: Outcome = "ok"
    output: str | None = None
    exit_code: int | None = None
    files: tuple[FileTouch, ...] = ()
    checklist: tuple[tuple[str, ChecklistState], ...] | None = None


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """What runs beside a call. `stop` is set when the person wants it to end: it then ends by itself, soon, and says
    what came of it (`outcome` "cancelled"). `show` takes the last lines of output as they stand by now.
    """

    stop: asyncio.Event
    show: Callable[[SafeText], None]


class Tool(Protocol):
    """One tool. It is made once and keeps no state of a call; `arguments` fit its schema.

    A tool whose text is longer than a model should read at once gives a part and says how to get more.
    """

    @property
    def schema(self) -> ToolSchema:
        """How it is offered: what it does in a line, when to use it in another, arguments with `examples`."""
        ...

    @property
    def kind(self) -> ToolKind:
        """What it may change."""
        ...

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the call and compute what it would do; changes nothing, runs nothing of the project.

        Raises ToolError, whose message tells the model what is wrong and what to do instead.
        """
        ...

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Do it. Preconditions are checked once more while acting. Raises ToolError as `prepare`; nothing was changed
        then. What was changed is told in `Done.files` whatever the outcome.
        """
        ...
