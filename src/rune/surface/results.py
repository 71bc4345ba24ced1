"""What a command answers, for every surface."""

from typing import Any, Final, Literal

import msgspec

from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.text.cells import cell_len

# What a command lays out by itself takes at most so many columns: 80, less the margins that an app has.
WIDTH: Final = 76


class ModelWork(msgspec.Struct, frozen=True, kw_only=True):
    """What takes long and shows how far it is: to fetch the model called `model`, or to measure it. A surface runs it
    with `Models.pull` or `Models.probe`.
    """

    kind: Literal["pull", "probe"]
    model: str


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """`text` for a person (plain, may hold foreign text: a terminal shows it through `safe_text`),
    `data` for programs. `ok` False: the command could not do what was asked.

    `opens` is the conversation that a surface goes to now, `model` the one that answers from the next message on:
    where there is no conversation yet, a surface passes it on with the first, and so with `thinking`, how much a model
    thinks from then on, and `permission`, what tools may do without asking. None: it stays as it is. `runs` is what
    the surface does now and shows the progress of; the command itself has done nothing yet then.
    """

    text: str
    data: dict[str, Any]
    ok: bool = True
    opens: str | None = None
    model: str | None = None
    thinking: Thinking | None = None
    permission: PermissionMode | None = None
    runs: ModelWork | None = None


def table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Return rows as columns that are aligned by the cells of a terminal; the last one is not padded."""
    lines = [header, *rows]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell if column == len(line) - 1 else cell + " " * (widths[column] - cell_len(cell))
            for column, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
