"""The window of a model: chosen once for each digest, then the same for every process and every call.

Another `num_ctx` makes a server reload the model and lose its cache (context.md, Budget and window), so
a choice is kept in `windows.json` and changes only when the person sets another `max_context`, or when
the server turns out to have given less.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rune.context.budget import MIN_TOOL_WINDOW
from rune.host.files import private_folder, replace_file
from rune.host.small_files import locked
from rune.models.transport import ModelInfo

UNDISCOVERED: Final = 8192
_STEP = 1024
_KIB = 1024
_GIB = 1024**3
# Bytes of key-value cache for one token, by the size of the weights in GiB up to which they hold. No
# server says them beforehand. What known models need with 16-bit caches: SmolLM2 135M 23 KiB, Qwen3 0.6B
# and 1.7B 112, Llama 3.1 8B 128, Qwen2.5 14B 192 and 32B 256, Llama 3.3 70B 320. A row is at least the
# largest of its kind, with room for wider ones: too small a window is slower to notice than no memory.
_CACHE_BYTES: Final = ((0.3, 32 * _KIB), (3.0, 128 * _KIB), (8.0, 256 * _KIB), (24.0, 384 * _KIB))
_CACHE_BYTES_LARGEST: Final = 512 * _KIB
# One part in so many of the memory stays free for everything else.
_SPARE: Final = 10


class WindowChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A window in tokens and, for a person, why it is so large. `discovered` False: the server did not
    say what the model was trained for, a T1 failure `context_discovery`. `problem` is what went wrong
    with the file of kept windows ("": nothing); the choice holds all the same.
    """

    num_ctx: int
    discovered: bool
    reason: str
    problem: str = ""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A kept window. `max_context` is the setting it was chosen under."""

    num_ctx: int
    max_context: int
    reason: str

    def choice(self, problem: str = "") -> WindowChoice:
        return WindowChoice(num_ctx=self.num_ctx, discovered=True, reason=self.reason, problem=problem)


class _Windows(msgspec.Struct, kw_only=True):
    """The content of `windows.json`, by digest."""

    version: int = 1
    windows: dict[str, _Kept] = msgspec.field(default_factory=dict[str, _Kept])


class WindowBook:
    """The kept windows, in `state_dir/windows.json`. Several processes may use it at once: the first
    choice for a digest holds for all of them. What cannot be kept in the file (no digest, a disk that
    refuses) at least stays the same within this process.
    """

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / "windows.json"
        self._lock = state_dir / "windows.lock"
        self._here: dict[str, _Kept] = {}

    def choose(self, info: ModelInfo, max_context: int, memory: int | None) -> WindowChoice:
        """Return the window for a model. `memory` is what may be used for it, weights included, in
        bytes; None when unknown. `max_context` in tokens, at least 1.
        """
        fresh = _choice(info, max_context, memory)
        if not info.digest:
            return self._held_here(info, max_context, fresh)
        try:
            with self._locked():
                book, problem = self._read()
                kept = book.windows.get(info.digest)
                if kept is not None and kept.max_context == max_context:
                    return kept.choice(problem)
                if fresh.discovered:
                    self._write(book, info.digest, _keep(fresh, max_context))
                return msgspec.structs.replace(fresh, problem=problem)
        except OSError as error:
            held = self._held_here(info, max_context, fresh)
            return msgspec.structs.replace(held, problem=f"the window cannot be kept: {error}")

    def expect(self, info: ModelInfo, max_context: int, memory: int | None) -> WindowChoice:
        """Return what `choose` would, and keep nothing: for whoever only looks."""
        fresh = _choice(info, max_context, memory)
        kept = self._here.get(_key(info))
        problem = ""
        if info.digest:
            try:
                book, problem = self._read()
            except OSError as error:
                problem = f"the kept windows cannot be read: {error}"
            else:
                kept = book.windows.get(info.digest, kept)
        if kept is not None and kept.max_context == max_context:
            return kept.choice(problem)
        return msgspec.structs.replace(fresh, problem=problem)

    def lower(self, info: ModelInfo, num_ctx: int, max_context: int) -> WindowChoice:
        """Keep that the server gave no more than `num_ctx` tokens under this `max_context`; an even smaller
        kept window stays. A person who sets another `max_context` has it tried again.

        The number is kept as the server reported it, not rounded: another one would reload the model.
        """
        lowered = _Kept(num_ctx=num_ctx, max_context=max_context, reason=f"the server gave {num_ctx:,} tokens")
        key = _key(info)
        if not info.digest:
            return self._lower_here(key, lowered)
        try:
            with self._locked():
                book, problem = self._read()
                kept = _smaller(book.windows.get(key), lowered)
                self._write(book, key, kept)
                return kept.choice(problem)
        except OSError as error:
            held = self._lower_here(key, lowered)
            return msgspec.structs.replace(held, problem=f"the window cannot be kept: {error}")

    def _held_here(self, info: ModelInfo, max_context: int, fresh: WindowChoice) -> WindowChoice:
        kept = self._here.get(_key(info))
        if kept is not None and kept.max_context == max_context:
            return kept.choice()
        if fresh.discovered:
            self._here[_key(info)] = _keep(fresh, max_context)
        return fresh

    def _lower_here(self, key: str, lowered: _Kept) -> WindowChoice:
        kept = self._here[key] = _smaller(self._here.get(key), lowered)
        return kept.choice()

    @contextmanager
    def _locked(self) -> Generator[None]:
        # Read, choose and replace belong together; the file itself is replaced, so the lock is another one.
        private_folder(self._lock.parent)
        with locked(self._lock):
            yield

    def _read(self) -> tuple[_Windows, str]:
        """Return the kept windows, and what was wrong with the file if it has to be begun anew."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Windows), ""
        except FileNotFoundError:
            return _Windows(), ""
        except (msgspec.DecodeError, RecursionError) as error:
            return _Windows(), f"{self._file.name} was not readable and is begun anew: {error}"

    def _write(self, book: _Windows, digest: str, kept: _Kept) -> None:
        if book.windows.get(digest) != kept:
            book.windows[digest] = kept
            replace_file(self._file, msgspec.json.format(msgspec.json.encode(book, order="sorted")) + b"\n")


def _key(info: ModelInfo) -> str:
    return info.digest or f"{info.provider}/{info.name}"


def _keep(choice: WindowChoice, max_context: int) -> _Kept:
    return _Kept(num_ctx=choice.num_ctx, max_context=max_context, reason=choice.reason)


def _smaller(kept: _Kept | None, lowered: _Kept) -> _Kept:
    same_setting = kept is not None and kept.max_context == lowered.max_context
    return kept if kept is not None and same_setting and kept.num_ctx <= lowered.num_ctx else lowered


def _choice(info: ModelInfo, max_context: int, memory: int | None) -> WindowChoice:
    if info.context_length is None:
        return WindowChoice(
            num_ctx=min(UNDISCOVERED, max_context),
            discovered=False,
            reason="the server does not say what the model was trained for",
        )
    limits = [(info.context_length, "what the model was trained for"), (max_context, "context.max_context")]
    if memory is not None and info.size is not None:
        limits.append((max(MIN_TOOL_WINDOW, _fitting(info.size, memory)), "what fits the free memory"))
    limit, reason = min(limits, key=lambda each: each[0])
    # A model trained for less than a step keeps its own length; the broker says that it is too small.
    return WindowChoice(num_ctx=limit // _STEP * _STEP or limit, discovered=True, reason=reason)


def _fitting(weights: int, memory: int) -> int:
    """Return how many tokens fit beside the weights (both in bytes). Under the least window for tools the
    estimate is not trusted: there a load that fails says more than this rule.
    """
    a_token = next((each for gib, each in _CACHE_BYTES if weights <= gib * _GIB), _CACHE_BYTES_LARGEST)
    return max(0, memory - memory // _SPARE - weights) // a_token
