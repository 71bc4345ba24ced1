"""The entry point: `python -m rune`, and the script `rune`."""

import os
import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        return _main()
    except KeyboardInterrupt:
        return INTERRUPTED


def _main() -> int:
    from rune.cli.descriptors import fill_closed, print_line, settle

    closed = fill_closed()  # before any file is opened: it would get a standard stream's number
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        # Answered before anything else is imported: shells and editors ask for it often.
        from rune.version import __version__

        return print_line(f"rune {__version__}", closed)
    from rune.cli.first_frame import FirstFrame, can_show, opens_app
    from rune.cli.loading import Loading
    from rune.cli.signals import HeldBack, ignore_signals, raise_on_signals

    raise_on_signals()
    frame = FirstFrame()
    try:
        if opens_app(arguments) and can_show(os.environ):
            frame.show(os.environ)  # before anything else is imported: the rest takes a while
        with HeldBack(), Loading():
            from rune.cli.main import run

        return run(arguments, closed, frame)
    finally:
        ignore_signals()
        frame.restore()
        settle()


if __name__ == "__main__":
    sys.exit(main())
