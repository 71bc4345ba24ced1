"""Whether a server cut a prompt in silence (models.md, rules 6 and 8).

A server whose window is too small drops whole messages from the front (the system message and the last one stay);
what is still too long then loses its middle, down to half the window. It says so nowhere: only the count of tokens
that it read may betray it. That count is whole on some servers; on others it leaves out what their cache still held.
"""

from typing import Final

import msgspec

from rune.errors import ContextTruncatedError
from rune.models.transport import ChatRequest
from rune.records.usage import Usage
from rune.text.tokens import estimate

# Tokens at a prompt's head that survive the cut of its middle: num_keep, and one more with a begin mark.
_KEPT_AT_HEAD: Final = (4, 5)
_SLACK: Final = 2
# The estimator is at worst so much too low over a long text (docs/decisions/token-estimate.md).
_LOW_TENTHS: Final = 9
# Words with many marks over their letters are estimated at up to five times their tokens.
_HIGHEST_RATIO: Final = 6
_LEAST_GROWTH: Final = 60
_ENOUGH_ANSWERS: Final = 3


def was_cut(estimated: int, served: int, window: int) -> bool:
    """Say whether `served` prompt tokens, out of about `estimated`, betray a cut to fit `window`.

    A low count alone proves nothing: cached tokens may be left out, and the estimator counts high by design. Only a
    prompt that is as large as the window can have been cut at all. Two things tell: the estimate is over the window
    and the server did not refuse it; or it is near the window, and the count is what is left of a cut middle.
    """
    if served > window:
        return False
    if estimated > window:
        return True
    return estimated * 10 >= window * _LOW_TENTHS and _is_half_window(served, window)


def truncated(*, estimated: int, served: int, window: int) -> ContextTruncatedError:
    """Build the error for a prompt that was cut in silence; tokens."""
    return ContextTruncatedError(
        f"the server cut the prompt without a word: about {estimated:,} tokens were sent, {served:,} were read",
        estimated=estimated,
        served=served,
        window=window,
    )


class _Seen(msgspec.Struct, frozen=True):
    """The last prompt, and what was counted of it."""

    request: ChatRequest
    served: int


class TruncationWatch:
    """Looks at the answers of one conversation with one model, for what one answer alone does not show.

    What it can tell besides `was_cut`: the window in force, where it is known and smaller than the one asked for;
    and, of a server that is known to count cached tokens too, that a prompt which only grew was read with fewer
    tokens, or with hardly more. A prompt that holds earlier thinking may honestly shrink: templates drop it.
    """

    def __init__(self) -> None:
        self._last: _Seen | None = None
        self._counts_all = False
        self._lowest_ratio: float | None = None
        self._answers = 0

    def look(self, request: ChatRequest, usage: Usage, *, window: int | None = None) -> ContextTruncatedError | None:
        """Take in one answer; returns the error when its prompt was cut. `window`: the one in force, None unknown."""
        served, limit = usage.prompt_tokens, min(window or request.options.num_ctx, request.options.num_ctx)
        if served is None:
            self._last = None
            return None
        self._counts_all = self._counts_all or usage.cached_tokens is not None
        cut = was_cut(request.estimated, served, limit) and not self._fits(request.estimated, served, limit)
        if cut or self._shrank(request, served):
            return truncated(estimated=request.estimated, served=served, window=limit)
        self._learn(request, served)
        return None

    def _fits(self, estimated: int, served: int, limit: int) -> bool:
        """Whether even the least generous estimate of this conversation leaves the prompt inside the window."""
        if self._lowest_ratio is None or self._answers < _ENOUGH_ANSWERS or _is_half_window(served, limit):
            return False
        return estimated / self._lowest_ratio * 10 <= limit * _LOW_TENTHS

    def _shrank(self, request: ChatRequest, served: int) -> bool:
        last = self._last
        if last is None or not self._counts_all or not _extends(request, last.request):
            return False
        added = request.estimated - last.request.estimated
        growth = added // _HIGHEST_RATIO if added >= _LEAST_GROWTH else 0
        # Some templates show the tools only beside the newest question, so they may be missing the next time.
        return served + _tokens_of_tools(request) < last.served + growth

    def _learn(self, request: ChatRequest, served: int) -> None:
        self._last = _Seen(request, served)
        if self._counts_all and served:
            ratio = request.estimated / served
            self._lowest_ratio = ratio if self._lowest_ratio is None else min(ratio, self._lowest_ratio)
            self._answers += 1


def _is_half_window(served: int, window: int) -> bool:
    return any(abs(served - (window - (window - keep) // 2)) <= _SLACK for keep in _KEPT_AT_HEAD)


def _tokens_of_tools(request: ChatRequest) -> int:
    return estimate(request.tools.decode("utf-8", "replace")) if request.tools.strip() not in {b"", b"[]"} else 0


def _extends(request: ChatRequest, last: ChatRequest) -> bool:
    """Whether a prompt is the last one with messages added to it, and nothing that a template might drop."""
    return (
        (request.model, request.tools, request.think) == (last.model, last.tools, last.think)
        and request.messages.startswith(last.messages.rstrip().removesuffix(b"]") + b",")
        and b'"thinking"' not in request.messages
    )
