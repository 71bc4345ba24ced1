"""Sixty secrets, and the forms in which they are planted and looked for."""

import base64
import json
import random
import string
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

_LETTERS = string.ascii_letters + string.digits
_ALPHABETS = (
    _LETTERS,
    _LETTERS + "+/=",
    _LETTERS + "_-.",
    _LETTERS + "!$%&*#@^~",
    _LETTERS + "\"\\'<>",
    _LETTERS + "äöüß€",
)
_BEFORE = b"user:"
_NAMES = ("DB_PASSWORD", "API_KEY", "SERVICE_TOKEN", "CLIENT_SECRET", "AUTH_CREDENTIALS")


class Planted(NamedTuple):
    """`known` are values of the environment, by name; `shaped` look like keys of known services."""

    known: dict[str, str]
    shaped: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        return (*self.known.values(), *self.shaped)

    @property
    def plain(self) -> tuple[str, ...]:
        """Those that a file's name can hold."""
        return tuple(value for value in self.values if set(value) <= set(_LETTERS + "_-") and len(value) < 100)

    def planted(self) -> list[str]:
        """Return all that is put into files and output: what is known in six forms, what has a shape as it is."""
        return [*(form for value in self.known.values() for form in six_forms(value)), *self.shaped]

    def sought(self) -> list[str]:
        """Return what must be found nowhere: as planted, but in base64 without the ends, which tell nothing alone."""
        forms = (six_forms(value) for value in self.known.values())
        return [*(form for raw, base, *others in forms for form in (raw, _inner(base), *others)), *self.shaped]

    def found_in(self, data: bytes) -> list[str]:
        """Return which of them occur in some bytes, in whatever form."""
        return [form for form in self.sought() if form.encode() in data]

    def found_under(self, folder: Path) -> list[str]:
        """Return where they occur in files below a folder, and in the files' names; what holds whole files, to give
        them back or to compare them, is left out.
        """
        found: list[str] = []
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if inside.parts[0] in {"undo", "trusted"}:
                continue
            held = str(inside).encode() + (path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
            found += [f"{inside}: {form}" for form in self.found_in(held)]
        return found


def six_forms(value: str) -> tuple[str, ...]:
    """Return a value raw, in base64, in hex, for a URL, in JSON, and reversed."""
    data = value.encode()
    return (
        value,
        base64.b64encode(_BEFORE + data).decode(),
        data.hex(),
        quote(value, safe=""),
        json.dumps(value)[1:-1],
        value[::-1],
    )


def _inner(text: str) -> str:
    return text[len(base64.b64encode(_BEFORE)) :].rstrip("=")[:-1]


def plant(seed: int) -> Planted:
    """Draw sixty."""
    chance = random.Random(seed)  # noqa: S311 - no secret has to be kept

    def drawn(alphabet: str, length: int) -> str:
        # A digit, a capital and a small letter first: what has none of them is a word.
        return "7Kq" + "".join(chance.choice(alphabet) for _ in range(length - 3))

    known = {
        f"{_NAMES[number % len(_NAMES)]}_{number}": drawn(_ALPHABETS[number % len(_ALPHABETS)], chance.randint(12, 48))
        for number in range(40)
    }
    dotted = f"eyJ{drawn(_LETTERS, 30)}.eyJ{drawn(_LETTERS, 40)}.{drawn(_LETTERS, 43)}"
    shaped = [
        *(f"gh{kind}_{drawn(_LETTERS, 36)}" for kind in "pousr"),
        f"github_pat_{drawn(_LETTERS, 60)}",
        f"glpat-{drawn(_LETTERS, 20)}",
        f"gldt-{drawn(_LETTERS, 20)}",
        f"xoxb-{drawn(_LETTERS, 40)}",
        f"xapp-1-{drawn(_LETTERS, 40)}",
        f"sk-ant-{drawn(_LETTERS, 60)}",
        f"sk-{drawn(_LETTERS, 48)}",
        f"AIza{drawn(_LETTERS, 35)}",
        f"GOCSPX-{drawn(_LETTERS, 28)}",
        f"npm_{drawn(_LETTERS, 36)}",
        f"hf_{drawn(_LETTERS, 34)}",
        f"sk_live_{drawn(_LETTERS, 24)}",
        f"AKIA{''.join(chance.choice('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567') for _ in range(16))}",
        f"SG.{drawn(_LETTERS, 22)}.{drawn(_LETTERS, 43)}",
        dotted,
    ]
    return Planted(known, tuple(shaped))
