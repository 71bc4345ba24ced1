"""The totals of known test runners, linters and formatters, found in what they wrote: one line for a card."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

_LONGEST: Final = 120
_PYTEST: Final = re.compile(
    r"^(?:=+ )?((?:\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun)(?:, )?)+"
    r"|no tests ran)(?: in [\d.:hms ()]+)?(?: =+)?$",
    re.MULTILINE,
)
_UNITTEST: Final = re.compile(r"^Ran (\d+) tests? in .*\n+(OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?$", re.MULTILINE)
_NODE: Final = re.compile(r"^(?:#|\u2139) (tests|pass|fail|skipped|todo) (\d+)$", re.MULTILINE)
_CARGO: Final = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
_GO: Final = re.compile(r"^(ok|FAIL|---? FAIL:)[ \t]+\S+", re.MULTILINE)
_JEST: Final = re.compile(r"^ *Tests:? +(\d.*)$", re.MULTILINE)
_MOCHA: Final = re.compile(r"^ *(\d+) (passing|failing|pending)\b", re.MULTILINE)
_CHECKERS: Final = (
    re.compile(r"^(Found \d+ errors?\b[^\n]*)$", re.MULTILINE),  # ruff
    re.compile(r"^(All checks passed!)$", re.MULTILINE),
    re.compile(r"^\W*(\d+ problems? \(.*\))$", re.MULTILINE),  # eslint
    re.compile(r"^(\d+ files? (?:re)?formatted.*|\d+ files? (?:already formatted|left unchanged).*)$", re.MULTILINE),
)


def totals_of(output: str) -> str:
    """Return the totals that a runner wrote last ("2 failed, 5 passed"), in one line; "" for one that is not known."""
    for find in (_pytest, _unittest, _node, _cargo, _jest, _mocha, _go, _checker):
        if found := find(output):
            return found[:_LONGEST]
    return ""


def nothing_ran(totals: str) -> bool:
    """Say whether totals tell that there was no test at all: some runners call that a success."""
    return totals == "no tests ran"


def _pytest(output: str) -> str:
    found = _PYTEST.findall(output)
    return found[-1] if found else ""


def _unittest(output: str) -> str:
    found = _UNITTEST.findall(output)
    if not found:
        return ""
    total, verdict, parts = found[-1]
    counts = {name: int(count) for name, _, count in (part.partition("=") for part in parts.split(", ")) if count}
    if total == "0" and verdict != "FAILED":
        return "no tests ran"
    failed = counts.get("failures", 0) + counts.get("errors", 0) + counts.get("unexpected successes", 0)
    skipped = counts.get("skipped", 0)
    passed = int(total) - failed - skipped - counts.get("expected failures", 0)
    return _counted({"failed": failed, "passed": max(passed, 0), "skipped": skipped})


def _node(output: str) -> str:
    counts = {name: int(count) for name, count in _NODE.findall(output)}
    if "tests" not in counts or "pass" not in counts:
        return ""
    if not counts["tests"]:
        return "no tests ran"
    return _counted({"failed": counts.get("fail", 0), "passed": counts["pass"], "skipped": counts.get("skipped", 0)})


def _cargo(output: str) -> str:
    found = [tuple(map(int, counts)) for counts in _CARGO.findall(output)]
    if not found:
        return ""
    passed, failed, ignored = (sum(column) for column in zip(*found, strict=True))
    return _counted({"failed": failed, "passed": passed, "skipped": ignored}) or "no tests ran"


def _jest(output: str) -> str:
    found = _JEST.findall(output)
    return re.sub(r"\s*\|\s*", ", ", found[-1]).strip() if found else ""


def _mocha(output: str) -> str:
    words = {"failing": "failed", "passing": "passed", "pending": "skipped"}
    counts = {words[word]: int(count) for count, word in _MOCHA.findall(output)}
    return _counted({name: counts.get(name, 0) for name in ("failed", "passed", "skipped")})


def _go(output: str) -> str:
    said = list(_GO.findall(output))
    packages = {"failed": said.count("FAIL"), "ok": said.count("ok")}
    text = _counted(packages)
    return f"packages: {text}" if text else ""


def _checker(output: str) -> str:
    found: Iterable[str] = (matches[-1] for pattern in _CHECKERS if (matches := pattern.findall(output)))
    return next(iter(found), "")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
