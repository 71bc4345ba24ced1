"""`rune erase`: what will go, told before anything goes; then each place that was looked at, and what is left there."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from rune.host.paths import Home
from rune.store.erasing.eraser import Eraser, ErasurePlan
from rune.store.erasing.remains import Other
from rune.surface.erasure_places import Place, clean_places, look_through, trail_of
from rune.surface.results import CommandResult, table
from rune.text.sought import SHORTEST

LIMITS: Final = (
    "Out of reach: copies outside of this home (backups, snapshots of the file system, synchronised folders), swap, "
    "what a terminal still shows, and what a disk keeps of blocks that were freed (flash memory does).",
    "The heads of erased lines keep the time and a digest of the body: whoever guesses a short text exactly, and all "
    "else that was stored with it, can confirm the guess.",
)
_NAMED: Final = 10
_KINDS: Final = (
    ("message", ("user.message", "response.generated", "tool.message")),
    ("title or state of a task", ("conversation.", "task.")),
    ("turn", ("turn.",)),
    ("trace", ("inference.",)),
)
_OTHER_KIND: Final = "other event"


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

    def __init__(self, home: Home, eraser: Eraser, views: Callable[[], None]) -> None:
        self._home = home
        self._eraser = eraser
        self._views = views

    @contextmanager
    def prepared(self, ids: Sequence[str]) -> Generator[ErasurePlan]:
        """Give the plan for these ids (see Eraser.prepared); nobody else writes what it touches meanwhile."""
        with self._eraser.prepared(ids) as plan:
            yield plan

    def erase(self, plan: ErasurePlan) -> Report:
        """Carry a plan out and look through the whole home. Raises StorageError; the same again then goes on."""
        done: dict[str, str] = {}
        if not plan.nothing:
            trail = trail_of(plan.sought, plan.ids, frozenset(plan.choice.chosen))
            self._eraser.erase(plan, lambda: done.update(clean_places(self._home, trail)), self._views)
        bodies, blobs = len(plan.choice.chosen), len(plan.remains.blobs | plan.remains.bodies)
        done = {
            "journal": f"{bodies:,} bodies blanked" if bodies else "nothing to do",
            "evidence": f"{blobs:,} blobs removed" if blobs else "nothing to do",
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


def plan_result(plan: ErasurePlan) -> CommandResult:
    """Tell what a plan will do: counts, never content."""
    data: dict[str, Any] = {"version": 1, "ids": list(plan.aim.named), "bodies": _kinds(plan)}
    if plan.nothing:
        return CommandResult(text=f"already erased: {', '.join(plan.aim.named)}; nothing was changed", data=data)
    counts = ", ".join(f"{number:,} {_plural(kind, number)}" for kind, number in _kinds(plan).items())
    blobs = len(plan.remains.blobs | plan.remains.bodies)
    named = ", ".join(plan.aim.named) or "what an interrupted erasure left"
    lines = [f"to be erased for good: {named}", f"  {counts or 'no body is left'}; {blobs:,} blobs of evidence"]
    if plan.resumed:
        lines.append("  an erasure that was interrupted is finished with it")
    lines += [f"  {fork} was branched off it: what goes is missing there too" for fork in sorted(plan.forks)]
    lines += [
        f"  {number:,} {_plural('prompt', number)} of {conversation} can no longer be rebuilt (rune trace --show)"
        for conversation, number in sorted(plan.remains.traces.items())
    ]
    lines += _others(plan.remains.others)
    if plan.sought.short:
        lines.append(f"  {_short(len(plan.sought.short))}")
    lines.append(
        "  looked through: journal, torn and quarantined lines, evidence, views, traces, logs, history of messages, "
        "unsent text, backups, undo, and every other file of the home"
    )
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
    rows = [
        (place.name, str(place.files), place.done, f"LEFT in {', '.join(place.left)}" if place.left else "")
        for place in report.places
    ]
    lines = [table(rows, ("place", "files", "done", ""))]
    if report.short:
        lines.append(_short(report.short))
    if left:
        lines += [line.strip() for line in _others(report.others)]
        lines.append(f"The text is still in {len(left):,} {_plural('file', len(left))}.")
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


def _kinds(plan: ErasurePlan) -> dict[str, int]:
    counts = Counter(
        next((kind for kind, types in _KINDS if each.event_type.startswith(types)), _OTHER_KIND)
        for each in plan.choice.chosen.values()
    )
    return {kind: counts[kind] for kind in (*(kind for kind, _ in _KINDS), _OTHER_KIND) if counts[kind]}


def _others(others: Sequence[Other]) -> list[str]:
    lines = [
        f"  the same text is in {each.id} ({each.event_type}, {each.conversation}), which stays unless you name it too"
        for each in others[:_NAMED]
    ]
    more = len(others) - _NAMED
    return [*lines, f"  and in {more:,} more"] if more > 0 else lines


def _short(number: int) -> str:
    what = "1 text is" if number == 1 else f"{number:,} texts are"
    return (
        f"{what} shorter than {SHORTEST} characters: outside of the journal only whole entries that equal it go, "
        "since it stands by chance in what others said"
    )


def _plural(what: str, number: int) -> str:
    if number == 1:
        return what
    return "titles or states of tasks" if what.startswith("title ") else f"{what}s"
