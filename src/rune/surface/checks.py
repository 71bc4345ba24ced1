"""What `rune doctor` looks at, each for real. Shows states and counts, never content."""

import asyncio
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rune.config.load import load_settings
from rune.config.trust import TrustBook
from rune.errors import ModelUnavailableError, RuneError
from rune.models.embedded.gguf import read_header
from rune.models.router import Router
from rune.models.transport import ChatTransport
from rune.surface.doctor import Check, Finding

_OLLAMA: Final = "Install Ollama (https://ollama.com/download), or start it: `ollama serve`."


def blocking(name: str, look: Callable[[], Finding], stop: Callable[[], object] = lambda: None) -> Check:
    """Return a check that runs off the event loop; `stop` is called when nobody waits for it any more."""

    async def run() -> Finding:
        try:
            return await asyncio.to_thread(look)
        except asyncio.CancelledError:
            stop()  # the thread goes on otherwise, and the process waits for it
            raise

    return Check(name=name, look=run)


def failing(name: str, error: RuneError) -> Check:
    """Return a check that could not even be set up, for this reason."""

    async def run() -> Finding:
        return Finding(name=name, state="broken", detail=error.message, mend=error.hint)

    return Check(name=name, look=run)


def environment() -> Finding:
    """Say which Python and system this is."""
    detail = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {sys.executable}"
    return Finding(name="environment", state="ok", detail=detail)


def config(file: Path) -> Finding:
    """Say whether the settings can be used. Raises ConfigError with file, line and key."""
    load_settings(file)
    what = "is valid" if file.exists() else "is not there; the defaults hold"
    return Finding(name="config", state="ok", detail=f"{file} {what}")


def stand_in(path: Path | None, *, installed: bool) -> Finding:
    """Say whether the embedded model can answer when no server does. Raises ModelUnavailableError for its file."""
    if not installed:
        mend = 'Install Rune with its extra: pip install "rune-local[embedded]"'
        return Finding(name="stand-in", state="warning", detail="the extra `embedded` is not installed", mend=mend)
    if path is None:
        mend = "`rune models fetch-embedded` fetches it"
        return Finding(name="stand-in", state="warning", detail="its model file was not fetched", mend=mend)
    read_header(path)  # raises ModelUnavailableError for what is no model, or not a whole one
    return Finding(name="stand-in", state="ok", detail=str(path))


def trust(book: TrustBook, folder: Path) -> Finding:
    """Say whether this folder may instruct Rune."""
    book.projects()  # raises for a trust.yaml that cannot be used, also where this folder needs none
    status = book.status(folder)
    said = {
        "trusted": "its files instruct Rune",
        "untrusted": "its files are not read",
        "changed": "its files changed since they were trusted and are not read",
        "nothing_to_trust": "nothing here would instruct Rune",
    }
    mend = "`/trust` shows them" if status.state in {"untrusted", "changed"} else ""
    return Finding(name="trust", state="ok", detail=f"{status.folder}: {said[status.state]}", mend=mend)


def answers(router: Router, configured: str) -> Check:
    """Say which model would answer now."""

    async def choose() -> Finding:
        choice = await router.choose(requested=None, conversation_model=None, configured=configured or None)
        where = "remote" if choice.info.remote else "local"
        detail = f"{choice.info.name} ({choice.info.provider}, {where}) would answer"
        return Finding(name="answers", state="ok", detail=detail)

    return Check(name="answers", look=choose)


def models(transports: Sequence[ChatTransport]) -> list[Check]:
    """Ask each transport what it has."""
    return [_model(transport) for transport in transports]


def _model(transport: ChatTransport) -> Check:
    name = f"models ({transport.provider})"

    async def ask() -> Finding:
        try:
            found = await transport.models()
        except RuneError as error:
            # One server that is not there is no defect while another answers; no model at all is said by `usable`.
            return Finding(name=name, state="warning", detail=error.message, mend=_hint(error, transport.provider))
        finally:
            await transport.close()
        detail = ", ".join(info.name for info in found[:8]) or "it answers and has no model"
        return Finding(name=name, state="ok" if found else "warning", detail=detail)

    return Check(name=name, look=ask)


def _hint(error: RuneError, provider: str) -> str:
    """Return what can be done about it. That nobody answers does not tell whether Ollama is installed at all."""
    return _OLLAMA if provider == "ollama" and isinstance(error, ModelUnavailableError) else error.hint
