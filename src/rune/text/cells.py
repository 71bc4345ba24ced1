"""How many cells of a terminal a text takes."""


def cell_len(text: str) -> int:
    """Return the width of a text in cells: wide characters take two, marks that join take none."""
    if text.isascii() and text.isprintable():
        return len(text)
    # Late: what only answers a message loads nothing of what draws a screen.
    from rich import cells  # noqa: PLC0415 see above

    return cells.cell_len(text)
