"""What runs behind the app: built while the app is there already, closed whatever happened."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rune.cli.app import Opening, with_questions
from rune.errors import ConfigError, StorageUnavailableError
from rune.surface.rows import ApprovalRow

QUESTION = ApprovalRow(
    id="apr_1", conversation_id="cnv_1", turn_id="trn_1", asked_at="", expires_at="", folder="/", title="", calls=()
)


class FakeLife:
    """Counts its beginnings and ends."""

    def __init__(self) -> None:
        self.surface: Any = self
        self.views = self
        self.started = 0
        self.closed = 0

    async def start(self) -> None:
        self.started += 1

    async def close(self) -> None:
        self.closed += 1

    async def pending_approvals(self) -> list[ApprovalRow]:
        if self.closed:
            raise StorageUnavailableError("closed")
        return [QUESTION]


def nothing(_: str = "") -> None:
    return


async def test_it_is_built_on_a_thread_once_the_app_is_shown() -> None:
    life = FakeLife()
    order: list[str] = []

    def build(told: Callable[[str], None]) -> FakeLife:
        told("half")
        order.append("main thread" if threading.current_thread() is threading.main_thread() else "thread")
        return life

    opening = Opening(build, lambda: order.append("shown"))
    assert await opening(order.append) is life.surface
    assert order == ["shown", "half", "thread"]
    await opening.close()
    assert (life.started, life.closed) == (1, 1)
    assert opening.left_waiting == [QUESTION]


async def test_what_is_still_being_built_when_the_app_goes_is_closed_too() -> None:
    life = FakeLife()
    built, building = threading.Event(), threading.Event()

    def build(_: Callable[[str], None]) -> FakeLife:
        building.set()
        built.wait()
        return life

    opening = Opening(build, nothing)
    task = asyncio.ensure_future(opening(nothing))
    await asyncio.to_thread(building.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    closing = asyncio.ensure_future(opening.close())
    built.set()
    await closing
    assert (life.started, life.closed) == (0, 1)


async def test_what_cannot_be_built_is_told_once() -> None:
    def build(_: Callable[[str], None]) -> FakeLife:
        raise ConfigError("no")

    opening = Opening(build, nothing)
    with pytest.raises(ConfigError):
        await opening(nothing)
    await opening.close()


async def test_an_app_that_never_opened_has_nothing_to_close() -> None:
    await Opening(lambda _: FakeLife(), nothing).close()


async def test_what_does_not_answer_as_the_app_goes_is_no_reason_to_fail() -> None:
    life = FakeLife()
    opening = Opening(lambda _: life, nothing)
    await opening(nothing)
    await life.close()
    await opening.close()
    assert opening.left_waiting == ()


def test_a_question_stands_below_the_line_that_resumes_its_conversation() -> None:
    lines = ("rune -r cnv_2   # the task", "rune -r cnv_1   # the chat", "not sent: see cnv_1")
    assert [*with_questions(lines, [QUESTION])] == [
        *lines[:2],
        "a question waits there: `rune approve apr_1`",
        lines[2],
    ]
