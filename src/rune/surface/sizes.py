"""How large something is, as a person says it."""


def size_text(count: int) -> str:
    """Return a number of bytes: `1 byte`, `120 bytes`, `12.3 kB`, `4.1 MB`, `2.0 GB`."""
    if count < 10_000:  # noqa: PLR2004 - so far every byte counts
        return "1 byte" if count == 1 else f"{count:,} bytes"
    value, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 1000:  # noqa: PLR2004 - a thousand is the next unit
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def counted(count: int, one: str, many: str = "") -> str:
    """Return `1 file`, `12 files`; `many` where an s at the end does not do."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
