"""How a turn ended, in words that are true of what became of its answer."""

from typing import Final

from rune.records.turns import StopReason
from rune.tui.transcript_state import Ending

_ENDINGS: Final = {
    StopReason.ANSWERED: "answered",
    StopReason.LENGTH: "stopped at the length limit",
    StopReason.INCOMPLETE: "the answer broke off",
    StopReason.PAUSED: "waiting for you",
    StopReason.STEP_LIMIT: "stopped at the limit of steps",
    StopReason.LOOP: "stopped: it did the same again and again",
    StopReason.CONTEXT_EXHAUSTED: "stopped: the context window is full",
    StopReason.FAILED: "failed",
    StopReason.BUG: "failed by a fault of Rune's own",
    StopReason.CANCELLED: "cancelled",
    StopReason.INTERRUPTED: "interrupted when Rune was ended",
}
_KEPT: Final = "; what came is kept"
_UNKEPT: Final = "; what came stands only here, and is gone when Rune is left"
# What else is said where something came, and where nothing is left of what may have come.
_LEFT: Final = {
    StopReason.LENGTH: (_KEPT, ""),
    StopReason.INCOMPLETE: (_KEPT, ""),
    StopReason.FAILED: (_KEPT, ""),
    StopReason.BUG: (_KEPT, ""),
    StopReason.CANCELLED: (_KEPT, ""),
    StopReason.INTERRUPTED: (_KEPT, "; what was being written is lost"),
}


def ending_words(ending: Ending) -> str:
    """Return how it ended, why, whether anything of an answer is left, and what may have run; may hold foreign text."""
    kept, lost = _LEFT.get(ending.reason, ("", ""))
    if kept and ending.text and _is_unsaved(ending.text):
        kept = _UNKEPT
    why = f": {ending.text}" if ending.text else ""
    ran = "".join(f"; may have run: {effect}" for effect in ending.may_have_run)
    return f"{_ENDINGS[ending.reason]}{why}{kept if ending.kept else lost}{ran}"


def _is_unsaved(error: str) -> bool:
    from rune.turn.bounds import UNSAVED  # noqa: PLC0415 - only a failure needs it, the first picture does not wait

    return error.startswith(UNSAVED)
