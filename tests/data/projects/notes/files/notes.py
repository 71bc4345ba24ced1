"""Reads notes: one a line, `name: text`."""


def parse(text: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    lines = text.split("\n")
    for number in range(len(lines) - 1):
        line = lines[number].strip()
        if not line:
            continue
        name, _, rest = line.partition(":")
        notes[name.strip()] = rest.strip()
    return notes


def render(notes: dict[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in notes.items())
