"""What can be said on the command line."""

import argparse
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from rune.cli.exit_codes import MEANINGS
from rune.cli.first_frame import opens_app
from rune.errors import UsageError

MESSAGE_LIMIT = 300

_DESCRIPTION = """A local-first assistant in the terminal.

  rune                               the app; with -c or -r it goes on with a conversation
  rune -p "Name three rivers"        answer on stdout
  git diff | rune -p "Review this"   with what is piped in
  rune -c -p "And one in Asia"       go on with the newest conversation of this folder
  rune -p "/help"                    a slash command
  rune approve                       what waits for your answer"""


class HelpAskedError(Exception):
    """The help was asked for; `text` is it."""

    def __init__(self, text: str) -> None:
        super().__init__("the help was asked for")
        self.text = text


_UNKNOWN = re.compile(r"argument [A-Z]+: invalid choice: (.*) \(choose from (.*)\)", re.DOTALL)
_NAME = re.compile(r"[a-z-]+")
_WORD = 60  # characters of what was typed that are looked at


class _Parser(argparse.ArgumentParser):
    """Says what it has to say by raising: who runs it owns the streams."""

    more_help: Callable[[], str] | None = None
    """What stands below the help: made only where it is shown."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401  # what argparse itself hands on to its subcommands
        super().__init__(**given)
        # What was asked for knows whose it is: the innermost parser's.
        self.set_defaults(prog=self.prog)

    def print_help(self, file: object = None) -> NoReturn:
        del file
        if self.more_help is not None:
            self.epilog = self.more_help()
        raise HelpAskedError(self.format_help().rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        if found := _UNKNOWN.match(message):
            self._unknown(found[1], _NAME.findall(found[2]))
        raise UsageError(_short(message), hint=_how_used(self.prog))

    def _unknown(self, typed: str, names: Sequence[str]) -> NoReturn:
        """Refuse a word that is no subcommand: `names` are those. `typed` is in quotes."""
        near = get_close_matches(typed.strip("'\"").lower()[:_WORD], names, n=1)
        if near:
            hint = f"Did you mean `{self.prog} {near[0]}`? `{self.prog} --help` shows the rest."
        elif " " in self.prog:
            hint = f"There are {', '.join(names)}; `{self.prog} --help` says more."
        else:
            hint = f'To ask something: {self.prog} -p "..."; `{self.prog} --help` shows the rest.'
        raise UsageError(_short(f"`{self.prog}` has no command {typed}"), hint=hint)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what was asked for. Raises UsageError, and HelpAskedError for `--help`."""
    # The app has no command: the parsers of two dozen of them are left out, 3 ms of the time until it stands.
    options, rest = _parser(with_commands=not opens_app(arguments)).parse_known_args(arguments)
    if rest:
        # Whichever parser was the innermost, it is its help that says what there is.
        raise UsageError(_short(f"unrecognized arguments: {' '.join(rest)}"), hint=_how_used(options.prog))
    return options


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 3] + "..."


def _how_used(prog: str) -> str:
    return f"`{prog} --help` shows how it is used."


def _event_types() -> str:
    from rune.records.events import EVENT_KINDS

    return f"The types: {', '.join(sorted(EVENT_KINDS))}"


def _parser(*, with_commands: bool) -> _Parser:
    root = _Parser(
        prog="rune",
        description=_DESCRIPTION,
        epilog=MEANINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("-V", "--version", action="store_true", help="print the version")
    root.add_argument(
        "-p", "--print", dest="prompt", nargs="?", const="", metavar="TEXT", help="answer TEXT (and stdin)"
    )
    root.add_argument(
        "-c", "--continue", dest="carry_on", action="store_true", help="continue the newest conversation here"
    )
    root.add_argument("-r", "--resume", metavar="ID", help="continue this conversation (the end of an id will do)")
    root.add_argument("-m", "--model", help="the model to ask")
    root.add_argument(
        "--think",
        choices=("auto", "off", "on", "low", "medium", "high"),
        help="how much the model thinks before it answers; the conversation keeps it",
    )
    root.add_argument(
        "--permission",
        choices=("ask", "edits", "read"),
        help="what tools may do without asking (edits: change files here); the conversation keeps it",
    )
    root.add_argument("--max-steps", type=_number(1, 200), metavar="N", help="at most N model calls (1 to 200)")
    root.add_argument("--channel", choices=("task", "chat"), default="task", help="which of the two conversations")
    root.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    if with_commands:
        _add_commands(root)
    else:
        root.set_defaults(command=None)
    return root


def _add_commands(root: _Parser) -> None:
    commands = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    _add_sessions(commands.add_parser("sessions", help="list, show, search, export, fork conversations ..."))

    _add_approve(commands.add_parser("approve", help="what waits for your answer; answer it and go on"))

    trace = commands.add_parser("trace", help="what the model saw")
    trace.add_argument(
        "--show", metavar="ID", help="rebuild the prompt of this trace and check it ('last': the newest)"
    )
    trace.add_argument("--limit", type=_number(1, 100_000), default=20, metavar="N", help="at most N (1 to 100,000)")
    trace.add_argument("--json", action="store_true")

    events = commands.add_parser("events", help="what happened, from the journal")
    events.add_argument("--type", action="append", default=[], metavar="NAME", help="only these; may be given again")
    events.add_argument("--limit", type=_number(1, 100_000), default=50, metavar="N", help="at most N (1 to 100,000)")
    events.add_argument("-f", "--follow", action="store_true", help="go on with what happens from now on, until Ctrl-C")
    events.add_argument("--json", action="store_true", help="one JSON object a line")
    events.more_help = _event_types

    _add_models(commands.add_parser("models", help="list, show, fetch, remove, measure models"))

    doctor = commands.add_parser("doctor", help="check each part for real")
    doctor.add_argument("--json", action="store_true")
    doctor.add_argument("--mend", action="store_true", help="also mend what can be mended; damage is kept beside it")

    _add_erase(commands.add_parser("erase", help="erase messages or whole conversations for good"))
    _add_import(commands.add_parser("import", help="bring in what an earlier version kept"))

    canary = commands.add_parser("canary", help="check Rune's claims on this machine")
    canary.add_argument("name", nargs="?", help="only this one")


def _add_approve(parser: argparse.ArgumentParser) -> None:
    parser.description = "Lists what waits for an answer; with an ID answers it, and goes on as `rune -p` does."
    parser.add_argument("id", nargs="?", help="apr_... (the end of an id will do)")
    parser.add_argument("--no", action="store_true", help="refuse; the task goes on without it")
    parser.add_argument("--because", metavar="TEXT", help="with --no: what the model is told")
    parser.add_argument("--always", action="store_true", help="allow, and from now on without asking (--show: what)")
    parser.add_argument("--show", action="store_true", help="answer nothing: show all of what would be done")
    parser.add_argument("--json", action="store_const", dest="output_format", const="json", default=argparse.SUPPRESS)
    parser.add_argument("--output-format", choices=("text", "json", "stream-json"), default=argparse.SUPPRESS)


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    sessions = parser.add_subparsers(dest="action", metavar="ACTION")
    parser.set_defaults(action="list", all=False, hidden=False, limit=20, json=False)
    listing = sessions.add_parser("list", help="the newest first (without an ACTION too)")
    # Said before the action they count as well: hence no defaults of its own behind it.
    for place in (parser, listing):
        place.add_argument(
            "--all",
            action="store_true",
            default=argparse.SUPPRESS,
            help="of every folder, not only this one; also those without a message",
        )
        place.add_argument(
            "--hidden", action="store_true", default=argparse.SUPPRESS, help="also those that were hidden"
        )
        place.add_argument(
            "--limit",
            type=_number(1, 100_000),
            default=argparse.SUPPRESS,
            metavar="N",
            help="at most N (1 to 100,000)",
        )
        place.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    showing = sessions.add_parser("show", help="its messages")
    showing.add_argument("id")
    showing.add_argument("--json", action="store_true")
    searching = sessions.add_parser("search", help="find messages in all past conversations")
    searching.add_argument("text", nargs="+", help='words that all occur; "quoted words" occur together')
    searching.add_argument("--here", action="store_true", help="only conversations of this folder")
    searching.add_argument("--limit", type=_number(1, 1_000), default=20, metavar="N", help="at most N (1 to 1,000)")
    searching.add_argument("--json", action="store_true")
    exporting = sessions.add_parser("export", help="write it as Markdown or JSON")
    exporting.add_argument("id")
    exporting.add_argument(
        "--format", choices=("markdown", "json"), help="JSON for a FILE that ends in .json, else Markdown"
    )
    exporting.add_argument("-o", "--output", metavar="FILE", help="into this new file instead of stdout")
    renaming = sessions.add_parser("rename", help="give it another title")
    renaming.add_argument("id")
    renaming.add_argument("title", nargs="+")
    forking = sessions.add_parser("fork", help="branch off a conversation; the original stays as it is")
    forking.add_argument("id")
    forking.add_argument("--at", metavar="MESSAGE", help="the last message that both have; without it the newest")
    for name, help_text in (("hide", "list it no longer; nothing is deleted"), ("unhide", "list it again")):
        sessions.add_parser(name, help=help_text).add_argument("id")


def _add_models(parser: argparse.ArgumentParser) -> None:
    # Said before the action it counts as well: hence no default of its own behind it.
    parser.add_argument("--json", action="store_true")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    parser.set_defaults(action="list")
    listing = actions.add_parser("list", help="what is there, what is loaded, how each acts (without an ACTION too)")
    showing = actions.add_parser("show", help="everything about one")
    pulling = actions.add_parser("pull", help="have its server fetch one; Ctrl-C stops, the next pull goes on")
    removing = actions.add_parser("rm", help="remove one from its server's disk; does not ask")
    probing = actions.add_parser("probe", help="measure how it acts better, natively or constrained, and keep that")
    for named in (showing, pulling, removing, probing):
        named.add_argument("name", metavar="NAME")
    probing.add_argument(
        "--protocol",
        choices=("native", "constrained", "auto"),
        help="measure nothing: use this one from now on; auto: what was measured, else a guess",
    )
    fetching = actions.add_parser("fetch-embedded", help="fetch the small built-in model (98 MB, once)")
    for each in (listing, showing, pulling, removing, probing, fetching):
        each.add_argument("--json", action="store_true", default=argparse.SUPPRESS)


def _add_erase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", help="a conversation (cnv_...), a message (msg_...) or an event (evt_...)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true")


def _add_import(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="action", required=True, metavar="KIND")
    for name, help_text in (
        ("events", "an older journal, JSON lines"),
        ("operator", "a JSON list of tasks"),
        ("pins", "an SQLite file with a wing of pins"),
    ):
        kind = kinds.add_parser(name, help=help_text)
        kind.add_argument("file")
        kind.add_argument("--json", action="store_true")


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        # Its length first: int() refuses what is very long in an own way.
        if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from {least} to {most:,}")

    return number
