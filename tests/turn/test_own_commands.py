"""`!cmd`: the person's own shell commands, written down, with foreign output as any other."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError, UsageError
from rune.records.tools import CommandRun
from rune.store.codec import decode_body
from rune.store.evidence_store import MemoryEvidenceStore
from rune.text.masking import Masker
from rune.text.safe_text import SafeText
from rune.turn.own_commands import OwnCommandResult, OwnCommands
from tests.fakes.clock import CountedClock
from tests.host.commands import alive
from tests.store.builders import CONVERSATION
from tests.store.spine import Faulty, Spine, a_memory_store, a_spine

CANARY = "q8Zp2xLmK4vT"
ENVIRON = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/",
    "DEPLOY_KEY": CANARY,
    "SSH_AUTH_SOCK": "/agent",
    "MODEL_KEY": "for-rune",
}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a warden")


class Desk:
    """Own commands over a real ledger, and short ways to use them."""

    def __init__(self, spine: Spine, folder: Path, environ: Mapping[str, str]) -> None:
        self.evidence = MemoryEvidenceStore(CountedClock())
        self.own = OwnCommands(
            ledger=spine.ledger,
            evidence=self.evidence,
            ids=spine.ids,
            masker=Masker([("DEPLOY_KEY", CANARY)]),
            environ=environ,
            withheld=("MODEL_KEY",),
        )
        self.spine = spine
        self.folder = folder
        self.shown: list[SafeText] = []
        self.spoke = asyncio.Event()
        self.stop = asyncio.Event()

    async def run(self, command: str, conversation_id: str | None = CONVERSATION) -> OwnCommandResult:
        return await self.own.run(
            command,
            folder=self.folder,
            conversation_id=conversation_id,
            on_output=self._hear,
            stop=self.stop,
        )

    def _hear(self, text: SafeText) -> None:
        self.shown.append(text)
        self.spoke.set()

    def journaled(self) -> list[CommandRun]:
        """Return what was written down, in order."""
        bodies = [
            decode_body(envelope, evidence=self.evidence)
            for _, envelope in self.spine.store.replay(types={"command.run"})
        ]
        return [body for body in bodies if isinstance(body, CommandRun)]


@asynccontextmanager
async def desk(
    tmp_path: Path, environ: Mapping[str, str] = ENVIRON, store: Faulty | None = None
) -> AsyncGenerator[Desk]:
    (tmp_path / "work").mkdir()
    async with a_spine(tmp_path / "views", store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        yield Desk(spine, tmp_path / "work", environ)


async def test_it_runs_in_the_folder_and_is_written_down(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        result = await this.run("pwd; exit 3")
        assert (result.text, result.exit_code, result.outcome) == (f"{tmp_path}/work", 3, "failed")
        assert this.shown == [f"{tmp_path}/work"]
        (body,) = this.journaled()
        assert (body.command, body.exit_code, body.summary) == ("pwd; exit 3", 3, result.summary)
        assert body.output is not None
        assert body.output == result.output
        assert this.evidence.get(body.output) == f"{tmp_path}/work\n".encode()
        (envelope,) = [envelope for _, envelope in this.spine.store.replay(types={"command.run"})]
        assert (envelope.actor_id, envelope.authorization) == ("owner", "owner")


async def test_without_a_conversation_nothing_is_kept(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        result = await this.run("echo a", None)
        assert (result.text, result.output) == ("a", None)
        assert this.journaled() == []


async def test_the_environment_is_the_person_s_but_for_keys_of_rune(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        await this.run('echo "$SSH_AUTH_SOCK $MODEL_KEY." > seen; test "$DEPLOY_KEY" = q8Zp2x"LmK4vT"')
        assert (this.folder / "seen").read_text() == "/agent .\n"
        assert this.journaled()[0].exit_code == 0


async def test_it_is_the_person_s_own_shell(tmp_path: Path) -> None:
    async with desk(tmp_path, {**ENVIRON, "SHELL": "/bin/bash"}) as this:
        assert (await this.run("echo ${BASH_VERSION:0:1}${0##*/}")).text.endswith("bash")


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "relative/sh", "/no/such/shell", ""])
async def test_what_is_no_shell_is_not_used(tmp_path: Path, shell: str) -> None:
    async with desk(tmp_path, {**ENVIRON, "SHELL": shell}) as this:
        assert (await this.run("echo $0")).text == "/bin/sh"


async def test_a_command_may_begin_with_a_dash(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        assert (await this.run("-x")).exit_code == 127


async def test_secrets_leave_output_and_command_and_escapes_are_shown_by_name(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        result = await this.run(f"printf '\\033[2J%s\\n' {CANARY}")
        assert result.text == "\\x1b[2J[secret:DEPLOY_KEY]"
        (body,) = this.journaled()
        assert result.output is not None
        kept = this.evidence.get(result.output).decode()
        for seen in (kept, body.command, body.summary, result.command, *this.shown):
            assert CANARY not in seen


async def test_much_output_is_cut_and_kept_whole(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        result = await this.run("seq 1 3000")
        assert "left out" in result.text
        assert result.output is not None
        assert this.evidence.get(result.output).endswith(b"2999\n3000\n")


@pytest.mark.parametrize("command", ["", "  ", "a\0b"])
async def test_no_command_is_no_fact(tmp_path: Path, command: str) -> None:
    async with desk(tmp_path) as this:
        with pytest.raises(UsageError):
            await this.run(command)
        assert this.journaled() == []


async def test_a_folder_that_is_gone_is_said_and_written_down(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        this.folder.rmdir()
        result = await this.run("ls")
        assert (result.outcome, result.exit_code) == ("failed", None)
        assert "cannot be entered" in result.summary
        assert [body.summary for body in this.journaled()] == [result.summary]


async def test_the_person_stops_it_and_it_is_gone(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        work = asyncio.ensure_future(this.run("echo $$; sleep 100"))
        await asyncio.wait_for(this.spoke.wait(), 10)
        this.stop.set()
        result = await work
        assert (result.outcome, result.summary.split(" after")[0]) == ("cancelled", "stopped by the person")
        assert alive([int(this.shown[0])]) == []
        assert len(this.journaled()) == 1


async def test_a_surface_that_goes_away_ends_it_and_it_is_written_down(tmp_path: Path) -> None:
    async with desk(tmp_path) as this:
        work = asyncio.ensure_future(this.run("echo $$; sleep 100"))
        await asyncio.wait_for(this.spoke.wait(), 10)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert alive([int(this.shown[0])]) == []
        assert [body.exit_code for body in this.journaled()] == [None]


async def test_a_journal_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    store = Faulty(a_memory_store())
    async with desk(tmp_path, store=store) as this:
        store.failures.append(StorageUnavailableError("the disk is full"))
        with pytest.raises(StorageUnavailableError):
            await this.run("echo a")
        assert this.shown == ["a"]
    await store.close()
