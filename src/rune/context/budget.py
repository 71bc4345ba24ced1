"""How a window is shared out (context.md, Budget and window). All figures are tokens."""

import msgspec

from rune.errors import WindowTooSmallError

MIN_WINDOW = 1024
MIN_TOOL_WINDOW = 4096


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt may use of its window.

    `reserve` is kept for the answer, `input` is the whole budget of the prompt, `prefix` how large the
    prefix may become through evictable blocks, `tail` the most that is recalled for one message.
    `tools` False: the window is too small for tools, chat only.
    """

    window: int
    reserve: int
    input: int
    prefix: int
    tail: int
    tools: bool


def budget_of(window: int) -> Budget:
    """Share out a window. Raises WindowTooSmallError under 1024 tokens.

    A quarter is reserved for the answer (2,048 tokens and more from a window of 8,192 up) and a
    twentieth for what an estimate cannot know. Evictable blocks enter the prefix while it is at most
    half of the budget: a limit that no message moves, so that the prefix stays as it is.
    """
    if window < MIN_WINDOW:
        raise WindowTooSmallError(window=window, needed=MIN_WINDOW)
    reserve = window // 4
    whole = window - reserve - window // 20
    return Budget(
        window=window,
        reserve=reserve,
        input=whole,
        prefix=whole // 2,
        tail=whole // 10,
        tools=window >= MIN_TOOL_WINDOW,
    )
