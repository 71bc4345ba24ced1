"""A project's own programs are told by its files, and a target is never more than one word."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import InvalidArgumentsError, ToolError
from rune.tools.project_commands import Purpose, detect
from rune.tools.project_facts import ProjectFacts, Python
from rune.tools.runner_totals import nothing_ran, totals_of

TOOLS = {
    name: f"/bin/{name}"
    for name in ("npm", "pnpm", "yarn", "node", "cargo", "cargo-clippy", "cargo-fmt", "go", "gofmt", "make", "bash")
}
PY = Python(program="/py", modules=frozenset({"pytest"}), named="py")
BARE = Python(program="/bare", modules=frozenset(), named="bare")
TEST_SCRIPT = '{"scripts": {"test": "vitest run", "lint": "eslint .", "format": "prettier -w ."}}'


def facts(
    *paths: str, tools: dict[str, str] = TOOLS, pythons: tuple[Python, ...] = (PY,), **texts: str
) -> ProjectFacts:
    """Return facts; a text is given with `_` for `.` in its name."""
    said = {name.replace("_", "."): text for name, text in texts.items()}
    return ProjectFacts(paths=frozenset({*paths, *said}), texts=said, tools=tools, pythons=pythons)


def found(purpose: Purpose, these: ProjectFacts, target: str = "") -> str:
    return " ".join(detect(purpose, these, target).words(target))


@pytest.mark.parametrize(
    ("these", "target", "words"),
    [
        (facts("test_a.py"), "", "/py -m pytest -q"),
        (facts("src/x/a_test.py"), "", "/py -m pytest -q"),
        (facts(pyproject_toml="[tool.pytest.ini_options]"), "", "/py -m pytest -q"),
        (facts("pytest.ini"), "tests/test_a.py::test_b[x y]", "/py -m pytest -q tests/test_a.py::test_b[x y]"),
        (facts(setup_cfg="[tool:pytest]"), "", "/py -m pytest -q"),
        (facts("test_a.py", pythons=(BARE, PY)), "", "/py -m pytest -q"),
        (facts("test_a.py", pythons=(BARE,), tools={"pytest": "/bin/pytest"}), "", "/bin/pytest -q"),
        (facts("test_a.py", pythons=(BARE,)), "", "/bare -m unittest discover"),
        (facts("tests/test_a.py", pythons=(BARE,)), "", "/bare -m unittest discover -s tests"),
        (facts("tests/test_a.py", "tests/__init__.py", pythons=(BARE,)), "", "/bare -m unittest discover"),
        (facts("tests/test_a.py", pythons=(BARE,)), "tests/test_a.py", "/bare -m unittest tests/test_a.py"),
        (facts(package_json=TEST_SCRIPT), "", "/bin/npm run test"),
        (facts(package_json=TEST_SCRIPT), "src/a.test.ts", "/bin/npm run test -- src/a.test.ts"),
        (facts("pnpm-lock.yaml", package_json=TEST_SCRIPT), "a.test.ts", "/bin/pnpm run test a.test.ts"),
        (facts("yarn.lock", package_json=TEST_SCRIPT), "", "/bin/yarn run test"),
        (facts("a.test.mjs"), "", "/bin/node --test"),
        (facts("test/a.js"), "test/a.js", "/bin/node --test test/a.js"),
        (
            facts("a.test.js", package_json='{"scripts": {"test": "echo \\"no test specified\\""}}'),
            "",
            "/bin/node --test",
        ),
        (facts("a.test.js", package_json="{"), "", "/bin/node --test"),
        (facts("Cargo.toml"), "adds", "/bin/cargo test adds"),
        (facts("go.mod"), "", "/bin/go test ./..."),
        (facts("go.mod"), "pkg/cart", "/bin/go test ./pkg/cart"),
        (facts("go.mod"), "./pkg/...", "/bin/go test ./pkg/..."),
        (facts("go.mod"), "pkg/cart/cart_test.go", "/bin/go test ./pkg/cart"),
        (facts(Makefile="all:\n\ntest: all\n\tsh x\n"), "", "/bin/make test"),
        (facts(Makefile="check:\n\ttrue\n"), "", "/bin/make check"),
        (facts("test.sh"), "", "/bin/bash test.sh"),
        (facts("tests/run.sh"), "cart", "/bin/bash tests/run.sh cart"),
        (facts("test_a.py", package_json=TEST_SCRIPT), "", "/py -m pytest -q"),
        (facts("test_a.py", package_json=TEST_SCRIPT), "src/a.test.ts", "/bin/npm run test -- src/a.test.ts"),
    ],
)
def test_the_test_runner_is_found(these: ProjectFacts, target: str, words: str) -> None:
    assert found("test", these, target) == words


@pytest.mark.parametrize(
    ("purpose", "these", "target", "words"),
    [
        ("lint", facts("ruff.toml", tools={"ruff": "/v/ruff"}), "", "/v/ruff check ."),
        ("lint", facts("a.py", tools={"ruff": "/v/ruff"}), "a b.py", "/v/ruff check a b.py"),
        ("lint", facts(".flake8", tools={"flake8": "/v/flake8"}), "", "/v/flake8 ."),
        ("lint", facts(package_json=TEST_SCRIPT), "", "/bin/npm run lint"),
        ("lint", facts("eslint.config.js", tools={"eslint": "/n/eslint"}), "src", "/n/eslint src"),
        ("lint", facts("Cargo.toml"), "", "/bin/cargo clippy"),
        ("lint", facts("go.mod"), "", "/bin/go vet ./..."),
        ("lint", facts("a.sh", "b/c.sh", tools={"shellcheck": "/sc"}), "", "/sc ./a.sh ./b/c.sh"),
        ("lint", facts(Makefile="lint:\n"), "", "/bin/make lint"),
        ("format", facts("a.py", tools={"ruff": "/v/ruff"}), "", "/v/ruff format ."),
        ("format", facts(pyproject_toml="[tool.black]", tools={"ruff": "/r", "black": "/b"}), "", "/b ."),
        ("format", facts(package_json=TEST_SCRIPT), "", "/bin/npm run format"),
        ("format", facts(".prettierrc", tools={"prettier": "/n/p"}), "a.ts", "/n/p --write a.ts"),
        ("format", facts("Cargo.toml"), "", "/bin/cargo fmt"),
        ("format", facts("go.mod"), "a.go", "/bin/gofmt -l -w a.go"),
    ],
)
def test_linter_and_formatter_are_found(purpose: Purpose, these: ProjectFacts, target: str, words: str) -> None:
    assert found(purpose, these, target) == words


def test_why_it_is_the_one_is_said() -> None:
    assert detect("test", facts("tests/test_a.py")).why == "tests/test_a.py is there; pytest of py"
    assert detect("test", facts(package_json=TEST_SCRIPT)).why == "package.json has a script test: vitest run"


@pytest.mark.parametrize("purpose", ["test", "lint", "format"])
def test_where_nothing_is_found_it_says_what_was_looked_for(purpose: Purpose) -> None:
    with pytest.raises(ToolError, match=r"Looked for: .*package\.json.*Cargo\.toml") as caught:
        detect(purpose, facts("README.md"))
    assert "run_command" in caught.value.hint


def test_what_is_not_installed_is_said() -> None:
    with pytest.raises(ToolError, match=r"Cargo\.toml is there, but cargo is not installed"):
        detect("test", facts("Cargo.toml", tools={}))
    with pytest.raises(ToolError, match="script test, but npm is not installed"):
        detect("test", facts(tools={}, package_json=TEST_SCRIPT))
    with pytest.raises(ToolError, match="ruff is configured and not installed"):
        detect("lint", facts("ruff.toml", tools={}))


@pytest.mark.parametrize(
    "these", [facts("test_a.py"), facts("go.mod"), facts("test.sh"), facts(package_json=TEST_SCRIPT)]
)
@pytest.mark.parametrize("target", ["-x", "--rootdir=/", "-", "a\0b"])
def test_a_target_that_looks_like_an_option_is_refused(these: ProjectFacts, target: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        found("test", these, target)


@pytest.mark.parametrize(
    ("these", "target"),
    [(facts("Cargo.toml"), "src/lib.rs"), (facts(Makefile="test:\n"), "a"), (facts(package_json=TEST_SCRIPT), "$(id)")],
)
def test_a_target_that_a_runner_cannot_take_is_refused(these: ProjectFacts, target: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        found("test", these, target)


@given(st.text(min_size=1), st.sampled_from(["test_a.py", "test.sh", "a.test.js", "Cargo.toml", "go.mod", "npm"]))
def test_a_target_is_one_word_or_refused(target: str, sign: str) -> None:
    these = facts(package_json=TEST_SCRIPT) if sign == "npm" else facts(sign)
    command = detect("test", these, target)
    try:
        words = command.words(target)
    except InvalidArgumentsError:
        return
    assert len(words) == len(command.argv) + len(command.before) + 1
    assert not words[-1].startswith("-")
    if sign == "npm":  # its word is read by a shell
        assert set(words[-1]) <= set(string.ascii_letters + string.digits + "_./:@=+,-")


@pytest.mark.parametrize(
    ("output", "totals"),
    [
        ("F.\nFAILED a\n1 failed, 4 passed in 0.44s\n", "1 failed, 4 passed"),
        ("===== 2 passed, 1 warning in 1.20s (0:00:01) =====", "2 passed, 1 warning"),
        ("no tests ran in 0.01s", "no tests ran"),
        ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)", "3 failed, 2 passed"),
        ("Ran 1 test in 0.000s\n\nOK", "1 passed"),
        ("Ran 3 tests in 0.000s\n\nOK (skipped=1)", "2 passed, 1 skipped"),
        ("Ran 0 tests in 0.000s\n\nOK", "no tests ran"),
        ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", "no tests ran"),
        ("# tests 2\n# suites 0\n# pass 1\n# fail 1\n# skipped 0", "1 failed, 1 passed"),
        ("\u2139 tests 3\n\u2139 pass 3\n\u2139 fail 0", "3 passed"),
        ("# tests 0\n# pass 0\n# fail 0", "no tests ran"),
        (
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0\ntest result: FAILED. 1 passed; 2 failed; 0 ignored",
            "2 failed, 4 passed, 1 skipped",
        ),
        ("ok  \tx/a\t0.01s\nFAIL\tx/b\t0.01s\nFAIL", "packages: 1 failed, 1 ok"),
        ("Tests:       1 failed, 4 passed, 5 total\nTime: 1 s", "1 failed, 4 passed, 5 total"),
        ("      Tests  1 failed | 4 passed (5)", "1 failed, 4 passed (5)"),
        ("  5 passing (3ms)\n  1 failing\n", "1 failed, 5 passed"),
        ("Found 3 errors.\n[*] 2 fixable", "Found 3 errors."),
        ("2 files reformatted, 1 file left unchanged", "2 files reformatted, 1 file left unchanged"),
        ("all is well", ""),
        ("", ""),
    ],
)
def test_the_totals_of_known_runners_are_read(output: str, totals: str) -> None:
    assert totals_of(output) == totals
    assert nothing_ran(totals) == (totals == "no tests ran")


@given(st.text(alphabet="0123456789 failedpassed,in\n=#.:", max_size=300))
def test_totals_are_one_short_line_whatever_was_written(output: str) -> None:
    assert "\n" not in totals_of(output)
    assert len(totals_of(output)) <= 120
