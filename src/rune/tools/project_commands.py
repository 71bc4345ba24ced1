"""Which program a project tests, checks and formats itself with: told by its files, nothing is run for it.

Each candidate says by what it was found. What a project configures goes before what is merely installed, and when a
file is named, a program for its language goes first.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

from rune.errors import InvalidArgumentsError, ToolError
from rune.tools.project_facts import ProjectFacts

Purpose = Literal["test", "lint", "format"]
Targets = Literal["word", "plain", "name", "package", "none"]
"""How a target is given to a program: as a word of its own; the same, but only of plain characters (it goes through the
shell of a package manager); the name of a test; a Go package; not at all."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:@=+,-]+")
_PY: Final = (".py", ".pyi")
_JS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_PRETTY: Final = (
    *(*_JS, ".css", ".scss", ".less", ".json", ".json5", ".html", ".vue", ".hbs"),
    *(".md", ".mdx", ".yaml", ".yml", ".graphql"),
)
_PYTEST_FILE: Final = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_NODE_TEST: Final = re.compile(r"(^|/)(test-[^/]*|[^/]*[.\-_]test|test)\.[mc]?js$|(^|/)test/[^/]*\.[mc]?js$")
_ESLINT: Final = re.compile(r"(eslint\.config\.[mc]?[jt]s|\.eslintrc(\..*)?)$")
_NO_TEST: Final = "no test specified"  # what npm writes into a new package.json
_SHELL_TESTS: Final = (
    *("test.sh", "tests.sh", "run_tests.sh", "tests/run.sh", "tests/test.sh", "test/run.sh", "test/test.sh"),
    *("tests/run_tests.sh", "scripts/test", "scripts/test.sh"),
)
_MOST_FILES: Final = 200
_LOOKED_FOR: Final[Mapping[Purpose, str]] = {
    "test": "pytest or unittest (test_*.py), a test script in package.json, *.test.js, Cargo.toml, go.mod, a makefile "
    "with test or check, test.sh, tests/run.sh",
    "lint": "ruff, flake8, a lint script in package.json, eslint, Cargo.toml, go.mod, shellcheck, a makefile with lint",
    "format": "ruff, black, a format script in package.json, prettier, Cargo.toml, go.mod, a makefile with format",
}
_WORDS: Final[Mapping[Purpose, str]] = {"test": "test runner", "lint": "linter", "format": "formatter"}


class ProjectCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One program, ready to run. `name` is what people call it, `why` by what it was found. `otherwise` stands at the
    end when no target is given, `before` in front of one. `suffixes` are those of its language, () for any. `writes`
    are those of the files that a formatter may change, () where that cannot be known.
    """

    name: str
    argv: tuple[str, ...]
    why: str
    targets: Targets = "word"
    otherwise: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def words(self, target: str) -> tuple[str, ...]:
        """Return the argv for a target ("" for all of the project), which is one word of it.

        Raises InvalidArgumentsError for one that this program cannot take.
        """
        if not target:
            return (*self.argv, *self.otherwise)
        if target.startswith("-") or "\0" in target:
            raise InvalidArgumentsError(
                f"{target!r} is no target: options are not taken here; use run_command for them"
            )
        match self.targets:
            case "none":
                raise InvalidArgumentsError(f"{self.name} works on the whole project: call it without a target")
            case "plain" if not _PLAIN.fullmatch(target):
                raise InvalidArgumentsError(f"{self.name} takes only plain names and paths, not {target!r}")
            case "name" if "/" in target or target.endswith(self.suffixes):
                raise InvalidArgumentsError(f"{self.name} takes the name of a test, not a file: {target!r}")
            case "package":
                target = _package(target)
            case _:
                pass
        return (*self.argv, *self.before, target)


def detect(purpose: Purpose, facts: ProjectFacts, target: str = "") -> ProjectCommand:
    """Return the project's own program. Raises ToolError, which says what was looked for, when there is none."""
    absent: list[str] = []
    found = list(_CANDIDATES[purpose](facts, absent.append))
    if not found:
        said = f" {'; '.join(absent)}." if absent else ""
        raise ToolError(
            f"no {_WORDS[purpose]} of this project was found.{said} Looked for: {_LOOKED_FOR[purpose]}",
            hint="Use run_command with the right command.",
        )
    suffix = PurePosixPath(target.partition("::")[0]).suffix
    for command in found:
        if suffix and suffix in command.suffixes:
            return command
    return found[0]


def _tests(facts: ProjectFacts, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    yield from _python_tests(facts, absent)
    yield from _script(facts, "test", absent)
    yield from _node_tests(facts, absent)
    yield from _cargo(facts, ("test",), absent, targets="name")
    yield from _go(facts, ("test",), absent)
    yield from _make(facts, ("test", "check"), absent)
    yield from _shell_tests(facts)


def _python_tests(facts: ProjectFacts, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    why = _pytest_sign(facts)
    files = sorted(path for path in facts.paths if _PYTEST_FILE.search(path))
    why = why or (f"{files[0]} is there" if files else "")
    if not why:
        return
    python = next((each for each in facts.pythons if "pytest" in each.modules), None)
    if python is not None:
        argv = (python.program, "-m", "pytest", "-q")
        yield ProjectCommand(name="pytest", argv=argv, why=f"{why}; pytest of {python.named}", suffixes=_PY)
    elif program := facts.program("pytest"):
        yield ProjectCommand(name="pytest", argv=(program, "-q"), why=f"{why}; {program}", suffixes=_PY)
    elif facts.pythons:
        python = facts.pythons[0]
        tops = [top for top in ("tests", "test") if any(path.startswith(f"{top}/") for path in files)]
        # Python looks into folders only where they are packages; tests often lie in one that is none.
        start = ("-s", tops[0]) if tops and f"{tops[0]}/__init__.py" not in facts.paths else ()
        yield ProjectCommand(
            name="unittest",
            argv=(python.program, "-m", "unittest"),
            otherwise=("discover", *start),
            why=f"{why}; pytest is not installed for {python.named}",
            suffixes=_PY,
        )
    else:
        absent(f"{why}, but there is no python3")


def _pytest_sign(facts: ProjectFacts) -> str:
    if "pytest" in facts.pyproject:
        return "pyproject.toml configures pytest"
    signs = ("pytest.ini", "conftest.py", "tests/conftest.py")
    if name := next((name for name in signs if name in facts.paths), ""):
        return f"{name} is there"
    for name, section in (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")):
        if section in facts.texts.get(name, ""):
            return f"{name} configures pytest"
    return ""


def _script(facts: ProjectFacts, name: str, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    script = facts.scripts.get(name, "")
    if not script or _NO_TEST in script:
        return
    manager = next(
        (manager for lock, manager in (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")) if lock in facts.paths), "npm"
    )
    program = facts.program(manager)
    if not program:
        absent(f"package.json has a script {name}, but {manager} is not installed")
        return
    yield ProjectCommand(
        name=f"{manager} run {name}",
        argv=(program, "run", name),
        why=f"package.json has a script {name}: {script}",
        targets="plain" if name == "test" else "none",
        before=("--",) if manager == "npm" else (),
        suffixes=_JS,
        writes=_PRETTY if "prettier" in script else (),
    )


def _node_tests(facts: ProjectFacts, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    file = min((path for path in facts.paths if _NODE_TEST.search(path)), default="")
    if file and (program := facts.program("node")):
        yield ProjectCommand(name="node --test", argv=(program, "--test"), why=f"{file} is there", suffixes=_JS)
    elif file:
        absent(f"{file} is there, but node is not installed")


def _cargo(
    facts: ProjectFacts, words: tuple[str, ...], absent: Callable[[str], None], *, targets: Targets = "none"
) -> Iterator[ProjectCommand]:
    needs = {"clippy": "cargo-clippy", "fmt": "cargo-fmt"}.get(words[0], "cargo")
    if "Cargo.toml" not in facts.paths:
        return
    program = facts.program("cargo")
    if not program or not facts.program(needs):
        absent(f"Cargo.toml is there, but {needs} is not installed")
        return
    yield ProjectCommand(
        name=f"cargo {words[0]}",
        argv=(program, *words),
        why="Cargo.toml is there",
        targets=targets,
        suffixes=(".rs",),
        writes=(".rs",),
    )


def _go(facts: ProjectFacts, words: tuple[str, ...], absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    if "go.mod" not in facts.paths:
        return
    if program := facts.program("go"):
        yield ProjectCommand(
            name=f"go {words[0]}",
            argv=(program, *words),
            otherwise=("./...",),
            why="go.mod is there",
            targets="package",
            suffixes=(".go",),
        )
    else:
        absent("go.mod is there, but go is not installed")


def _make(facts: ProjectFacts, names: tuple[str, ...], absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    name, makefile = facts.make_target(*names)
    if name and (program := facts.program("make")):
        yield ProjectCommand(
            name=f"make {name}", argv=(program, name), why=f"{makefile} has a target {name}", targets="none"
        )
    elif name:
        absent(f"{makefile} has a target {name}, but make is not installed")


def _shell_tests(facts: ProjectFacts) -> Iterator[ProjectCommand]:
    script = next((path for path in _SHELL_TESTS if path in facts.paths), "")
    shell = facts.program("bash") or facts.program("sh")
    if script and shell:
        yield ProjectCommand(name=script, argv=(shell, script), why=f"{script} is there", suffixes=(".sh",))


def _linters(facts: ProjectFacts, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    yield from _python_tool(facts, "ruff", ("check",), absent)
    yield from _python_tool(facts, "flake8", (), absent)
    yield from _script(facts, "lint", absent)
    eslint = next((path for path in sorted(facts.paths) if _ESLINT.match(path)), "")
    yield from _node_tool(facts, "eslint", (), eslint, absent)
    yield from _cargo(facts, ("clippy",), absent)
    yield from _go(facts, ("vet",), absent)
    yield from _make(facts, ("lint",), absent)
    scripts = sorted(path for path in facts.paths if path.endswith((".sh", ".bash")))
    if scripts and (program := facts.program("shellcheck")):
        yield ProjectCommand(
            name="shellcheck",
            argv=(program,),
            otherwise=tuple(f"./{path}" for path in scripts[:_MOST_FILES]),
            why=f"{scripts[0]} is there",
            suffixes=(".sh", ".bash"),
        )


def _formatters(facts: ProjectFacts, absent: Callable[[str], None]) -> Iterator[ProjectCommand]:
    black_first = "black" in facts.pyproject
    names = (("black", ()), ("ruff", ("format",))) if black_first else (("ruff", ("format",)), ("black", ()))
    for name, words in names:
        yield from _python_tool(facts, name, words, absent)
    yield from _script(facts, "format", absent)
    prettier = next((path for path in sorted(facts.paths) if path.startswith((".prettierrc", "prettier.config."))), "")
    sign = prettier or ("package.json" if "package.json" in facts.paths and "prettier" in facts.tools else "")
    yield from _node_tool(facts, "prettier", ("--write",), sign, absent)
    yield from _cargo(facts, ("fmt",), absent)
    if "go.mod" in facts.paths and (program := facts.program("gofmt")):
        yield ProjectCommand(
            name="gofmt",
            argv=(program, "-l", "-w"),
            otherwise=(".",),
            why="go.mod is there",
            suffixes=(".go",),
            writes=(".go",),
        )
    yield from _make(facts, ("format", "fmt"), absent)


def _python_tool(
    facts: ProjectFacts, name: str, words: tuple[str, ...], absent: Callable[[str], None]
) -> Iterator[ProjectCommand]:
    """Yield a checker of Python: where it is configured, or installed and there is Python to check."""
    configured = name in facts.pyproject or any(path in facts.paths for path in (f"{name}.toml", f".{name}.toml"))
    configured = configured or f".{name}" in facts.paths
    configured = configured or any(f"[{name}]" in facts.texts.get(path, "") for path in ("setup.cfg", "tox.ini"))
    if not configured and not facts.has(".py"):
        return
    python = next((each for each in facts.pythons if name in each.modules), None)
    argv = (program,) if (program := facts.program(name)) else (python.program, "-m", name) if python else ()
    if argv:
        why = f"{name} is configured" if configured else f"there are Python files, and {name} is installed"
        yield ProjectCommand(
            name=name, argv=(*argv, *words), otherwise=(".",), why=why, suffixes=_PY, writes=(*_PY, ".ipynb")
        )
    elif configured:
        absent(f"{name} is configured and not installed")


def _node_tool(
    facts: ProjectFacts, name: str, words: tuple[str, ...], sign: str, absent: Callable[[str], None]
) -> Iterator[ProjectCommand]:
    if sign and (program := facts.program(name)):
        yield ProjectCommand(
            name=name,
            argv=(program, *words),
            otherwise=(".",),
            why=f"{sign} is there",
            suffixes=_JS,
            writes=_PRETTY,
        )
    elif sign:
        absent(f"{sign} is there, but {name} is not installed")


def _package(target: str) -> str:
    """Return a path as the name of a Go package."""
    path = PurePosixPath(target)
    folder = path.parent if path.suffix == ".go" else path
    return target if target.startswith("./") and path.suffix != ".go" else f"./{folder.as_posix().removeprefix('./')}"


_CANDIDATES: Final[Mapping[Purpose, Callable[[ProjectFacts, Callable[[str], None]], Iterator[ProjectCommand]]]] = {
    "test": _tests,
    "lint": _linters,
    "format": _formatters,
}
