"""/undo over real files, real tools and a real journal."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rune.errors import StorageUnavailableError, UsageError
from rune.host.files import replace_file
from rune.records.tools import ToolCall
from tests.store.builders import CONVERSATION, a_conversation, a_message, a_prepared_call, an_id
from tests.store.spine import Faulty, a_memory_store
from tests.turn.desk import Desk, a_desk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with a_desk(tmp_path) as desk:
        yield desk


async def test_undo_gives_back_what_the_last_turn_changed_byte_for_byte(desk: Desk) -> None:
    (desk.folder / "a.py").chmod(0o755)
    await desk.begin(1)
    await desk.edit("a.py", "two", "three")
    await desk.write("a.py", "all\nnew\n")
    await desk.write("src/new.py", "x = 1\n")
    assert await desk.undone() == {"a.py": "restored", "src/new.py": "removed"}
    assert desk.read("a.py") == b"one\r\ntwo\n"
    assert (desk.folder / "a.py").stat().st_mode & 0o777 == 0o755
    assert not (desk.folder / "src" / "new.py").exists()


async def test_each_undo_takes_back_one_turn_more(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.begin(2)
    await desk.edit("a.py", "one", "1")
    await desk.edit("b.py", "b", "B")
    assert await desk.undone() == {"a.py": "restored", "b.py": "restored"}
    assert desk.read("a.py") == b"one\r\n2\n"
    assert await desk.undone() == {"a.py": "restored"}
    assert desk.read("a.py") == b"one\r\ntwo\n"
    with pytest.raises(UsageError, match="nothing to take back"):
        await desk.undo()


async def test_a_turn_that_was_resumed_is_taken_back_as_one(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.begin(2, resumes=1)
    await desk.edit("b.py", "b", "B")
    await desk.begin(3, resumes=2)
    await desk.edit("a.py", "one", "1")
    assert await desk.undone() == {"a.py": "restored", "b.py": "restored"}
    assert (desk.read("a.py"), desk.read("b.py")) == (b"one\r\ntwo\n", b"b\n")


async def test_a_file_that_somebody_changed_since_is_left_with_the_difference(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.edit("b.py", "b", "B")
    (desk.folder / "a.py").write_bytes(b"mine\n")
    undone = await desk.undo()
    assert {file.name: file.did for file in undone.files} == {"a.py": "left", "b.py": "restored"}
    assert not undone.complete
    left = undone.files[0]
    assert "changed since" in left.why
    assert "-mine\n" in left.diff
    assert "+two\n" in left.diff
    assert desk.read("a.py") == b"mine\n"


async def test_a_turn_of_which_nothing_could_be_taken_back_is_told_once_and_then_passed_over(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.begin(2)
    await desk.edit("a.py", "two", "2")
    tools = desk.read("a.py")
    (desk.folder / "a.py").write_bytes(b"mine\n")
    assert await desk.undone() == {"a.py": "left"}
    assert desk.read("b.py") == b"B\n"
    assert await desk.undone() == {"b.py": "restored"}
    (desk.folder / "a.py").write_bytes(tools)  # can be taken back by now
    assert await desk.undone() == {"a.py": "restored"}


async def test_a_turn_that_goes_on_after_an_undo_can_be_taken_back_again(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.undo()
    await desk.begin(2, resumes=1)
    await desk.edit("a.py", "two", "3")
    undone = await desk.undo()
    assert ([file.did for file in undone.files], undone.notes) == (["restored"], ())
    assert undone.turn_id == an_id("trn", 2)
    assert desk.read("a.py") == b"one\r\ntwo\n"


async def test_a_turn_that_goes_on_after_an_undo_is_told_again(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    (desk.folder / "a.py").write_bytes(b"mine\n")
    assert await desk.undone() == {"a.py": "left"}
    await desk.begin(2, resumes=1)
    await desk.edit("b.py", "b", "B")
    (desk.folder / "b.py").write_bytes(b"mine\n")
    assert await desk.undone() == {"a.py": "left", "b.py": "left"}


async def test_what_somebody_wrote_between_two_changes_of_a_turn_is_not_lost(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    (desk.folder / "b.py").write_bytes(b"B\nmine\n")
    await desk.edit("b.py", "B", "C")
    undone = await desk.undo()
    assert desk.read("b.py") == b"B\nmine\n"
    assert "before that it was changed" in "".join(undone.notes)


async def test_a_removed_file_and_one_that_came_to_be_something_else_are_left(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.edit("b.py", "b", "B")
    (desk.folder / "a.py").unlink()
    (desk.folder / "b.py").unlink()
    (desk.folder / "b.py").symlink_to("a.py")
    undone = await desk.undo()
    assert {file.name: file.did for file in undone.files} == {"a.py": "left", "b.py": "left"}
    assert "removed since" in undone.files[0].why
    assert "is a link" in undone.files[1].why
    assert not (desk.folder / "a.py").exists()


async def test_a_before_image_that_is_gone_or_tampered_with_is_said(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("a.py", "two", "2")
    await desk.edit("b.py", "b", "B")
    images = {path.read_bytes(): path for path in (desk.base / "home" / "undo").iterdir()}
    images[b"one\r\ntwo\n"].unlink()
    images[b"b\n"].write_bytes(b"evil\n")
    assert "is not kept any more" in await desk.notes()
    undone = await desk.undo()
    assert [file.did for file in undone.files] == ["left", "left"]
    assert "is not kept any more" in undone.files[0].why
    assert "is not what it held" in undone.files[1].why
    assert desk.read("b.py") == b"B\n"


async def test_what_an_undo_takes_away_is_kept_too(desk: Desk) -> None:
    await desk.begin(1)
    await desk.write("new.py", "precious = 1\n")
    await desk.undo()
    assert b"precious = 1\n" in {path.read_bytes() for path in (desk.base / "home" / "undo").iterdir()}


async def test_an_undo_is_journaled_like_a_tool_that_the_owner_allowed(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    undone = await desk.undo()
    stored = (await desk.spine.intents.results(CONVERSATION))[-1]
    assert stored.prepared is not None
    assert (stored.result.id, stored.result.tool, stored.result.outcome) == (undone.call_id, "undo", "ok")
    assert stored.authorization == "owner"
    assert "-B\n+b\n" in stored.prepared.detail
    assert [(touch.before, touch.after) for touch in stored.result.files] != []
    kinds = [envelope.event_type for _, envelope in desk.spine.store.replay(CONVERSATION)]
    assert kinds[-2:] == ["tool.intent", "tool.result"]


async def test_nothing_is_written_when_the_intent_cannot_be(tmp_path: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_desk(tmp_path, store=store) as desk:
        await desk.begin(1)
        await desk.edit("b.py", "b", "B")
        store.failures.append(StorageUnavailableError("the disk is full"))
        with pytest.raises(StorageUnavailableError):
            await desk.undo()
        assert desk.read("b.py") == b"B\n"
        assert await desk.undone() == {"b.py": "restored"}


class CutOff(Faulty):
    """Takes the intent of an undo and nothing after it, as when the process is killed there."""

    kills = True
    dead = False

    async def append_many(self, events: Any) -> Any:
        if self.dead:
            raise StorageUnavailableError("killed")
        offsets = await super().append_many(events)
        self.dead = self.kills and any(
            event.event_type == "tool.intent" and event.body.call.name == "undo" for event in events
        )
        return offsets


@pytest.mark.parametrize("restored", [(), ("a.py",), ("a.py", "b.py")])
async def test_an_undo_that_was_cut_off_is_told_and_the_next_one_does_what_is_left(
    tmp_path: Path, restored: tuple[str, ...]
) -> None:
    store = CutOff(a_memory_store())
    before = {"a.py": b"1\r\ntwo\n", "b.py": b"b\n"}
    async with a_desk(tmp_path, store=store) as desk:
        await desk.begin(1)
        await desk.write("c.py", "c\n")
        await desk.edit("a.py", "one", "1")
        await desk.begin(2)
        await desk.edit("a.py", "two", "2")
        await desk.edit("b.py", "b", "B")
        after = {name: desk.read(name) for name in before}
        with pytest.raises(StorageUnavailableError):
            await desk.undo()
        store.dead = store.kills = False
        for name, data in after.items():
            replace_file(desk.folder / name, before[name] if name in restored else data)
        assert "changed" not in await desk.notes()
        undone = await desk.undo()
        assert "cut off" in undone.notes[0]
        outcomes = [stored.result.outcome for stored in await desk.spine.intents.results(CONVERSATION)]
        left = set(before) - set(restored)
        assert outcomes[4:] == (["unknown", "ok"] if left else ["unknown"])
        assert {file.name for file in undone.files} == left
        assert {name: desk.read(name) for name in before} == before
        assert await desk.undone() == {"a.py": "restored", "c.py": "removed"}


@pytest.mark.parametrize("acts", [True, False])
async def test_a_change_that_may_have_been_made_is_taken_back_if_it_was(desk: Desk, acts: bool) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.edit("a.py", "two", "2", killed=True, acts=acts)
    assert set(await desk.diff()) == ({"a.py", "b.py"} if acts else {"b.py"})
    assert set(await desk.undone()) == ({"a.py", "b.py"} if acts else {"b.py"})
    assert (desk.read("a.py"), desk.read("b.py")) == (b"one\r\ntwo\n", b"b\n")


async def test_a_change_that_was_not_made_after_all_does_not_break_the_row(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.edit("b.py", "B", "C", killed=True, acts=False)
    await desk.edit("b.py", "B", "D")
    assert await desk.notes() == ""
    assert await desk.undone() == {"b.py": "restored"}
    assert desk.read("b.py") == b"b\n"


async def test_a_change_that_was_not_made_hides_none_that_was(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.edit("b.py", "B", "C", killed=True, acts=False)
    assert await desk.notes() == ""
    assert await desk.undone() == {"b.py": "restored"}


async def test_a_fork_takes_back_what_it_shares_and_leaves_the_undo_of_the_other_alone(desk: Desk) -> None:
    await desk.begin(1)
    await desk.edit("b.py", "b", "B")
    await desk.emit("user.message", a_message(1))
    call = ToolCall(id="undo", name="undo", arguments={"turn": desk.turn, "conversation": CONVERSATION})
    running = msgspec.structs.replace(a_prepared_call(90), call=call, turn_id=desk.turn)
    await desk.emit("tool.intent", running)
    fork = msgspec.structs.replace(
        a_conversation(an_id("cnv", 2), folder=str(desk.folder)), forked_from=CONVERSATION, fork_msg_id=an_id("msg", 1)
    )
    await desk.spine.ledger.adopt(fork.id)
    await desk.spine.conversations.create(fork)
    undone = await desk.changes.undo(fork.id, str(desk.folder))
    assert ([file.did for file in undone.files], undone.notes) == (["restored"], ())
    assert [each.id for each in await desk.spine.intents.unanswered(desk.turn)] == [running.id]
    with pytest.raises(UsageError):
        await desk.changes.undo(fork.id, str(desk.folder))
