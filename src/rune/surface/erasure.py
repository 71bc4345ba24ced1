"""`rune erase`: what will go, told before anything goes; then each place that was looked at, and what is left there."""

import errno
import textwrap
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from rune.errors import StorageUnavailableError
from rune.host.paths import Home
from rune.store.erasing.eraser import Eraser, ErasurePlan
from rune.store.erasing.remains import Other
from rune.surface.erasure_places import Place, clean_places, look_through, trail_of
from rune.surface.local_times import on_the_clock
from rune.surface.results import CommandResult, table
from rune.surface.sizes import counted
from rune.text.fitting import foreign
from rune.text.sought import SHORTEST

LIMITS: Final = (
    "Out of reach: copies outside of this home (backups, snapshots of the file system, synchronised folders), swap, "
    "what a terminal still shows, and what a disk keeps of blocks that were freed (flash memory does).",
    "The heads of erased lines keep the time and a digest of the body: whoever guesses a short text exactly, and all "
    "else that was stored with it, can confirm the guess.",
)
# What is to go is told with its question on one screen of 24 lines.
_NAMED: Final = 3
_FORKS_NAMED: Final = 2
_CELLS: Final = 78
_TITLE_CELLS: Final = 24
_FOLDER_CELLS: Final = 24
_KINDS: Final = (
    ("message", ("user.message", "response.generated", "tool.message")),
    ("title or state of a task", ("conversation.", "task.")),
    ("turn", ("turn.",)),
    ("trace", ("inference.",)),
)
_OTHER_KIND: Final = "other event"
# In the words of a person: one of them, and several.
_WORDS: Final = {
    "message": ("message", "messages"),
    "title or state of a task": ("note of its title and its tasks", "notes of its title and its tasks"),
    "turn": ("note of a turn", "notes of turns"),
    "trace": ("record of a model call", "records of model calls"),
    _OTHER_KIND: ("other note", "other notes"),
}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was done. `places` is empty where nothing had to be."""

    bodies: int
    blobs: int
    short: int
    others: tuple[Other, ...]
    places: tuple[Place, ...]

    @property
    def left(self) -> tuple[str, ...]:
        """The files in which the text still stands."""
        return tuple(file for place in self.places for file in place.left)


class Erasure:
    """Erases in one home. `views` throws the views away and makes them anew. All of it blocks."""

    def __init__(
        self,
        home: Home,
        eraser: Eraser,
        views: Callable[[], None],
        why_unwritable: Callable[[], StorageUnavailableError | None] = lambda: None,
    ) -> None:
        self._home = home
        self._eraser = eraser
        self._views = views
        self._why_unwritable = why_unwritable

    @contextmanager
    def prepared(self, ids: Sequence[str]) -> Generator[ErasurePlan]:
        """Give the plan for these ids (see Eraser.prepared); nobody else writes what it touches meanwhile.

        Where something cannot be written, also inside of it, StorageUnavailableError says what is wrong with the place.
        """
        try:
            with self._eraser.prepared(ids) as plan:
                yield plan
        except StorageUnavailableError as error:
            why = self._why_unwritable()
            if why is None:
                raise
            full = isinstance(error.__cause__, OSError) and error.__cause__.errno in {errno.ENOSPC, errno.EDQUOT}
            room = (
                f"Erasing writes before it frees anything: make some room there ({self._home.logs} and what "
                "`rune doctor` names under `retention` and `backups` can go), then run this again."
            )
            raise StorageUnavailableError(why.message, hint=room if full else why.hint) from error

    def erase(self, plan: ErasurePlan) -> Report:
        """Carry a plan out and look through the whole home. Raises StorageError; the same again then goes on."""
        done: dict[str, str] = {}
        if not plan.nothing:
            trail = trail_of(plan.sought, plan.ids, frozenset(plan.choice.chosen))
            self._eraser.erase(plan, lambda: done.update(clean_places(self._home, trail)), self._views)
        bodies, blobs = len(plan.choice.chosen), len(plan.remains.blobs | plan.remains.bodies)
        done = {
            "journal": f"{counted(bodies, 'entry', 'entries')} emptied" if bodies else "nothing to do",
            "evidence": f"{counted(blobs, 'file')} removed" if blobs else "nothing to do",
            "views": "made anew",
            **done,
        }
        return Report(
            bodies=bodies,
            blobs=blobs,
            short=len(plan.sought.short),
            others=tuple(plan.remains.others),
            places=() if plan.nothing else look_through(self._home, plan.sought, done),
        )

    def finish(self) -> Report:
        """Finish what an interrupted erasure left; does nothing where none was. Raises as `prepared` and `erase`."""
        with self.prepared(()) as plan:
            return self.erase(plan)


def plan_result(plan: ErasurePlan, *, named: bool = False) -> CommandResult:
    """Tell what a plan will do, in at most 20 lines of 80 cells: counts, never content; `named` are conversations by
    their titles too, for a person who is to recognise them.
    """
    data: dict[str, Any] = {"version": 1, "ids": list(plan.aim.named), "bodies": _kinds(plan)}
    if plan.nothing:
        return CommandResult(text=f"already erased: {', '.join(plan.aim.named)}; nothing was changed", data=data)
    blobs = len(plan.remains.blobs | plan.remains.bodies)
    lines = [_heading(plan), *_names(plan, named=named), *_counts(plan, blobs)]
    if plan.resumed:
        lines.append("  an erasure that was interrupted will be finished with it")
    lines += [
        f"  {_known_as(plan, fork, named=named)}: a branch that shares it, where it will be missing"
        for fork in sorted(plan.forks)[:_FORKS_NAMED]
    ]
    lines += _more(len(plan.forks) - _FORKS_NAMED, "more branch", "more branches")
    if prompts := plan.remains.traces.total():
        lines.append(f"  {counted(prompts, 'prompt')} will no longer be there for `rune trace --show` to rebuild")
    lines += _others(plan.remains.others)
    if plan.sought.short:
        lines.append(f"  {_short(len(plan.sought.short))}")
    lines.append("  every file of the home will be looked through for the text")
    data |= {
        "blobs": blobs,
        "forks": sorted(plan.forks),
        "prompts": dict(plan.remains.traces),
        "others": [msgspec.to_builtins(other) for other in plan.remains.others],
    }
    return CommandResult(text="\n".join(lines), data=data)


def report_result(plan: ErasurePlan, report: Report) -> CommandResult:
    """Tell each place that was looked at; not ok where the text is left."""
    left = report.left
    lines = list(places_lines(report))
    if report.short:
        lines.append(_short(report.short))
    if left:
        lines += [line.strip() for line in _others(report.others)]
        lines.append(f"The text is still in {counted(len(left), 'file')}.")
    elif plan.sought:
        lines.append("The text is in no file of the home.")
    lines += LIMITS
    data = plan_result(plan).data | {
        "places": [msgspec.to_builtins(place) for place in report.places],
        "left": list(left),
        "short": report.short,
        "limits": list(LIMITS),
    }
    return CommandResult(text="\n".join(lines), data=data, ok=not left)


def places_lines(report: Report) -> tuple[str, ...]:
    """Return a line a place that was looked at, below a heading: how many files, what was done, what is left."""
    rows = [
        (place.name, str(place.files), place.done, f"LEFT in {', '.join(place.left)}" if place.left else "")
        for place in report.places
    ]
    return tuple(table(rows, ("place", "files", "done", "")).splitlines())


def _kinds(plan: ErasurePlan) -> dict[str, int]:
    counts = Counter(
        next((kind for kind, types in _KINDS if each.event_type.startswith(types)), _OTHER_KIND)
        for each in plan.choice.chosen.values()
    )
    return {kind: counts[kind] for kind in (*(kind for kind, _ in _KINDS), _OTHER_KIND) if counts[kind]}


def _heading(plan: ErasurePlan) -> str:
    first, *others = plan.aim.named or ("what an interrupted erasure left",)
    return f"to be erased for good: {first}" + (f" and {len(others):,} more" if others else "")


def _names(plan: ErasurePlan, *, named: bool) -> list[str]:
    """Name the conversations in which something goes."""
    messages = {each.conversation_id for each in plan.aim.messages.values()}
    events = {each.partition for each in plan.choice.chosen.values() if each.event_id in plan.aim.events}
    ids = sorted(each for each in plan.aim.conversations | messages | events if each in plan.choice.about)
    if not named:
        return []
    lines = [f"  {_known_as(plan, each, named=True)}" for each in ids[:_NAMED]]
    return lines + _more(len(ids) - _NAMED, "more conversation", "more conversations")


def _known_as(plan: ErasurePlan, conversation: str, *, named: bool) -> str:
    """Return by what a person knows a conversation, on one line."""
    about = plan.choice.about.get(conversation)
    if about is None or not named:
        return conversation
    began = on_the_clock(about.at, 0)
    title = foreign(about.title or "(empty)", _TITLE_CELLS)
    return f'"{title}", begun {began} in {foreign(about.folder, _FOLDER_CELLS)}'


def _counts(plan: ErasurePlan, blobs: int) -> list[str]:
    parts = [f"{number:,} {_WORDS[kind][number != 1]}" for kind, number in _kinds(plan).items()]
    parts += [counted(blobs, "file of evidence", "files of evidence")] if blobs else []
    return textwrap.wrap(
        ", ".join(parts) or "nothing of it is in the journal any more",
        _CELLS,
        initial_indent="  ",
        subsequent_indent="    ",
    )


def _more(number: int, one: str, many: str) -> list[str]:
    return [f"  and {counted(number, one, many)}"] if number > 0 else []


def _others(others: Sequence[Other]) -> list[str]:
    if not others:
        return []
    # A message says more to a person than what was made from it.
    first = sorted(others, key=lambda each: not each.id.startswith("msg_"))
    lines = [f"    {each.id} in {each.conversation}" for each in first[:_NAMED]]
    more = len(others) - _NAMED
    return [
        "  the same text is in these, which stay unless you name them too:",
        *lines,
        *([f"    and {more:,} more"] if more > 0 else []),
    ]


def _short(number: int) -> str:
    what = "1 text is" if number == 1 else f"{number:,} texts are"
    return (
        f"{what} shorter than {SHORTEST} characters: outside of the journal only whole entries that equal it go, "
        "since it stands by chance in what others said"
    )
