"""What a secret looks like whose value nobody told us: keys, tokens, passwords in their usual dress.

Each pattern starts behind a fixed word (`needles`) and has no part that can be read in two ways, so
a search is linear in the text. A pattern that would also fit prose asks `looks_random`. None begins
right behind a `]`, where a mark may stand that was something else before: masking stays idempotent.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_RUNS_OF_LETTERS = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_WORDS = re.compile(r"[A-Za-z]?[a-z]*(?:[._/-][A-Za-z]?[a-z]*)*")
# A variable, a template, a path, a line of /etc/passwd.
_REFERENCE = re.compile(r"[$<{%*\[]|~?/[a-z]{2,}/|(?:~|\.{1,2})/|x:\d")
_PLACEHOLDERS = frozenset({"pass", "passwd", "password", "pw", "pwd", "secret", "token", "xxx", "xxxx", "..."})


class Shape(NamedTuple):
    """`needles`: without one of them in a text, the pattern is not tried. `accepts`: asked about the group
    `secret` of a match; None accepts all.
    """

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None = None


def looks_random(value: str) -> bool:
    """Say whether a value is more likely drawn by lot, or mixed as passwords are, than written as words."""
    value = value[:_JUDGED_BY]
    kinds = sum(
        (
            any(char.islower() for char in value),
            any(char.isupper() for char in value),
            any(char.isdigit() for char in value),
            any(not char.isalnum() for char in value),
        )
    )
    letters = sum(char.isalpha() for char in value)
    # Separators repeat themselves; numbers and moments have hardly a letter.
    if len(set(value)) < _FEWEST_CHARACTERS or letters * 6 < len(value):
        return False
    if sum(len(run) for run in _RUNS_OF_LETTERS.findall(value)) * 2 > len(value):
        return False
    shortest = _SHORTEST_BY_KINDS.get(kinds)
    return shortest is not None and len(value) >= shortest


def _has_digit(value: str) -> bool:
    return any(char.isdigit() for char in value)


def _is_no_stand_in(value: str) -> bool:
    """Say whether a value is more than `$TOKEN`, `<your key>`, `your-token-here`."""
    return _REFERENCE.match(value) is None and value not in _PLACEHOLDERS and _WORDS.fullmatch(value) is None


def _is_password(value: str) -> bool:
    return _REFERENCE.match(value) is None and value.lower() not in _PLACEHOLDERS


def _is_mixed(value: str) -> bool:
    return _REFERENCE.match(value) is None and looks_random(value)


_FEWEST_CHARACTERS = 6
# Two kinds of characters (letters and digits, say) are common in names too; a secret made of two is longer.
_SHORTEST_BY_KINDS = {2: 16, 3: 8, 4: 8}
# A longer value is judged by its beginning.
_JUDGED_BY = 512
_IN_ANY_CASE = re.IGNORECASE | re.ASCII

SHAPES: tuple[Shape, ...] = (
    Shape(
        "private-key",
        ("private key",),
        # Not possessive: before Python 3.11.5 a possessive group with alternatives matched nothing here.
        re.compile(
            r"(?P<secret>-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----))*-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{40,})+))"
        ),
    ),
    Shape(
        "url-password",
        ("://",),
        re.compile(r"://[^\s/@:\"'<>\[\]]{0,64}:(?P<secret>[^\s/@\"'<>\[\]]{1,256})@"),
        _is_password,
    ),
    Shape(
        "jwt",
        ("eyj",),
        re.compile(r"(?<![A-Za-z0-9_\]-])(?P<secret>eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"),
    ),
    Shape(
        "aws-access-key-id",
        ("akia", "asia"),
        re.compile(r"(?<![A-Za-z0-9\]])(?P<secret>A(?:KIA|SIA)[A-Z2-7]{16})"),
    ),
    Shape(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(r"(?<![A-Za-z0-9_\]])(?P<secret>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
        _has_digit,
    ),
    Shape(
        "gitlab-token",
        ("gl",),
        re.compile(r"(?<![A-Za-z0-9_\]-])(?P<secret>gl(?:pat|dt|rt|ptt|cbt|oas|soat|agent|ft|imt)-[A-Za-z0-9_-]{20,})"),
        _has_digit,
    ),
    Shape(
        "slack-token",
        ("xox", "xapp-"),
        re.compile(r"(?<![A-Za-z0-9_\]-])(?P<secret>xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,})"),
        _has_digit,
    ),
    Shape(
        "slack-webhook",
        ("hooks.slack.com",),
        re.compile(r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/]{20,})"),
        _has_digit,
    ),
    Shape(
        "anthropic-key",
        ("sk-ant-",),
        re.compile(r"(?<![A-Za-z0-9_\]-])(?P<secret>sk-ant-[A-Za-z0-9_-]{20,})"),
        _has_digit,
    ),
    Shape(
        "openai-key",
        ("sk-",),
        re.compile(r"(?<![A-Za-z0-9_\]-])(?P<secret>sk-[A-Za-z0-9_-]{20,})"),
        looks_random,
    ),
    Shape(
        "google-key",
        ("aiza", "ya29.", "gocspx-"),
        re.compile(
            r"(?<![A-Za-z0-9_\]-])(?P<secret>AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})"
        ),
        _has_digit,
    ),
    Shape(
        "access-token",
        ("npm_", "pypi-", "hf_", "_live_", "_test_", "sg.", "_v1_", "age-secret-key-", "glsa_"),
        re.compile(
            r"(?<![A-Za-z0-9_\]-])(?P<secret>npm_[A-Za-z0-9]{36,}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}"
            r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
            r"|do[opr]_v1_[a-f0-9]{64}|AGE-SECRET-KEY-1[A-Z0-9]{58}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8})"
        ),
        _has_digit,
    ),
    Shape(
        "authorization",
        ("authorization",),
        re.compile(
            r"authorization[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:bearer|basic|token|bot|apikey|digest)[ \t]{1,3}"
            r"(?P<secret>[a-z0-9._~+/=-]{8,})",
            _IN_ANY_CASE,
        ),
        _is_no_stand_in,
    ),
    Shape(
        "bearer",
        ("bearer",),
        re.compile(r"bearer[ \t]{1,3}(?P<secret>[a-z0-9._~+/=-]{16,})", _IN_ANY_CASE),
        looks_random,
    ),
    Shape(
        "password",
        ("password", "passwd", "passphrase", "pwd", "secret", "token", "key", "credential"),
        re.compile(
            r"(?<!\[)(?:pass(?:word|wd|phrase)|pwd|secret|token|credential|(?:api|access|private)[_-]?key)"
            r"[a-z0-9_-]{0,40}+(?:[\"'`]\]?)?[ \t]{0,8}+(?:=>|:=|==?|:)[ \t]{0,8}+"
            r"(?P<quote>[\"'`])?(?P<secret>(?(quote)[^\"'`\s]|[^\s\"'`<>\[\]{}(),;&|]){8,})",
            _IN_ANY_CASE,
        ),
        _is_mixed,
    ),
)
"""In the order in which they are tried: what is told apart by its form before what is told by its surroundings."""
