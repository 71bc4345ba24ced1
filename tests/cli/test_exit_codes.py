"""Each end of a turn, and each error before one, has one number."""

import pytest

from rune import errors
from rune.cli.exit_codes import MEANINGS, ExitCode, of_error, of_turn
from rune.records.turns import StopReason


@pytest.mark.parametrize("reason", StopReason)
def test_every_reason_has_a_code_that_help_explains(reason: StopReason) -> None:
    code = of_turn(reason, "")
    assert f"\n  {code.value:<5}" in MEANINGS
    assert (code is ExitCode.DONE) == (reason is StopReason.ANSWERED)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("x"), 2),
        (errors.ConfigError("x"), 2),
        (errors.LeaseHeldError("cnv_1", pid=1, since=""), 75),
        (errors.BusyError("x"), 75),
        (errors.ModelUnavailableError("x"), 4),
        (errors.ModelNotFoundError("x"), 4),
        (errors.RemoteRefusedError("x"), 4),
        (errors.CapabilityMissingError("m", "chat"), 4),
        (errors.CancelledEarlyError("x"), 130),
        (errors.StorageUnavailableError("x"), 1),
        (errors.CorruptJournalError("x", file="f", line=1, byte=0), 1),
    ],
)
def test_an_error_has_the_same_code_before_and_in_a_turn(error: errors.RuneError, code: int) -> None:
    assert of_error(error) == code
    assert of_turn(StopReason.FAILED, type(error).__name__) == code
