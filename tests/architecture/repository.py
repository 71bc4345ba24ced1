"""What the architecture tests look at: this checkout's files and the shape of its Python."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "rune"
MADE_BY_TOOLS = {
    ".git",
    ".venv",
    ".venv.lock",
    "__pycache__",
    ".hypothesis",
    ".pytest_cache",
    ".ruff_cache",
    "build",
    "dist",
}


@cache
def project_files() -> tuple[Path, ...]:
    """Return all files that are, or may become, part of the repository: what git tracks or does not ignore.

    Without git, or in a tree that is no checkout: everything outside folders that tools make.
    """
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    if listing.returncode == 0:
        found = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not MADE_BY_TOOLS & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in found if path.is_file()))


def python_files(*folders: str) -> tuple[Path, ...]:
    """Return the project's Python files below these folders of the root."""
    wanted = tuple(ROOT / folder for folder in folders)
    return tuple(
        path for path in project_files() if path.suffix == ".py" and any(path.is_relative_to(top) for top in wanted)
    )


def text_files() -> Iterator[tuple[str, str]]:
    """Yield path and text of every file of the project that is text, recorded test data aside."""
    for path in project_files():
        if path.is_relative_to(ROOT / "tests" / "data"):
            continue
        try:
            yield name_of(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an image or the like holds no words


def name_of(path: Path) -> str:
    """Return the path as it stands in messages: relative to the root."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_bytes(), filename=str(path))
