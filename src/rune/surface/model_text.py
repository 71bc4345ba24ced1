"""Models as text: their list as a table, one of them in whole, how far a pull or a probe is."""

from collections.abc import Sequence
from typing import Final

from rune.records.models import ProbeOutcome
from rune.surface.local_times import on_the_clock
from rune.surface.model_list import bytes_text, is_named, size_text, where_text
from rune.surface.model_values import ModelDetails, ProbeRow, PullRow, Removed
from rune.surface.results import table
from rune.surface.rows import ModelRow
from rune.text.cells import cell_len
from rune.text.fitting import foreign
from rune.text.safe_text import SafeText

_KIB: Final = 1024
_GAP: Final = 2
# A name says enough with so many cells; before it has fewer the other columns make room, the first of these first.
_NAME: Final = 18
_LEFT_OUT: Final = ("from", "where", "acts by", "can", "window", "loaded", "size")
_WIDEST: Final = 500
_LONG_NAME: Final = 60
_NUMBERS: Final = ("size", "window")
_NAMED: Final = 3  # models that share what is said below the table; of more only how many
_ABILITIES: Final = ("tools", "thinking", "vision", "embedding")
_ON: Final = {"thinking": "thinks", "vision": "sees", "embedding": "embeds"}
_LABEL: Final = 9
_DIGEST: Final = 19  # as much of it as tells weights apart
_BASIS: Final = {"guess": "guessed", "measured": "measured", "owner": "your choice"}

_WHOLE: Final = 0.995
_WHOLE_MEGABYTES: Final = 10
_MEGABYTE: Final = 1_000_000
_GIGABYTE: Final = 1_000_000_000
_MINUTE: Final = 60
_HOUR: Final = 3600
_CELLS: Final = 20
_FEWEST_CELLS: Final = 5
_FIGURES_TO_COME: Final = len("  999 MB/s  59 s left")

NO_MODEL: Final = (
    "no model: start Ollama and fetch one (`rune models pull qwen3:4b`), or run `rune models fetch-embedded`"
)


def model_table(rows: Sequence[ModelRow], columns: int | None, *, used: str = "", marked: bool = False) -> str:
    """Return a line a model below a heading, each of at most `columns` cells (None: as long as they are), and what
    keeps some of them from being used. `marked`: a star stands before the one that is `used`.
    """
    names = ["model", "from", "where", "size", "window", "loaded", "can", "acts by"]
    lines = [_cells(row) for row in rows]
    if columns is not None:
        # What would leave this machine is never left unsaid.
        kept = "where" if any(row.remote and not row.refused for row in rows) else ""
        _narrow(names, lines, columns - (_GAP if marked else 0), kept=kept)
    for place, name in enumerate(names):
        if name in _NUMBERS:
            widest = max(cell_len(line[place]) for line in (names, *lines))
            for line in (names, *lines):
                line[place] = line[place].rjust(widest)
    if marked:
        names[0] = f"  {names[0]}"
        for row, line in zip(rows, lines, strict=True):
            line[0] = f"{'*' if is_named(row, used) else ' '} {line[0]}"
    return "\n".join([table([tuple(line) for line in lines], tuple(names)), *_refusals(rows)])


def details_text(details: ModelDetails, now_ms: int) -> str:
    """Return everything about one model, a line a subject; `now_ms` is now, in wall milliseconds."""
    row = details.row
    kind = ", ".join(foreign(part, _LONG_NAME) for part in (row.parameters, row.quantisation, details.family) if part)
    trained = f"trained for {row.window:,} tokens" if row.window else "what it was trained for is not known"
    subjects = [
        ("from", row.provider),
        ("runs", details.where),
        ("size", size_text(row) + (f" ({kind})" if kind else "")),
        ("window", f"{trained}; Rune asks for {details.window:,} ({details.window_why})"),
        ("can", ", ".join(row.capabilities) or "not said"),
        ("loaded", _loaded_whole(row, now_ms)),
        ("acts by", _acting(details)),
        ("calls", f"{details.valid:,} valid, {details.repaired:,} repaired, {details.failed:,} failed"),
        ("weights", foreign(details.digest[:_DIGEST], _DIGEST)),
        ("refused", row.refused),
    ]
    lines = [foreign(row.name, _WIDEST), *(f"  {label:<{_LABEL}}{text}" for label, text in subjects if text)]
    if details.probe:
        lines += ["", *(f"  {line}" for line in probe_table(details.probe).splitlines())]
    return "\n".join(lines)


def probe_table(probe: Sequence[ProbeOutcome]) -> str:
    """Return the tasks of a probe, what came of each under both protocols, and how many passed."""
    tasks = dict.fromkeys(outcome.task for outcome in probe)
    by = {(outcome.task, outcome.protocol): outcome for outcome in probe}
    rows = [(task, _outcome(by.get((task, "native"))), _outcome(by.get((task, "constrained")))) for task in tasks]
    passed = {name: sum(each.passed for each in probe if each.protocol == name) for name in ("native", "constrained")}
    asked = len(tasks)
    rows.append(("passed", f"{passed['native']} of {asked}", f"{passed['constrained']} of {asked}"))
    return table(rows, ("probe", "native", "constrained"))


def probe_line(row: ProbeRow) -> str:
    """Return how far a probe is, in one line."""
    if row.outcome is None:
        return f"{row.done} of {row.total}  {row.protocol}: {row.task} ..."
    verdict = "ok" if row.outcome.passed else "no"
    took = "" if row.outcome.milliseconds is None else f", {row.outcome.milliseconds:,} ms"
    return f"{row.done} of {row.total}  {row.protocol}: {row.task}: {verdict}{took} ({row.outcome.seen})"


def pull_line(row: PullRow, columns: int, *, plain: bool = False, bar: bool = True) -> SafeText:
    """Return how far a pull is in at most `columns` cells: with little room its bar, then its speed are left out."""
    if row.total is None or row.done is None:
        return foreign(f"{row.model}  {row.status}", columns)
    part = min(row.done / row.total, 1.0) if row.total else 1.0
    size = _amount(row.total, row.total)
    always = [row.model, f"{int(part * 100):>3} %", f"{_amount(row.done, row.total).rjust(len(size))} of {size}"]
    if row.done >= row.total:
        more = [row.status]  # all of it came: what the server still does is worth saying
    else:
        more = [] if row.bytes_per_second is None else [_speed(row.bytes_per_second)]
        more += [] if row.seconds_left is None else [f"{time_text(row.seconds_left)} left"]
    # Room for what will stand there, not only for what does by now: a bar that shrinks would seem to go back.
    to_come = max(_FIGURES_TO_COME, cell_len("  ".join(["", *more])))
    cells = min(_CELLS, columns - cell_len("  ".join(always)) - to_come - _GAP - 2)
    if bar and cells >= _FEWEST_CELLS:
        full = int(part * cells)
        edges, begun, left = ("[]", "#", ".") if plain else ("\u2595\u258f", "\u2588", "\u2591")
        always.insert(1, f"{edges[0]}{begun * full}{left * (cells - full)}{edges[1]}")
    while more and cell_len("  ".join([*always, *more])) > columns:
        more.pop()
    return foreign("  ".join([*always, *more]), columns)


def removed_text(removed: Removed) -> str:
    """Return what removing a model came to."""
    if removed.shared_with:
        return f"removed {removed.model}; its weights stay, {', '.join(removed.shared_with)} is the same model"
    freed = "" if removed.freed is None else f"; up to {bytes_text(removed.freed)} are free again"
    return f"removed {removed.model}{freed}"


def time_text(seconds: float) -> str:
    """Return how long something takes: `40 s`, `3 min`, `2 h 5 min`."""
    whole = max(int(seconds), 1)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{-(-whole // _MINUTE)} min"
    minutes = whole // _MINUTE
    return f"{minutes // _MINUTE:,} h {minutes % _MINUTE} min"


def tokens_text(tokens: int) -> str:
    """Return tokens shortly: `16k` for 16,384, else the number."""
    return f"{tokens // _KIB:,}k" if tokens % _KIB == 0 else f"{tokens:,}"


def gpu_text(share: float | None) -> str:
    """Return how much of a loaded model lies on the GPU: `GPU`, `CPU`, `40% GPU`; "" not known."""
    if share is None:
        return ""
    return "CPU" if share == 0 else "GPU" if share >= _WHOLE else f"{max(int(share * 100), 1)}% GPU"


def _amount(size: int, total: int) -> str:
    """Return bytes of a total in the unit that suits the total: two units in one line are hard to compare."""
    return f"{size / _GIGABYTE:.1f} GB" if total >= _GIGABYTE else f"{size / _MEGABYTE:.0f} MB"


def _speed(bytes_per_second: float) -> str:
    megabytes = bytes_per_second / 1e6
    return f"{megabytes:,.0f} MB/s" if megabytes >= _WHOLE_MEGABYTES else f"{megabytes:.1f} MB/s"


def _cells(row: ModelRow) -> list[str]:
    able = [_ON.get(each, each) for each in _ABILITIES if each in row.capabilities]
    return [
        foreign(row.name, _WIDEST),
        foreign(row.provider, _WIDEST),
        where_text(row),
        size_text(row) if row.size is not None and row.size >= _MEGABYTE else "-",
        tokens_text(row.window) if row.window else "-",
        _loaded(row),
        ", ".join(able) or "-",
        row.protocol or "-",
    ]


def _narrow(names: list[str], lines: Sequence[list[str]], columns: int, *, kept: str) -> None:
    """Leave columns out until the names have room in so many cells, and cut those that have none."""
    wanted = min(_NAME, max(cell_len(line[0]) for line in (names, *lines)))
    for name in _LEFT_OUT:
        if name != kept and _left(names, lines, columns) < wanted:
            place = names.index(name)
            for line in (names, *lines):
                del line[place]
    for line in lines:
        line[0] = foreign(line[0], max(_left(names, lines, columns), 1))


def _left(names: Sequence[str], lines: Sequence[Sequence[str]], columns: int) -> int:
    """Return how many cells are left for the first column."""
    return columns - sum(
        max(cell_len(line[place]) for line in (names, *lines)) + _GAP for place in range(1, len(names))
    )


def _loaded(row: ModelRow) -> str:
    if not row.loaded:
        return "no"
    parts = [tokens_text(row.loaded_window) if row.loaded_window else "", gpu_text(row.on_gpu)]
    return " ".join(part for part in parts if part) or "yes"


def _loaded_whole(row: ModelRow, now_ms: int) -> str:
    if not row.loaded:
        return "no"
    share = gpu_text(row.on_gpu)
    parts = [
        f"a window of {row.loaded_window:,} tokens" if row.loaded_window else "",
        bytes_text(row.loaded_size) if row.loaded_size else "",
        {"GPU": "all of it on the GPU", "CPU": "none of it on a GPU"}.get(share, share and f"{share[:-4]} on the GPU"),
        f"until {foreign(on_the_clock(row.expires_at, now_ms), _LONG_NAME)}" if row.expires_at else "",
    ]
    return "yes: " + ", ".join(part for part in parts if part) if any(parts) else "yes"


def _acting(details: ModelDetails) -> str:
    row = details.row
    if row.protocol is None or row.protocol_basis is None:
        return ""
    why = f": {details.protocol_why}" if details.protocol_why and row.protocol_basis != "owner" else ""
    return f"{row.protocol} ({_BASIS[row.protocol_basis]}{why})"


def _outcome(outcome: ProbeOutcome | None) -> str:
    if outcome is None:
        return "-"
    took = "" if outcome.milliseconds is None else f" {outcome.milliseconds:,} ms"
    return ("ok" if outcome.passed else "no") + took


def _refusals(rows: Sequence[ModelRow]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refused:
            reasons.setdefault(row.refused, []).append(row.name)
    if not reasons:
        return []
    said = [
        f"cannot answer: {', '.join(foreign(name, _LONG_NAME) for name in names[:_NAMED])}"
        f"{f' and {len(names) - _NAMED} more' if len(names) > _NAMED else ''} ({reason})"
        for reason, names in reasons.items()
    ]
    return ["", *said]
