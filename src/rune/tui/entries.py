"""What a transcript is made of: one value for everything that is shown as a piece of its own.

Knows neither Textual nor Rich. Texts are kept as they came (copying gives them back); whoever draws them makes them
safe.
"""

from typing import Literal

import msgspec

from rune.records.messages import Provenance
from rune.records.turns import StopReason
from rune.turn.events import ChecklistItem

CardState = Literal["prepared", "waiting", "running", "done", "failed", "denied", "cancelled", "unknown", "skipped"]


class Said(msgspec.Struct, frozen=True, kw_only=True, tag="said"):
    """What the person said."""

    key: str
    text: str
    provenance: Provenance = "owner"


class Thought(msgspec.Struct, frozen=True, kw_only=True, tag="thought"):
    """The model's thinking: folded to a line unless the person opens it. `running`: more may come."""

    key: str
    text: str
    running: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What the model said, as Markdown. `running`: more may come; `complete` False: it broke off."""

    key: str
    text: str
    model: str = ""
    running: bool = False
    complete: bool = True


class ToolCard(msgspec.Struct, frozen=True, kw_only=True, tag="tool"):
    """One call: what it would do (`effect` in a line, `detail` all of it), how far it is, what it printed.

    `since` is when it began to run, in seconds of a monotonic clock (None: it does not run), `seconds` how long it has
    been running. `output` are its last lines while it runs, then what the model was given; `kept`: there is more of it,
    kept as evidence, and `artifact` is what that is called (for `/artifact`). `own`: the person ran it by themselves,
    `name` is empty then.
    """

    key: str
    call_id: str
    name: str
    effect: str = ""
    detail: str = ""
    state: CardState = "prepared"
    milliseconds: int | None = None
    since: float | None = None
    seconds: int = 0
    summary: str = ""
    output: str = ""
    kept: bool = False
    artifact: str = ""
    exit_code: int | None = None
    own: bool = False


class Checklist(msgspec.Struct, frozen=True, kw_only=True, tag="checklist"):
    """The model's own list of what there is to do, as it stands now."""

    key: str
    items: tuple[ChecklistItem, ...]


class Told(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """News that is nobody's speech. `tier` as in `Notice`; None: nothing failed."""

    key: str
    text: str
    hint: str = ""
    tier: int | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True, tag="ending"):
    """That a turn ended otherwise than answered, and why. `kept`: some of an answer had come, and is there.
    `may_have_run`: what calls were about to do of which nobody knows whether they ran.
    """

    key: str
    reason: StopReason
    text: str = ""
    hint: str = ""
    kept: bool = True
    may_have_run: tuple[str, ...] = ()


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True, tag="command"):
    """What a slash command answered: plain text, laid out by the command."""

    key: str
    command: str
    text: str
    ok: bool = True


Entry = Said | Thought | Answer | ToolCard | Checklist | Told | Ending | CommandOutput
