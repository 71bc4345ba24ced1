"""What can be told of a project without running anything: names of its files, and what a few of them say."""

import json
import re
import shutil
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

import msgspec

from rune.errors import ToolError
from rune.tools.files import WorkspaceFiles
from rune.tools.workplace import Workplace

_READ: Final = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "package.json"),
    *("GNUmakefile", "makefile", "Makefile"),
)
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")  # in the order in which make looks for them
_MOST_BYTES: Final = 256 * 1024
_MOST_FOLDERS: Final = 300
_MOST_FILES: Final = 5_000
_DEPTH: Final = 6
_FOREIGN: Final = frozenset({"node_modules", "__pycache__", "venv", ".venv", ".git", ".hg", ".svn", ".tox", ".nox"})
_MADE: Final = frozenset({"target", "dist", "build", "env", "vendor"})
_VERSIONED: Final = re.compile(r"python3\.\d+")
# The parser of Python keeps each beginning of such a key: 200 KB of it take all the memory that there is.
_DEEP_KEY: Final = re.compile(r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){17}""")
_VENVS: Final = (".venv", "venv")


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter and what is installed for it, by the names in its library folders. `program` is absolute."""

    program: str
    modules: frozenset[str]
    named: str


class ProjectFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`paths` are files below the folder, relative; hidden folders and those of other people's code are left out, and
    there are at most a few thousand. `texts` are what some files at the top say. `tools` are programs that the project
    brings (in its virtual environment, in node_modules), name to absolute path. `search_path` is `PATH`.
    """

    paths: frozenset[str]
    texts: Mapping[str, str] = {}
    tools: Mapping[str, str] = {}
    pythons: tuple[Python, ...] = ()
    search_path: str = ""

    def program(self, name: str) -> str:
        """Return the path of a program, the project's own first; "" when there is none."""
        return self.tools.get(name) or shutil.which(name, path=self.search_path) or ""

    def has(self, *suffixes: str) -> bool:
        """Say whether there is a file that ends so."""
        return any(path.endswith(suffixes) for path in self.paths)

    @property
    def pyproject(self) -> Mapping[str, Any]:
        """The tables below `tool` of pyproject.toml; none when it cannot be read."""
        text = self.texts.get("pyproject.toml", "")
        if _DEEP_KEY.search(text):
            return {}
        try:
            return _table(tomllib.loads(text).get("tool"))
        except (ValueError, RecursionError):
            return {}  # its runner will say so; other signs of the project still count

    @property
    def scripts(self) -> Mapping[str, str]:
        """The scripts of package.json; none when it cannot be read."""
        try:
            scripts = _table(_table(json.loads(self.texts.get("package.json", "{}"))).get("scripts"))
        except (ValueError, RecursionError):
            return {}  # as above
        return {name: script for name, script in scripts.items() if isinstance(script, str)}

    def make_target(self, *names: str) -> tuple[str, str]:
        """Return the first of these targets that the makefile has, and the makefile's name; "" for none."""
        makefile = next((name for name in _MAKEFILES if name in self.texts), "")
        for name in names:
            if re.search(rf"^{name}\s*:(?!=)", self.texts.get(makefile, ""), re.MULTILINE):
                return name, makefile
        return "", ""


def read_project(place: Workplace) -> ProjectFacts:
    """Look at the project in the folder of a workplace. Blocks; raises nothing for what it may not read."""
    paths = frozenset(_files(place.files))
    search_path = place.environment.get("PATH", "")
    return ProjectFacts(
        paths=paths,
        texts={name: text for name in _READ if name in paths and (text := _text(place.files, name)) is not None},
        tools=_tools(place),
        pythons=tuple(_pythons(place, search_path)),
        search_path=search_path,
    )


def files_below(files: WorkspaceFiles, folder: str, suffixes: tuple[str, ...], most: int) -> list[str] | None:
    """Return the files below a folder that end so, relative to where `folder` is, in hidden folders too but not in
    those of other people's code. None when there are more than `most`, or too much to look at all of it. Blocks.
    """
    found: list[str] = []
    waiting = [PurePosixPath(folder)]
    for looked_at in count(1):
        if not waiting:
            return sorted(found)
        here = waiting.pop()
        for name, kind in _list(files, here.as_posix()):
            if kind == "file" and name.endswith(suffixes):
                found.append((here / name).as_posix())
            elif kind == "folder" and name not in _FOREIGN:
                waiting.append(here / name)
        if len(found) > most or looked_at >= _MOST_FOLDERS:
            break
    return None


def _files(files: WorkspaceFiles) -> Iterator[str]:
    """Yield files, the upper ones first, of as much as tells what a project is."""
    waiting = deque([PurePosixPath()])
    looked_at = given = 0
    while waiting and looked_at < _MOST_FOLDERS:
        folder = waiting.popleft()
        looked_at += 1
        for name, kind in _list(files, folder.as_posix()):
            path = folder / name
            if kind == "file":
                yield path.as_posix()
                given += 1
                if given >= _MOST_FILES:
                    return
            elif kind == "folder" and name not in _FOREIGN | _MADE and name[0] != "." and len(path.parts) < _DEPTH:
                waiting.append(path)


def _list(files: WorkspaceFiles, folder: str) -> list[tuple[str, str]]:
    try:
        return [(entry.name, entry.kind) for entry in files.list(folder).entries]
    except ToolError:
        return []  # not there, or none of our business: then it is no sign of anything


def _text(files: WorkspaceFiles, path: str) -> str | None:
    try:
        return files.read(path, most=_MOST_BYTES).data.decode(errors="replace")
    except ToolError:
        return None  # as above


def _tools(place: Workplace) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in (*(f"{venv}/bin" for venv in _VENVS), "node_modules/.bin"):
        for name, kind in _list(place.files, folder):
            if kind in {"file", "link"}:
                found.setdefault(name, str(place.folder / folder / name))
    return found


def _pythons(place: Workplace, search_path: str) -> Iterator[Python]:
    for venv in _VENVS:
        if any(name == "python" for name, _ in _list(place.files, f"{venv}/bin")):
            modules = {
                name
                for version, _ in _list(place.files, f"{venv}/lib")
                for name, _ in _list(place.files, f"{venv}/lib/{version}/site-packages")
            }
            program = str(place.folder / venv / "bin" / "python")
            yield Python(program=program, modules=frozenset(modules), named=f"{venv}/bin/python")
    for name in ("python3", "python"):
        if program := shutil.which(name, path=search_path):
            modules = frozenset(_installed(Path(program), place.environment.get("HOME", "")))
            yield Python(program=program, modules=modules, named=program)


def _installed(program: Path, home: str) -> Iterator[str]:
    """Yield what is installed for an interpreter outside of the project, by name."""
    real = program.resolve()
    # Debian keeps its own in lib/python3, whatever the version.
    versions = [real.name, "python3"] if _VERSIONED.fullmatch(real.name) else ["python3*"]
    tops = {program.parent.parent, real.parent.parent, *([Path(home, ".local")] if home else [])}
    for top in tops:
        for version in versions:
            for folder in top.glob(f"lib/{version}/*-packages"):
                try:
                    yield from (path.name for path in folder.iterdir())
                except OSError:
                    continue  # what cannot be listed cannot be imported either


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
