"""A module has at most 400 lines, a function 60, a class 20 public methods."""

import ast
from collections.abc import Iterator

from tests.architecture.repository import name_of, python_files, tree_of

BUDGET = {"module lines": 400, "function lines": 60, "public methods": 20}

# What may be larger, as `"kind path::name": (size allowed, reason)`. A row that is no longer needed fails.
EXCEPTIONS: dict[str, tuple[int, str]] = {}

Measured = tuple[str, str, int]


def measured() -> Iterator[Measured]:
    """Yield kind, place and size of everything that has a budget."""
    for path in python_files("src", "tests", "benchmarks", "scripts"):
        place = name_of(path)
        yield "module lines", place, len(path.read_bytes().splitlines())
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield "function lines", f"{place}::{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, ast.ClassDef):
                yield "public methods", f"{place}::{node.name}", _public_methods(node)


def _public_methods(node: ast.ClassDef) -> int:
    names = {child.name for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)}
    # A test is a sentence, not something that others call: a contract suite may have many.
    return sum(not name.startswith(("_", "test_")) for name in names)


def _allowed(kind: str, place: str) -> int:
    return EXCEPTIONS.get(f"{kind} {place}", (BUDGET[kind], ""))[0]


def test_nothing_is_larger_than_its_budget() -> None:
    too_large = [
        f"{place}: {size} {kind}, at most {_allowed(kind, place)}"
        for kind, place, size in measured()
        if size > _allowed(kind, place)
    ]
    assert not too_large, "split by noun:\n" + "\n".join(too_large)


def test_every_exception_is_needed_and_has_a_reason() -> None:
    over = {f"{kind} {place}" for kind, place, size in measured() if size > BUDGET[kind]}
    stale = [row for row, (_, reason) in EXCEPTIONS.items() if row not in over or not reason.strip()]
    assert not stale, f"remove these rows: {stale}"
