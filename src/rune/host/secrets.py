"""Which values of this process's surroundings are secrets (threats T8, tools.md, Secrets)."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

MIN_LENGTH = 8
"""Shorter values would be found inside ordinary words."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|AUTH|CRED|JWT|BEARER|DSN")
# Words that hold one of those and mean something else.
_INNOCENT = re.compile(r"AUTHOR(?!I[SZ])S?|KEYBOARD|KEYMAP|KEYRING|BYPASS|COMPASS|PASSENGER|TOKENIZERS?|MONKEY|ASKPASS")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:$|(?:Applications|Library|System|Users|bin|boot|data|dev|etc|home|lib|media|mnt"
    r"|nix|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|usr|var|work|workspace)(?:[/\\]|$))"
)
_RELATIVE_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)[/\\]")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.]+(Z|[+-]\d\d:?\d\d)?)?")
_PLAIN_WORDS = frozenset(
    {"changeme", "default", "disabled", "enabled", "external", "internal", "interactive", "optional", "password",
     "prompt", "required", "undefined", "unlimited"}
)  # fmt: skip


class Secret(NamedTuple):
    """A value that must not be shown, and the name that is shown instead. A plain pair for whoever masks; its
    `repr` leaves the value out, and it is never stored.
    """

    name: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"


def collect_secrets(
    environ: Mapping[str, str], config_values: Mapping[str, str], *, named: Collection[str] = ()
) -> tuple[Secret, ...]:
    """Return the secrets of the environment and of the configuration, each value once, in that order.

    `named` are variables that the configuration says hold a key: their values count whatever they look like.

    A value counts when its name looks secret and it has `MIN_LENGTH` characters or more, unless it
    plainly is none: a path, a moment, a word such as `required`, an address without a password. The
    password inside an address (`postgres://me:...@host`) counts whatever the name is.
    """
    found: dict[str, Secret] = {}
    for name in named:
        value = environ.get(name, "").strip()
        if len(value) >= MIN_LENGTH:
            found[value] = Secret(name, value)
    for values in (environ, config_values):
        for name, value in values.items():
            for secret in _secrets_of(name, value.strip()):
                found.setdefault(secret.value, secret)
    return tuple(found.values())


def is_secret_name(name: str) -> bool:
    """Say whether a variable or key of that name is likely to hold a secret."""
    words = _INNOCENT.sub("", name.upper())
    return words not in ("PWD", "OLDPWD") and _SECRET_NAME.search(words) is not None


def _secrets_of(name: str, value: str) -> Iterator[Secret]:
    if len(value) < MIN_LENGTH:
        return
    password = _password_in(value)
    if password is not None:
        for form in dict.fromkeys((password, unquote(password))):
            if len(form) >= MIN_LENGTH:
                yield Secret(name, form)
    elif is_secret_name(name) and not _plainly_none(value):
        yield Secret(name, value)


def _password_in(value: str) -> str | None:
    """Return the password of an address that has one, as it is written there."""
    try:
        return urlsplit(value).password if "://" in value else None
    except ValueError:
        return None  # no address after all, so it is judged as any other value


def _plainly_none(value: str) -> bool:
    if value.lower() in _PLAIN_WORDS or _MOMENT.fullmatch(value):
        return True
    if _PATH.match(value) or _RELATIVE_PATH.match(value):
        return True
    return value.startswith(("http://", "https://")) and "?" not in value and "#" not in value
