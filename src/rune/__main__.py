"""The entry point: `python -m rune`, and the script `rune`."""

import sys


def main() -> int:
    """Run the command line; returns the exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        # Answered before anything else is imported: shells and editors ask for it often.
        from rune.version import __version__

        sys.stdout.write(f"rune {__version__}\n")
        return 0
    try:
        from rune.cli.main import run

        return run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        from rune.cli.output import give_up_stdout

        give_up_stdout()
        return 1


if __name__ == "__main__":
    sys.exit(main())
