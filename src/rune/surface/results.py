"""What a command answers, for every surface."""

from typing import Any

import msgspec


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """`text` for a person (plain, may hold foreign text: a terminal shows it through `safe_text`),
    `data` for programs. `ok` False: the command could not do what was asked.
    """

    text: str
    data: dict[str, Any]
    ok: bool = True


def table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> str:
    """Return rows as aligned columns; the last one is not padded."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell if column == len(line) - 1 else cell.ljust(widths[column]) for column, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
