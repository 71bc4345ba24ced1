"""How full a conversation's context is, as one of four levels (context.md, Health levels). Pure."""

from typing import Final, Literal

Level = Literal["green", "yellow", "orange", "red"]

# Where each level begins, the worst first: percent of the budget, tool calls since the last compaction.
_LEVELS: Final[tuple[tuple[Level, int, int], ...]] = (("red", 90, 120), ("orange", 75, 80), ("yellow", 60, 50))
# From so many reads of long files on, fewer tool calls make the same clutter.
_LONG_READS: Final = 3
_CALLS_AFTER_LONG_READS: Final[dict[Level, int]] = {"red": 100, "orange": 65, "yellow": 40}


def level_of(used: int, budget: int, *, tool_calls: int = 0, long_reads: int = 0) -> Level:
    """Return the worse of two signals: the share of the budget in use, and the calls since the last compaction.

    `used` and `budget` in tokens; a limit belongs to the level that begins there. `long_reads` counts the
    reads of files with over 500 lines in this conversation. A budget of nothing is always full.
    """
    for level, percent, calls in _LEVELS:
        limit = _CALLS_AFTER_LONG_READS[level] if long_reads >= _LONG_READS else calls
        # Whole numbers: a share at a limit must not depend on how a fraction is rounded.
        if used * 100 >= percent * budget or tool_calls >= limit:
            return level
    return "green"
