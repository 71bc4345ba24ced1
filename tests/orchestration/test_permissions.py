"""Which rules hold where a call wants to act, and what "always" adds to them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from rune.errors import NotFoundError
from rune.host.paths import storable_path
from rune.orchestration.permissions import Permissions
from rune.records.permissions import PermissionMode
from rune.tools.executor import Plan, ToolKind
from tests.store.builders import a_prepared_call, an_approval
from tests.store.spine import Spine, a_spine

FOLDER = Path("/home/ada/poems")
EDIT = Plan(effect="drafts/one.md +1", touches=(FOLDER / "drafts" / "one.md",), rule="edit_file(drafts/**)")
APPROVAL = an_approval(
    1,
    calls=(
        a_prepared_call(1, rule="edit_file(drafts/**)"),
        a_prepared_call(2, rule="edit_file(drafts/**)"),
        a_prepared_call(3, rule=""),
        a_prepared_call(4, rule="edit_file(notes.md)"),
    ),
)


@pytest.fixture
async def spine(tmp_path: Path) -> AsyncGenerator[Spine]:
    async with a_spine(tmp_path / "views-1.db") as opened:
        yield opened


async def always(spine: Spine, folder: Path = FOLDER) -> Permissions:
    permissions = Permissions(spine.rules)
    await spine.ledger.emit_many(permissions.always(APPROVAL, folder))
    return permissions


async def decision(
    permissions: Permissions, plan: Plan = EDIT, *, kind: ToolKind = "edit", mode: PermissionMode = "ask",
    folder: Path = FOLDER, repaired: bool = False,
) -> str:  # fmt: skip
    return (await permissions.judge(kind, plan, mode=mode, folder=folder, repaired=repaired)).decision


async def test_always_makes_each_rule_that_was_offered_once_and_nothing_wider(spine: Spine) -> None:
    permissions = await always(spine)
    await spine.ledger.emit_many(permissions.always(APPROVAL, FOLDER))
    rules = await permissions.rules(FOLDER)
    assert {rule.rule for rule in rules} == {"edit_file(drafts/**)", "edit_file(notes.md)"}
    assert len(rules) == 2
    assert {(rule.approval_id, rule.folder) for rule in rules} == {(APPROVAL.id, str(FOLDER))}
    assert await permissions.rules() == rules
    assert permissions.always(an_approval(2), FOLDER) == []


async def test_what_a_rule_allows_says_which_and_where_there_is_none_it_asks(spine: Spine) -> None:
    assert await decision(Permissions(spine.rules)) == "ask"
    permissions = await always(spine)
    verdict = await permissions.judge("edit", EDIT, mode="ask", folder=FOLDER, repaired=False)
    (rule,) = [rule for rule in await permissions.rules(FOLDER) if rule.rule == EDIT.rule]
    assert (verdict.decision, verdict.by) == ("allow", f"rule:{rule.id}")


async def test_a_rule_of_another_folder_allows_nothing_here(spine: Spine) -> None:
    permissions = await always(spine, FOLDER / "drafts")
    assert await decision(permissions) == "ask"


async def test_a_folder_whose_name_is_no_text_has_rules_too(spine: Spine) -> None:
    folder = Path("/home/ada/po\udcffms")
    permissions = await always(spine, folder)
    assert [rule.folder for rule in await permissions.rules(folder)] == [storable_path(folder)] * 2
    plan = msgspec.structs.replace(EDIT, touches=(folder / "drafts" / "one.md",))
    assert await decision(permissions, plan, folder=folder) == "allow"


async def test_a_rule_that_was_taken_back_asks_again(spine: Spine) -> None:
    permissions = await always(spine)
    (rule,) = [rule for rule in await permissions.rules(FOLDER) if rule.rule == EDIT.rule]
    assert await permissions.revoke(rule.id[-6:]) == rule
    assert await decision(permissions) == "ask"
    with pytest.raises(NotFoundError):
        await permissions.revoke(rule.id)


async def test_a_mended_call_asks_whatever_would_allow_it(spine: Spine) -> None:
    permissions = await always(spine)
    assert await decision(permissions, repaired=True) == "ask"
    assert await decision(permissions, mode="edits", repaired=True) == "ask"
    verdict = await permissions.judge("edit", EDIT, mode="edits", folder=FOLDER, repaired=True)
    assert "mended" in verdict.reason


@pytest.mark.parametrize("repaired", [False, True])
async def test_reading_never_asks_and_the_mode_read_denies_all_else(spine: Spine, repaired: bool) -> None:
    permissions = await always(spine)
    for kind in ("read", "session"):
        assert await decision(permissions, kind=kind, repaired=repaired) == "allow"
    for kind in ("edit", "run"):
        assert await decision(permissions, kind=kind, mode="read", repaired=repaired) == "deny"
    assert await decision(permissions, kind="run", repaired=repaired) == "ask"
