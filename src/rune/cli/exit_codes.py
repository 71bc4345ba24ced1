"""What `rune` returns to a shell; also in `rune --help`."""

from enum import IntEnum

from rune.errors import (
    BusyError,
    CancelledEarlyError,
    CapabilityMissingError,
    ConfigError,
    LeaseHeldError,
    ModelNotFoundError,
    ModelUnavailableError,
    RemoteRefusedError,
    RuneError,
    UsageError,
)
from rune.records.turns import StopReason


class ExitCode(IntEnum):
    """One number a meaning (terminal.md, One shot)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    NO_MODEL = 4
    LIMIT = 5
    TRY_AGAIN = 75
    INTERRUPTED = 130


MEANINGS = """exit codes:
  0    done
  1    failed, or the answer broke off
  2    wrong usage, or a configuration that cannot be used
  3    waiting for your answer: rune approve
  4    no model
  5    a limit was reached (steps, length, window), or it went in circles
  75   busy or open elsewhere: try again
  130  interrupted"""

_BY_REASON = {
    StopReason.ANSWERED: ExitCode.DONE,
    StopReason.LENGTH: ExitCode.LIMIT,
    StopReason.INCOMPLETE: ExitCode.FAILED,
    StopReason.PAUSED: ExitCode.WAITING,
    StopReason.STEP_LIMIT: ExitCode.LIMIT,
    StopReason.LOOP: ExitCode.LIMIT,
    StopReason.CONTEXT_EXHAUSTED: ExitCode.LIMIT,
    StopReason.FAILED: ExitCode.FAILED,
    StopReason.BUG: ExitCode.FAILED,
    StopReason.CANCELLED: ExitCode.INTERRUPTED,
    StopReason.INTERRUPTED: ExitCode.INTERRUPTED,
}

_BY_ERROR: tuple[tuple[type[RuneError], ExitCode], ...] = (
    (CancelledEarlyError, ExitCode.INTERRUPTED),
    (UsageError, ExitCode.USAGE),
    (ConfigError, ExitCode.USAGE),
    (LeaseHeldError, ExitCode.TRY_AGAIN),
    (BusyError, ExitCode.TRY_AGAIN),
    (ModelUnavailableError, ExitCode.NO_MODEL),
    (ModelNotFoundError, ExitCode.NO_MODEL),
    (RemoteRefusedError, ExitCode.NO_MODEL),
    (CapabilityMissingError, ExitCode.NO_MODEL),
)


def of_error(error: RuneError) -> ExitCode:
    """Return the code of a failure before a turn."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.FAILED)


def of_turn(reason: StopReason, error_type: str) -> ExitCode:
    """Return the code of a turn's end; a failed one is told apart by its error's class name."""
    if reason is StopReason.FAILED:
        return next((code for kind, code in _BY_ERROR if kind.__name__ == error_type), ExitCode.FAILED)
    return _BY_REASON[reason]
