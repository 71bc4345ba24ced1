"""Slash commands that only an app can answer: /copy, /theme, /keys, /exit."""

from collections.abc import Callable, Sequence
from typing import Final

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.tui.transcript_state import Answer, Transcript

KEYS: Final = (
    ("enter", "send; alone: send what was held back"),
    ("ctrl+j, alt+enter, shift+enter", "a new line"),
    ("up, down", "earlier messages, on an empty or one-line prompt"),
    ("ctrl+r", "search earlier messages"),
    ("tab", "take what is offered for a /command"),
    ("esc", "take back what waits, else stop the turn, else what f8 stops"),
    ("pageup, pagedown", "scroll the conversation"),
    ("ctrl+home, ctrl+end", "its beginning, its end"),
    ("ctrl+t", "open or fold what is folded in view: thinking, long texts"),
    ("ctrl+o", "open or fold what tools did: output, diffs"),
    ("shift+tab", "what tools may do: ask, edits, read"),
    ("y, n, e, a with enter", "answer what waits for you; tab: to the prompt and back"),
    ("!", "first in an empty prompt: a shell command, run as you"),
    ("ctrl+y", "copy what is selected, else the newest answer"),
    ("f5", "copy the lowest code block in view"),
    ("ctrl+l", "choose a model, fetch, see or remove one"),
    ("f3, ctrl+1 and f4, ctrl+2", "the task, the chat"),
    ("f2", "whether this folder's files may instruct"),
    ("f6", "a fork of what another Rune has open"),
    ("f8", "stop fetching or measuring a model"),
    ("ctrl+z, alt+z", "undo, redo in the prompt"),
    ("ctrl+c", "clear the prompt; when it is empty: stop the turn, else (twice) leave"),
    ("ctrl+d", "leave, on an empty prompt"),
    ("f1", "the commands and this list"),
)


class CopyCommand:
    """Copies an answer as its source."""

    name = "copy"
    usage = "/copy [N|code]"
    summary = "copy the newest answer, the Nth newest, or the newest code block, as it was written"

    def __init__(self, transcript: Callable[[], Transcript], copy: Callable[[str], None]) -> None:
        self._transcript = transcript
        self._copy = copy

    async def run(self, call: CommandCall) -> CommandResult:
        """Copy. Raises UsageError when there is nothing to copy."""
        answers = [entry.text for entry in self._transcript().entries if isinstance(entry, Answer)]
        match call.argument:
            case "code":
                found = next((code for text in reversed(answers) if (code := last_code(text)) is not None), None)
                if found is None:
                    raise UsageError("no answer here has a code block")
            case "" | _ if call.argument == "" or (call.argument.isascii() and call.argument.isdecimal()):
                number = int(call.argument[:9] or "1")
                if not 1 <= number <= len(answers):
                    raise UsageError(f"there are {len(answers)} answers here", hint=f"Usage: {self.usage}")
                found = answers[-number]
            case _:
                raise wrong_usage(self, f"{call.argument!r} is neither a number nor 'code'")
        self._copy(found)
        lines = found.count("\n") + 1
        return CommandResult(text=f"copied {lines} line{'s' * (lines > 1)}", data={"characters": len(found)})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Offer the newest code block."""
        del call
        return (Completion(text="code", note="the newest code block"),)


def last_code(markdown: str) -> str | None:
    """Return what stands in the last closed fence of a text, None when there is none."""
    found, fence, lines = None, "", list[str]()
    for line in markdown.splitlines():
        mark = line.lstrip()
        if not fence and mark.startswith(("```", "~~~")):
            fence, lines = mark[: len(mark) - len(mark.lstrip(mark[0]))], []
        elif fence and mark.startswith(fence) and not mark.strip().strip(fence[0]):
            found, fence = "\n".join(lines), ""
        elif fence:
            lines.append(line)
    return found


class ThemeCommand:
    """Shows the themes, or changes to one."""

    name = "theme"
    usage = "/theme [NAME]"
    summary = "show the themes, or change to one; it is kept"

    def __init__(
        self, names: Callable[[], Sequence[str]], current: Callable[[], str], change: Callable[[str], None]
    ) -> None:
        self._names = names
        self._current = current
        self._change = change

    async def run(self, call: CommandCall) -> CommandResult:
        """List them, or change. Raises UsageError for an unknown one."""
        names = self._names()
        if call.argument:
            if call.argument not in names:
                raise UsageError(f"there is no theme {call.argument!r}", hint=f"There are: {', '.join(names)}.")
            self._change(call.argument)
            return CommandResult(text=f"theme {call.argument}", data={"theme": call.argument})
        lines = [f"{'*' if name == self._current() else ' '} {name}" for name in names]
        return CommandResult(text="\n".join(lines), data={"themes": list(names), "theme": self._current()})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Offer the names."""
        del call
        return tuple(Completion(text=name) for name in self._names())


class ExitCommand:
    """Leaves the app."""

    name = "exit"
    usage = "/exit"
    summary = "leave Rune; the conversation stays and can be resumed"

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave

    async def run(self, call: CommandCall) -> CommandResult:
        """Leave."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        self._leave()
        return CommandResult(text="", data={})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Offer nothing: it takes no argument."""
        del call
        return ()


class KeysCommand:
    """Shows what the keys do."""

    name = "keys"
    usage = "/keys"
    summary = "show what the keys do"

    async def run(self, call: CommandCall) -> CommandResult:
        """List them."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        width = max(len(keys) for keys, _ in KEYS)
        text = "\n".join(f"{keys.ljust(width)}  {does}" for keys, does in KEYS)
        return CommandResult(text=text, data={"keys": [{"keys": keys, "does": does} for keys, does in KEYS]})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Offer nothing: it takes no argument."""
        del call
        return ()
