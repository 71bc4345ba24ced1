"""What a paste becomes in a prompt, and how one is known that comes as keys.

A terminal that knows bracketed paste says what was pasted. From one that does not, and from a tool that types, the
same bytes come as keys, faster than anyone types. The rule for such a burst:

- one line, with or without Enter (or Tab) at its very end, counts as typed: it may be a command, and that Enter
  sends it. This is what `tmux send-keys '/help' Enter` does in one write.
- an Enter with more text behind it within the burst is a line end, and the burst a paste. No Enter in a paste
  sends, not even its last one: what a person did not mean to send cannot be taken back.
- a burst that begins with `!` is a paste too: a shell command is typed by hand.
- an Enter that comes by itself sends at once, unless more was read behind it already: then what follows says what
  it was. Times are those at which keys were read, so that it makes no difference how late they are looked at.
- a burst just behind a paste is the rest of that paste, which came haltingly; only an Enter all by itself is none.

So an Enter within a burst waits until it is known what comes behind it. Where a slow line delivers in one piece what
was typed by hand, Enter and more behind it, that is taken for a paste too: it is there, and only not sent.
"""

from typing import Final

import msgspec

BLOCK_LINES: Final = 6
BLOCK_CHARACTERS: Final = 1_000
# From here on an editor needs longer for one key than a person should wait.
_HEAVY_LINE, _HEAVY_TEXT = 5_000, 20_000

# Keys further apart than this are no burst. Within one read they are microseconds apart, and a few milliseconds where
# the reading thread waits for its turn; two keys of a fast typist are 30 ms apart, seldom 15.
GAP_SECONDS: Final = 0.012
# Once a burst is surely one it may falter, where the machine is busy or the line slow: the more of it there was, the
# longer, for so much the surer is it that more comes.
FALTER_SECONDS: Final = 0.1
_FALTER_SECONDS_A_KEY: Final = 0.0005
_LONGEST_FALTER_SECONDS: Final = 0.5
# How long an Enter that follows a few quick keys waits for more.
HOLD_SECONDS: Final = 0.03
# A burst that begins so soon after a paste goes on with it, and an Enter waits a little longer there.
SEAM_SECONDS: Final = 1.0
SEAM_HOLD_SECONDS: Final = 0.15
# An Enter this soon behind so many quick keys comes from the program that typed them, and means just Enter.
QUICK_ENTER_SECONDS: Final = 0.2
_QUICK_KEYS: Final = 4
# So many keys of a burst appear as they come; a hand does not get that far.
BY_HAND: Final = 8

ENTER, TAB = "\r", "\t"


def normalised(text: str) -> str:
    """Return a text with each line end as a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_block(text: str) -> bool:
    """Say whether a pasted text is shown as one block."""
    return len(text) > BLOCK_CHARACTERS or lines_of(text) >= BLOCK_LINES


def is_heavy(text: str) -> bool:
    """Say whether a text is too large to be edited, wherever it comes from."""
    return len(text) > _HEAVY_TEXT or (len(text) > _HEAVY_LINE and max(map(len, text.split("\n"))) > _HEAVY_LINE)


def lines_of(text: str) -> int:
    """Return how many lines a text has; a line feed at its end begins no other one."""
    return text.removesuffix("\n").count("\n") + 1


def block_label(text: str) -> str:
    """Return what stands for a block."""
    lines = lines_of(text)
    return f"[Pasted {lines:,} lines]" if lines > 1 else f"[Pasted {len(text):,} characters]"


class Burst(msgspec.Struct, frozen=True):
    """Keys that came faster than a hand types, at their end.

    `shown` was put into the prompt as it came, `held` was not; both as one text when it is `pasted`. `key` is the
    ENTER or TAB at its end that counts as that key, "" for none. `goes_on`: it is the rest of the paste before it.
    """

    shown: str
    held: str
    pasted: bool
    key: str = ""
    goes_on: bool = False

    @property
    def text(self) -> str:
        """All of it."""
        return normalised(self.shown + self.held)


class Bursts:
    """Tells bursts from typing by the times at which keys came, in seconds of one clock."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._began = float("-inf")
        self._paste_end = float("-inf")
        self._quick = 0
        self._shown = ""
        self._held: list[str] = []

    @property
    def holds(self) -> bool:
        """Whether keys are held back; `end` gives them."""
        return bool(self._held)

    @property
    def held(self) -> str:
        """What is held back, a key at its end included."""
        return normalised("".join(self._held))

    @property
    def shows(self) -> bool:
        """Whether keys of the burst so far were put into the text as they came."""
        return bool(self._shown)

    @property
    def last(self) -> float:
        """When the last key came."""
        return self._last

    @property
    def patience(self) -> float:
        """How many seconds to wait for more before `end`."""
        if not self._is_sure:
            return SEAM_HOLD_SECONDS if self._is_seam(self._began) else HOLD_SECONDS
        return min(FALTER_SECONDS + _FALTER_SECONDS_A_KEY * self._length, _LONGEST_FALTER_SECONDS)

    @property
    def _length(self) -> int:
        return len(self._shown) + len(self._held)

    @property
    def _is_sure(self) -> bool:
        return self._length >= BY_HAND

    def is_over(self, at: float) -> bool:
        """Say whether a key that came at `at` is not part of the burst so far."""
        return not 0 <= at - self._last <= (self.patience if self._is_sure else GAP_SECONDS)

    def flows(self, at: float) -> bool:
        """Say whether a key that came at `at` belongs to a burst that is surely one."""
        return not self.is_over(at) and (self.holds or self._is_sure)

    def is_quick(self, at: float) -> bool:
        """Say whether a key that came at `at` came right behind a burst, as from the same program."""
        return self._quick >= _QUICK_KEYS and 0 <= at - self._last <= QUICK_ENTER_SECONDS

    def takes(self, key: str, at: float, *, more: bool = False) -> bool:
        """Note a character, ENTER or TAB; say whether it is held. If not, it is to be shown (or done) now.

        What came before must have been ended when it is over. `more`: another key was read behind it already.
        """
        if over := self.is_over(at):
            self._shown = ""
        if not self._length:
            self._began = at
        held = self.flows(at) or (key == ENTER and (bool(self._shown) or more or self._is_seam(at)))
        if held:
            self._held.append(key)
        elif key == ENTER:
            self._shown = ""
        else:
            self._shown += key
        self._quick = self._quick + 1 if held or not over else 1
        self._last = at
        return held

    def end(self) -> Burst | None:
        """Return the burst, None when nothing was held; the next key begins another one."""
        shown, held = self._shown, "".join(self._held)
        self._shown = ""
        self._held.clear()
        if not held:
            return None
        key = held[-1] if held[-1] in ENTER + TAB else ""
        line = normalised(shown + held.removesuffix(key))
        goes_on = bool(line) and self._is_seam(self._began)
        if goes_on or "\n" in line or line.startswith("!"):
            self._paste_end = self._last
            return Burst(shown, held, pasted=True, goes_on=goes_on)
        return Burst(shown, held.removesuffix(key), pasted=is_block(line), key=key)

    def _is_seam(self, at: float) -> bool:
        return 0 <= at - self._paste_end <= SEAM_SECONDS
