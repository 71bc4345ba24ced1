"""Every error that Rune raises on purpose, in one tree.

    RuneError                       message, and a hint: what a person can do
    |- UsageError                   the call itself was wrong (exit code 2)
    |- ConfigError                  file, line, key, what is allowed
    |- StorageError                 the record of what happened
    |  |- LeaseHeldError            another Rune writes this conversation
    |  |  `- SlotHeldError          another Rune writes the files in which something is to be erased
    |  |- InvalidRecordError        a stored value does not fit its record
    |  |- NotFoundError             no conversation, trace, evidence ... of that id
    |  |- StorageUnavailableError   disk full, read-only, no permission, a failed sync
    |  |  `- ViewsStoppedError      following the journal was called off; the next start goes on from there
    |  |- PartUnreadableError       part of the journal cannot be understood: the rest is read, nothing is written
    |  |  |- CorruptJournalError    damage that is not a torn tail: file, line, byte
    |  |  |- NewerFormatError       only a later Rune knows its form
    |  |  `- UnmigratedDialectError not this journal's format: names the importer
    |  |- DamagedLineError          one line does not verify; its reader decides whether it is a torn tail
    |  |- JournalMovedError         a place that was read before is no longer there: rebuild what rests on it
    |  |- DamagedViewsError         a table or row of the views is not as it was written: rebuild them
    |  |- EvidenceTamperedError     a blob no longer has its hash
    |  |- UnstorableValueError      it would not read back as it was written
    |  `- IdentityCollisionError    one id, two contents
    |- ModelError                   the typed ends of a model call that is not complete
    |  |- StreamBrokenError         the answer ended without proof that it is whole
    |  |- ServerError               status, text, phase
    |  |- ProtocolError             the server said something that is not its protocol
    |  |- ModelTimeoutError         phase: first_byte or token
    |  |- CallCancelledError        the server says that the call was called off
    |  |- ContextTruncatedError     the prompt was cut, or would have been
    |  |- EmptyOutputError          tokens were generated and none arrived
    |  |- UnusableCallError         the model asked for a tool in a way that cannot be used
    |  |- CapabilityMissingError    tools, thinking or vision
    |  |- ModelNotFoundError        no such model on this server
    |  |- BusyError                 its queue is full; trying again is right
    |  |- ModelUnavailableError     nobody answers there, or there is no model at all
    |  `- RemoteRefusedError        the model would leave this machine and `local_only` is on
    |- ContextOverflowError         what must be in the prompt does not fit
    |- WindowTooSmallError          the model's window is too small to talk in at all
    |- CancelledEarlyError          a turn was stopped before anything of it was stored
    |- ToolError
    |  |- AccessDeniedError
    |  |- FileUnavailableError      not there, of another kind, too large, no room
    |  |- DigestMismatchError
    |  |- ToolTimeoutError
    |  |- CommandNotStartedError    no such program, it may not be run, its folder cannot be entered
    |  |- UnknownToolError
    |  `- InvalidArgumentsError
    |- IllegalTaskTransitionError   both states and the legal ones
    `- AlreadyDecidedError          an approval is answered once

Foreign errors become ours at one door a library: `models/wire/failures.py` for httpx, `store` for
apsw and the operating system. A surface prints message and hint; the traceback goes to the log.
"""

from datetime import UTC, datetime
from typing import Any, Final, Literal

Phase = Literal["connect", "first_byte", "token"]

_ID_CHARACTERS: Final = 6  # of the end of an id, which names it anywhere: its beginning is the time

_WITHOUT_THINKING: Final = "Ask without: /thinking auto in the app, --think auto on the command line."
CHOOSE_ANOTHER: Final = "Choose another: ctrl+l or /model NAME in the app, -m NAME on the command line."


class RuneError(Exception):
    """Base of all errors raised on purpose.

    `hint` is one sentence that says what a person can do; empty when there is nothing to say.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def in_one_line(self) -> str:
        """Message and hint as sentences behind one another."""
        return f"{self.message.removesuffix('.')}. {self.hint}" if self.hint else self.message


class UsageError(RuneError):
    """What was asked for cannot be asked for: a wrong flag, binary on stdin, an unknown command."""


class ConfigError(RuneError):
    """A configuration file that cannot be used. Carries `file`, `line` (1-based, 0 unknown), `key`."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, key: str = "", hint: str = "") -> None:
        where = f"{file}:{line}: " if line else f"{file}: " if file else ""
        super().__init__(f"{where}{message}", hint=hint)
        self.file = file
        self.line = line
        self.key = key


class StorageError(RuneError):
    """Base of everything that goes wrong with what is stored."""


class LeaseHeldError(StorageError):
    """Another process holds this conversation. `since` is RFC 3339, "" when unknown; `pid` is 0 when unknown.

    The message gives the time as the person's own clock shows it, with the date unless that is today.
    """

    def __init__(self, conversation_id: str, *, pid: int, since: str) -> None:
        when = _on_the_clock(since)
        known = [f"process {pid}" if pid else "", f"since {when}" if when else ""]
        facts = ", ".join(fact for fact in known if fact)
        super().__init__(
            f"this conversation is open in another Rune{f' ({facts})' if facts else ''}",
            hint=f"Close it there, or go on in a fork: `rune sessions fork {conversation_id[-_ID_CHARACTERS:]}`.",
        )
        self.conversation_id = conversation_id
        self.pid = pid
        self.since = since


class SlotHeldError(LeaseHeldError):
    """Another process appends to a slot whose lines are to be changed; `pid` and `since` as in LeaseHeldError."""

    def __init__(self, writer: str, *, pid: int, since: str) -> None:
        super().__init__("", pid=pid, since=since)
        who = self.message.partition("open in ")[2]
        self.message = f"part of it lies in a file of the journal that {who} writes ({writer})"
        self.hint = "Close it, then run this again. Nothing was changed."
        self.args = (self.message,)


class InvalidRecordError(StorageError):
    """A value does not fit its record: names `field`, what was `expected`, what was there (`got`)."""

    def __init__(self, record: str, *, field: str, expected: str, got: str) -> None:
        super().__init__(f"{record}: {field}: expected {expected}, got {got}")
        self.record = record
        self.field = field
        self.expected = expected
        self.got = got


class NotFoundError(StorageError):
    """Nothing is stored under that id."""


class StorageUnavailableError(StorageError):
    """Nothing can be written now: disk full, read-only, no permission, or a sync that failed."""


class ViewsStoppedError(StorageUnavailableError):
    """Bringing the views up to date was called off. What was applied stays; the next start goes on from there."""


class PartUnreadableError(StorageError):
    """Part of the journal cannot be understood. The rest is read, and nothing may be written beside it."""


class CorruptJournalError(PartUnreadableError):
    """Damage that is not a torn tail. `line` is 1-based, `byte` the offset of that line."""

    def __init__(self, reason: str, *, file: str, line: int, byte: int) -> None:
        super().__init__(
            f"{file}, line {line}, byte {byte}: {reason}",
            hint="Nothing was changed. `rune doctor` shows what is intact, `rune doctor --mend` sets the damage aside.",
        )
        self.reason = reason
        self.file = file
        self.line = line
        self.byte = byte


class NewerFormatError(PartUnreadableError):
    """Part of the journal has a format that only a later Rune knows. Nothing may be written beside it."""


class UnmigratedDialectError(PartUnreadableError):
    """A journal of another program or of an earlier design."""


class DamagedLineError(StorageError):
    """A line of the journal that does not verify by itself. Stays inside the store."""


class JournalMovedError(StorageError):
    """A segment is gone, shorter or another one than when a place in it was noted."""


class DamagedViewsError(StorageError):
    """Something else changed the file of the views. Stays inside the store, which makes it anew."""


class EvidenceTamperedError(StorageError):
    """A blob's content no longer has the hash under which it is kept."""


class UnstorableValueError(StorageError):
    """The value would not read back equal to what was written."""


class IdentityCollisionError(StorageError):
    """The same id was used for two different contents."""


class ModelError(RuneError):
    """A model call that did not end complete."""


class StreamBrokenError(ModelError):
    """The stream ended without proof of completeness; what came is kept and marked incomplete."""


class ServerError(ModelError):
    """The model server reports an error. `status` is 0 for one inside a running stream."""

    def __init__(self, text: str, *, status: int, phase: Phase, hint: str = "") -> None:
        what = f"the model server answered {status}" if status else "the model server failed in mid-answer"
        super().__init__(f"{what}: {text}" if text else what, hint=hint)
        self.status = status
        self.text = text
        self.phase = phase


class ProtocolError(ModelError):
    """Something that is not the protocol. `line` is 1-based, 0 when it is not about a line."""

    def __init__(self, reason: str, *, line: int = 0, hint: str = "") -> None:
        super().__init__(f"line {line}: {reason}" if line else reason, hint=hint)
        self.line = line
        self.reason = reason


class ModelTimeoutError(ModelError):
    """Nothing came for too long. `phase` says whether before or after the first byte."""

    def __init__(self, message: str, *, phase: Phase, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.phase = phase


class CallCancelledError(ModelError):
    """The server called this call off (a worker asked to stop, HTTP 499)."""


class ContextTruncatedError(ModelError):
    """The prompt was or would have been cut. Token counts; None where the server gave no number."""

    def __init__(self, message: str, *, estimated: int | None, served: int | None, window: int | None) -> None:
        super().__init__(message, hint="Start a new conversation, or ask with less text.")
        self.estimated = estimated
        self.served = served
        self.window = window


class EmptyOutputError(ModelError):
    """`generated` tokens were counted, and neither text nor thinking nor a call arrived."""

    def __init__(self, *, generated: int | None) -> None:
        message = "the model ended without any output"
        if generated:
            message += (
                f" ({generated} tokens generated): its server passed none of them on, most likely because they were a "
                "tool call that it could not read"
            )
        super().__init__(message, hint="Ask again in other words, or choose another model.")
        self.generated = generated


class UnusableCallError(ModelError):
    """The model asked for `tool` ("" when it cannot be told) in a way that cannot be used; `reason` says why."""

    def __init__(self, tool: str, reason: str, arguments: dict[str, Any] | None = None) -> None:
        what = f"the model's call of {tool!r}" if tool else "what the model wrote as a call of a tool"
        first = reason.partition("\n")[0]  # a person is not shown the schema that follows
        super().__init__(f"{what} cannot be used: {first}", hint=CHOOSE_ANOTHER)
        self.tool, self.reason, self.arguments = tool, reason, arguments or {}


class CapabilityMissingError(ModelError):
    """The model cannot do what was asked of it."""

    def __init__(self, model: str, capability: Literal["chat", "tools", "thinking", "vision", "embedding"]) -> None:
        hint = f"{_WITHOUT_THINKING} {CHOOSE_ANOTHER}" if capability == "thinking" else CHOOSE_ANOTHER
        super().__init__(f"{model} does not support {capability}", hint=hint)
        self.model = model
        self.capability = capability


class ModelNotFoundError(ModelError):
    """The server runs but does not have that model."""


class BusyError(ModelError):
    """The server's queue is full. `retry_after` is when it says to try again, in seconds; None: it does not."""

    retry_after: float | None = None


class ModelUnavailableError(ModelError):
    """Nobody answers at the server's address, or no model can be used at all."""


class RemoteRefusedError(ModelError):
    """The model or its server is not on this machine and `local_only` is on."""


class ContextOverflowError(RuneError):
    """Mandatory blocks do not fit. `blocks` are (name, tokens); all numbers are estimated tokens."""

    def __init__(self, *, blocks: tuple[tuple[str, int], ...], budget: int, window: int) -> None:
        total = sum(tokens for _, tokens in blocks)
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in blocks)
        super().__init__(
            f"the prompt needs {total:,} tokens ({parts}) and the budget is {budget:,} of a window of {window:,}",
            hint="Send less text at once, or use a model with a larger window. Nothing was sent.",
        )
        self.blocks = blocks
        self.budget = budget
        self.window = window
        self.total = total


class WindowTooSmallError(RuneError):
    """No conversation fits this window. `window` and `needed` in tokens."""

    def __init__(self, *, window: int, needed: int) -> None:
        super().__init__(
            f"a window of {window:,} tokens is too small: a conversation needs at least {needed:,}",
            hint="Use a model with a larger window, or raise `context.max_context`. Nothing was sent.",
        )
        self.window = window
        self.needed = needed


class CancelledEarlyError(RuneError):
    """The turn was cancelled before it was opened: nothing of it is stored."""


class ToolError(RuneError):
    """Base of what goes wrong with a tool. `retryable`: the model may try again with other arguments."""

    def __init__(self, message: str, *, retryable: bool = True, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retryable = retryable


class AccessDeniedError(ToolError):
    """Outside the folders that may be read or written."""


class FileUnavailableError(ToolError):
    """A file or folder that may be used and cannot: not there, of another kind, too large, no room to write."""


class DigestMismatchError(ToolError):
    """What was approved is not what would run now."""


class ToolTimeoutError(ToolError):
    """The tool was stopped because it took too long."""


class CommandNotStartedError(ToolError):
    """A command's program could not be run, or the folder to run it in not be entered."""


class UnknownToolError(ToolError):
    """The model named a tool that was not offered."""


class InvalidArgumentsError(ToolError):
    """Arguments do not fit the tool's schema."""


class IllegalTaskTransitionError(RuneError):
    """A task cannot go from `current` to `wanted`; `legal` are the states it can go to."""

    def __init__(self, task_id: str, *, current: str, wanted: str, legal: tuple[str, ...]) -> None:
        allowed = ", ".join(legal) or "none: it has ended"
        super().__init__(f"task {task_id} is {current} and cannot become {wanted} (legal: {allowed})")
        self.task_id = task_id
        self.current = current
        self.wanted = wanted
        self.legal = legal


class AlreadyDecidedError(RuneError):
    """The approval was answered before; the first answer holds."""


def _on_the_clock(moment: str) -> str:
    """Return RFC 3339 in local time, to the minute; "" when it cannot be read."""
    try:
        local = datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError):
        return ""
    today = datetime.now(UTC).astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"
