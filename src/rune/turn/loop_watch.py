"""Whether a turn goes in circles: calls and their results in, a decision out. Pure (tools.md, The loop).

Two counts. Failures in a row: the same tool with the same arguments; other arguments start anew, a success clears.
Circles: the same call with the same result, or up to three calls in turn, three times. A change of a file clears both,
for the same test may well fail again after an edit.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rune.records.tools import Outcome, ToolCall
from rune.tools.prepare import key_of

MOST_FAILURES: Final = 2
_TIMES: Final = 3
_LONGEST: Final = 3
_WHY: Final = 160


class Nudge(msgspec.Struct, frozen=True):
    """The model is told, once."""

    text: str


class Circling(msgspec.Struct, frozen=True):
    """The turn ends."""

    text: str


class LoopWatch:
    """What is remembered of a turn's calls; `failures`, `recent` and `nudged` go into its LoopState."""

    def __init__(
        self, failures: Mapping[str, int] | None = None, recent: Sequence[str] = (), *, nudged: bool = False
    ) -> None:
        self.failures = dict(failures or {})
        self.recent = list(recent)
        self.nudged = nudged

    def note(
        self, call: ToolCall, outcome: Outcome, text: str, *, failed: bool, changed: bool
    ) -> Nudge | Circling | None:
        """Take in what a call came to, and decide; None: go on. `failed`: the call itself, not the command that it
        ran; `changed`: a file.
        """
        key = key_of(call)
        if changed:
            self.failures.clear()
            self.recent.clear()
            return None
        known = self.failures.get(_named(call, key), 0)
        self.failures = {name: count for name, count in self.failures.items() if not name.startswith(f"{call.name} ")}
        if failed:
            self.failures[_named(call, key)] = known + 1
            if known + 1 >= MOST_FAILURES:
                why = text.split("\n", 1)[0]
                why = why if len(why) <= _WHY else f"{why[: _WHY - 1]}…"
                return Circling(f"{call.name} failed {MOST_FAILURES} consecutive times with identical arguments: {why}")
        result = hashlib.sha256(f"{outcome}\n{text}".encode()).hexdigest()[:16]
        self.recent = [*self.recent, f"{key.removeprefix('sha256:')[:16]}.{result}"][-_TIMES * _LONGEST :]

        return self._circling()

    def _circling(self) -> Nudge | Circling | None:
        length = self._circle()
        if not length:
            return None
        what = "the same call was made" if length == 1 else f"the same {length} calls were made in turn"
        if self.nudged:
            return Circling(f"{what} again and again, with the same result each time")
        self.nudged = True
        return Nudge(f"[{what} {_TIMES} times with the same result. Do something else, or give your answer.]")

    def _circle(self) -> int:
        """Return how many calls make the circle at the end of what was done; 0 for none."""
        for length in range(1, _LONGEST + 1):
            newest = self.recent[-length * _TIMES :]
            if len(newest) == length * _TIMES and newest == newest[:length] * _TIMES:
                return length
        return 0


def _named(call: ToolCall, key: str) -> str:
    return f"{call.name} {key}"
