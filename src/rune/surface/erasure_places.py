"""Where what was said may stand beside journal, evidence and views: cleaned, and then the whole home looked through."""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from rune.host.files import is_locked, replace_file
from rune.host.paths import Home
from rune.host.small_files import locked
from rune.store.failures import unavailable
from rune.text.sought import Sought

_CHUNK: Final = 1 << 20
_ID: Final = b'"event_id":"'
_GONE: Final = b'","body":{"erased":"evt_'


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place that was looked at: how many files it has, what was done, and the files in which the text still is."""

    name: str
    files: int = 0
    done: str = "nothing to do"
    left: tuple[str, ...] = ()


class Trail(msgspec.Struct, frozen=True, kw_only=True):
    """What leads to an erased text: its words, how they begin, and the ids of events, messages, conversations."""

    words: Sought
    openings: Sought
    ids: Sought
    events: frozenset[str]


def trail_of(words: Sought, ids: frozenset[str], events: frozenset[str]) -> Trail:
    """Return the trail of these words and ids. `events` are those among the ids whose bodies go."""
    return Trail(words=words, openings=words.openings(), ids=Sought(sorted(ids)), events=events)


def clean_places(home: Home, trail: Trail) -> dict[str, str]:
    """Remove the text everywhere but from journal, evidence and views; returns what was done, by place.

    Raises StorageUnavailableError.
    """
    done: dict[str, str] = {}
    cleaners: tuple[tuple[str, Callable[[Home, Trail], str]], ...] = (
        ("torn and quarantined lines", _torn),
        ("copies of traces", _traces),
        ("logs", _logs),
        ("history of messages", _history),
        ("unsent text", _drafts),
        ("backups", _backups),
        ("undo", _undo),
        ("unfinished files", _unfinished),
    )
    for name, clean in cleaners:
        try:
            done[name] = clean(home, trail)
        except OSError as error:
            raise unavailable(error, f"the place {name!r} could not be cleaned ({error.filename})") from error
    return done


def _torn(home: Home, trail: Trail) -> str:
    def goes(line: bytes) -> bool:
        return trail.ids.within(line) or trail.openings.within(line) or trail.words.within(line)

    paths = [*home.journal.glob("*.torn-*"), *home.journal.glob("*.quarantined-*")]
    return _count(sum(_without_lines(path, goes) for path in paths if path.is_file()), "line")


def _traces(home: Home, trail: Trail) -> str:
    conversations = Sought(text for text in trail.ids.texts if text.startswith("cnv_"))

    def goes(line: bytes) -> bool:
        return conversations.within(line) or trail.words.within(line)

    paths = sorted(home.state.glob("inference_traces-*.jsonl*"))
    return _count(sum(_without_lines(path, goes) for path in paths), "line")


def _logs(home: Home, trail: Trail) -> str:
    def goes(line: bytes) -> bool:
        return trail.openings.within(line) or trail.words.within(line)

    return _count(sum(_without_lines(path, goes) for path in sorted(home.logs.glob("*")) if path.is_file()), "line")


def _history(home: Home, trail: Trail) -> str:
    def goes(line: bytes) -> bool:
        return any(trail.words.equals(text) for text in _texts(line)) or trail.words.within(line)

    file = home.state / "prompt_history"
    if not file.exists():
        return _count(0, "entry")
    with locked(home.state / "prompt_history.lock"):
        return _count(_without_lines(file, goes), "entry")


def _drafts(home: Home, trail: Trail) -> str:
    folder = home.state / "drafts"
    if not folder.is_dir():
        return _count(0, "text")
    gone = 0
    with locked(folder / "lock"):
        for path in sorted(folder.iterdir()):
            if path.suffix == ".lock" or path.name == "lock" or is_locked(path.with_suffix(".lock")):
                continue  # what a running Rune holds it would only write again
            gone += _without_drafts(path, trail.words)
    return _count(gone, "text")


def _without_drafts(path: Path, words: Sought) -> int:
    data = path.read_bytes()
    try:
        content = msgspec.json.decode(data, type=dict[str, Any])
        prompts = {k: v for k, v in content.get("prompts", {}).items() if not words.equals(v)}
        waiting = {k: [v for v in texts if not words.equals(v)] for k, texts in content.get("waiting", {}).items()}
    except (msgspec.DecodeError, RecursionError, AttributeError, TypeError):
        if words.within(data):
            path.unlink()
            return 1
        return 0
    kept = {**content, "prompts": prompts, "waiting": {k: texts for k, texts in waiting.items() if texts}}
    gone = _entries(content) - _entries(kept)
    if gone and _entries(kept):
        replace_file(path, msgspec.json.encode(kept) + b"\n")
    elif gone:
        path.unlink()
    return gone


def _entries(content: dict[str, Any]) -> int:
    return len(content.get("prompts", {})) + sum(len(texts) for texts in content.get("waiting", {}).values())


def _backups(home: Home, trail: Trail) -> str:
    if not home.backups.is_dir():
        return _count(0, "backup")
    gone: list[str] = []
    for entry in sorted(home.backups.iterdir()):
        if any(_keeps(path, trail) for path in _files(entry)):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
            gone.append(entry.name)
    return f"{len(gone)} removed whole: {', '.join(gone)}" if gone else "nothing to do"


def _keeps(path: Path, trail: Trail) -> bool:
    """Say whether a file of a backup holds the text, or a line of the journal that is erased by now."""
    if _holds(path, trail.words):
        return True
    if path.suffix != ".jsonl":
        return False
    with path.open("rb") as file:
        return any(_GONE not in line[-60:] and _event_id(line) in trail.events for line in file)


def _event_id(line: bytes) -> str:
    return line.partition(_ID)[2][:30].decode("ascii", "replace")


def _undo(home: Home, trail: Trail) -> str:
    found = [path for path in _files(home.undo) if _holds(path, trail.words)] if home.undo.is_dir() else []
    for path in found:
        path.unlink()
    return _count(len(found), "file")


def _unfinished(home: Home, trail: Trail) -> str:
    """Remove what was written beside its place by a process that was killed."""
    bases = dict.fromkeys((home.config_dir, home.data_dir, home.state_dir))
    paths = [path for base in bases for path in _files(base) if _is_unfinished(path)]
    found = [path for path in paths if _holds(path, trail.openings) or _holds(path, trail.words)]
    for path in found:
        path.unlink(missing_ok=True)
    return _count(len(found), "file")


def _is_unfinished(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _texts(line: bytes) -> Iterator[str]:
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        value = msgspec.json.decode(line)
        if isinstance(value, dict):
            text = cast("dict[str, object]", value).get("text")
            if isinstance(text, str):
                yield text


def _without_lines(path: Path, goes: Callable[[bytes], bool]) -> int:
    """Take lines out of a file, which goes when none is left; returns how many."""
    with path.open("rb") as file:
        lines = file.readlines()
    kept = [line for line in lines if not goes(line)]
    if len(kept) < len(lines):
        if any(line.strip() for line in kept):
            replace_file(path, b"".join(kept))
        else:
            path.unlink()
    return len(lines) - len(kept)


def look_through(home: Home, words: Sought, done: dict[str, str]) -> tuple[Place, ...]:
    """Read every file of the home for the words; returns each place with what was `done` there and what is left."""
    places: dict[str, tuple[int, list[str]]] = {name: (0, []) for name in done}
    for base in dict.fromkeys((home.config_dir, home.data_dir, home.state_dir)):
        for path in _files(base):
            name = _place_of(home, path)
            files, left = places.get(name, (0, []))
            if _holds(path, words):
                left.append(str(path.relative_to(base)))
            places[name] = (files + 1, left)
    return tuple(
        Place(name=name, files=files, done=done.get(name, "only looked through"), left=tuple(left))
        for name, (files, left) in places.items()
    )


def _place_of(home: Home, path: Path) -> str:
    named = (
        ("evidence", home.evidence),
        ("backups", home.backups),
        ("undo", home.undo),
        ("logs", home.logs),
        ("models", home.models),
        ("leases", home.leases),
        ("unsent text", home.state / "drafts"),
    )
    if _is_unfinished(path):
        return "unfinished files"
    for name, folder in named:
        if path.is_relative_to(folder):
            return name
    if path.parent == home.journal:
        return "torn and quarantined lines" if ".torn-" in path.name or ".quarantined-" in path.name else "journal"
    if path.parent == home.state and path.name.startswith("inference_traces-"):
        return "copies of traces"
    if path.parent == home.state and path.name.startswith("prompt_history"):
        return "history of messages"
    return "views" if path.parent == home.data_dir and path.name.startswith("views-") else "settings and small state"


def _files(folder: Path) -> Iterator[Path]:
    """Iterate over the regular files at and below a path, in order; links are not followed."""
    if folder.is_file() and not folder.is_symlink():
        yield folder
        return
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(top, name)
            with contextlib.suppress(FileNotFoundError):  # another process has just removed it
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def _holds(path: Path, words: Sought) -> bool:
    """Say whether a file holds one of the texts; reads it in pieces that overlap by the longest of them."""
    if not words:
        return False
    kept = b""
    try:
        with path.open("rb") as file:
            while piece := file.read(max(_CHUNK, 2 * words.longest)):
                data = kept + piece
                if words.within(data):
                    return True
                kept = data[-(words.longest - 1) :]
    except FileNotFoundError:
        return False
    return False


def _count(number: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{number:,} {what if number == 1 else plural} removed" if number else "nothing to do"
