"""What a search found, in lines that fit a terminal however its characters are drawn."""

import msgspec
from rich.cells import cell_len

from rune.surface.conversation_text import conversation_line
from rune.surface.found_text import found_text
from rune.surface.results import WIDTH
from rune.surface.rows import ConversationRow, MessageHit
from rune.text.safe_text import safe_text

NOW = 1_796_040_000_000  # 2026-11-30T12:00:00Z
TOWER = "e" + "\u0301" * 34 + " " + "漢字" * 40
FOUND = MessageHit(
    conversation_id="cnv_01m8q88y5v7qhx5nb15cgbf4yy",
    message_id="msg_01m8q88y5v7qhx5nb15cgbf4yy",
    ts="2026-11-30T11:57:00.000Z",
    role="user",
    title="rivers",
    folder="/work",
    channel="task",
    snippet="the Rhine ends",
    marks=((4, 9),),
)


def test_what_becomes_longer_when_it_is_made_safe_is_cut_after_that() -> None:
    lines = found_text([msgspec.structs.replace(FOUND, title=TOWER, snippet=TOWER)], NOW).splitlines()
    row = ConversationRow(id="c", title=TOWER, channel="task", folder="/", last_active=FOUND.ts, messages=1)
    for line in (*lines, conversation_line(row, NOW, here=True)):
        assert cell_len(safe_text(line)) <= WIDTH
        assert line.endswith("…")
        assert "……" not in line


def test_who_spoke_what_kind_it_is_and_how_much_more_there_is_is_said() -> None:
    other = msgspec.structs.replace(
        FOUND, role="assistant", forked_from="cnv_01m8q88y5v7qhx5nb15cabcdef", hidden=True, more=1_200
    )
    assert found_text([FOUND, other], NOW).splitlines() == [
        "cnv_01m8q88y5v7qhx5nb15cgbf4yy  3 min ago  you  rivers",
        "    the Rhine ends",
        "cnv_01m8q88y5v7qhx5nb15cgbf4yy  3 min ago  rune  rivers (fork) (hidden)",
        "    the Rhine ends",
        "    and 1,200 more in this conversation",
    ]
