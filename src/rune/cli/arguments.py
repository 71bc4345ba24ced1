"""What can be said on the command line."""

import argparse

from rune.cli.exit_codes import MEANINGS

_DESCRIPTION = """A local-first assistant in the terminal.

  rune -p "Name three rivers"        answer on stdout
  git diff | rune -p "Review this"   with what is piped in
  rune -c -p "And one in Asia"       go on with the newest conversation of this folder
  rune -p "/help"                    a slash command"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line; it exits with 2 on what it does not know."""
    root = argparse.ArgumentParser(
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
    root.add_argument("-r", "--resume", metavar="ID", help="continue this conversation (the start of an id will do)")
    root.add_argument("-m", "--model", help="the model to ask")
    root.add_argument("--max-steps", type=_steps, metavar="N", help="at most N model calls (1 to 200)")
    root.add_argument("--channel", choices=("task", "chat"), default="task", help="which of the two conversations")
    root.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    _add_commands(root)
    return root


def _add_commands(root: argparse.ArgumentParser) -> None:
    commands = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    sessions = commands.add_parser("sessions", help="list conversations, or show one").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    listing = sessions.add_parser("list", help="the newest first")
    listing.add_argument("--all", action="store_true", help="of every folder, not only this one")
    listing.add_argument("--limit", type=int, default=20)
    listing.add_argument("--json", action="store_true")
    showing = sessions.add_parser("show", help="its messages")
    showing.add_argument("id")
    showing.add_argument("--json", action="store_true")

    trace = commands.add_parser("trace", help="what the model saw")
    trace.add_argument(
        "--show", metavar="ID", help="rebuild the prompt of this trace and check it ('last': the newest)"
    )
    trace.add_argument("--limit", type=int, default=20)
    trace.add_argument("--json", action="store_true")

    events = commands.add_parser("events", help="what happened, from the journal")
    events.add_argument("--type", action="append", default=[], metavar="NAME", help="only these; may be given again")
    events.add_argument("--limit", type=int, default=50)
    events.add_argument("--json", action="store_true")

    models = commands.add_parser("models", help="models that can be used").add_subparsers(
        dest="action", required=True, metavar="ACTION"
    )
    models.add_parser("list", help="what is there").add_argument("--json", action="store_true")
    models.add_parser("fetch-embedded", help="fetch the small built-in model (98 MB, once)")

    doctor = commands.add_parser("doctor", help="check each part for real")
    doctor.add_argument("--json", action="store_true")

    canary = commands.add_parser("canary", help="check Rune's claims on this machine")
    canary.add_argument("name", nargs="?", help="only this one")


def _steps(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 200:  # noqa: PLR2004  # the range is named in the message
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 200")
    return int(text)
