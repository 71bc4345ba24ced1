"""What of fetching a model is worked out here: whether a name can be one, bytes over all parts, speed, what is left."""

import re
from collections import deque
from typing import Final

from rune.errors import UsageError
from rune.models.transport import PullProgress
from rune.surface.model_values import PullRow

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_LONGEST_NAME: Final = 350  # what Ollama takes of host, namespace, model and tag together
_SHOWN: Final = 60
_ADDRESS: Final = re.compile(r"https?://(?:(?:www\.)?ollama\.com/(?:library/)?)?", re.IGNORECASE)
_LIKE: Final = "A name is like qwen3:4b; https://ollama.com/library lists them."

# Speed is what came over so many seconds; before it was watched for the least of them there is none to tell.
_OVER: Final = 8.0
_LEAST: Final = 1.0
# A model has a dozen parts; a server that names ever new ones must not fill the memory.
_MOST_PARTS: Final = 1_000


def check_name(name: str) -> str:
    """Return the name of a model to fetch without what a paste brings along. Raises UsageError for what is none."""
    wanted = name.strip()
    if address := _ADDRESS.match(wanted):
        rest = wanted[address.end() :].strip("/")
        raise UsageError(
            f"{wanted[:_SHOWN]!r} is an address, not the name of a model",
            hint=f"Leave its beginning out: {rest[:_SHOWN]}" if _NAME.fullmatch(rest) else _LIKE,
        )
    if not _NAME.fullmatch(wanted) or len(wanted) > _LONGEST_NAME or wanted.endswith((":", "/")):
        raise UsageError(f"{wanted[:_SHOWN]!r} cannot be the name of a model", hint=_LIKE)
    return wanted


class PullMeter:
    """Adds up what a server says, part by part. Seconds are those of any clock that never goes back."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._parts: dict[str, tuple[int, int | None]] = {}
        self._done = 0
        self._total: int | None = None
        self._fresh = 0
        self._samples: deque[tuple[float, int]] = deque()

    def row(self, progress: PullProgress, now: float) -> PullRow:
        """Take in what the server said at `now`, and return where that leaves the whole."""
        if progress.part:
            self._take(progress.part, progress.done or 0, progress.total)
            self._samples.append((now, self._fresh))
            while len(self._samples) > 2 and now - self._samples[1][0] >= _OVER:  # noqa: PLR2004 - a speed is between two
                self._samples.popleft()
        done, total = self._done if self._parts else None, self._total
        speed = self._speed()
        left = None if not speed or done is None or total is None else max(total - done, 0) / speed
        return PullRow(
            model=self._model,
            status=progress.status,
            done=done,
            total=total,
            bytes_per_second=speed,
            seconds_left=left,
        )

    def _take(self, part: str, done: int, total: int | None) -> None:
        # What a part begins with was fetched by an earlier pull, and says nothing about how fast this one is.
        if part not in self._parts and len(self._parts) >= _MOST_PARTS:
            return
        before, known = self._parts.get(part, (None, None))
        size = known if total is None else total
        done = done if size is None else min(done, size)
        self._fresh += 0 if before is None else max(done - before, 0)
        self._done += done - (before or 0)
        if size is not None:
            self._total = (self._total or 0) + size - (known or 0)
        self._parts[part] = done, size

    def _speed(self) -> float | None:
        if not self._samples:
            return None
        (then, had), (now, has) = self._samples[0], self._samples[-1]
        return (has - had) / (now - then) if now - then >= _LEAST else None
