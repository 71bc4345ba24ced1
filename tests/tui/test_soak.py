"""A long day in one app: hundreds of turns leave nothing behind but their messages."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rune.errors import ServerError
from rune.models.scripted import Answer, ScriptedTransport, breaks, says
from rune.models.transport import ChatRequest
from rune.tui.line_log import KEPT_LINES
from rune.tui.widgets.prompt import Prompt
from rune.tui.widgets.transcript import KEPT_STRIPS, TranscriptView
from tests.tui.stage import SECONDS, Stage, stage

KINDS = ("answer", "answer", "think", "answer", "stop", "answer", "fail", "think", "answer", "command")
COMMANDS = ("/context", "/help", "/trace")
SWITCH = 25  # turns
ANSWER = "The *Elbe* begins in the mountains.\n\n- and ends in the sea"

# What is there once more or once less when one looks: a timer that runs out, a thread that is not needed yet.
SLACK = 4
# Measured: 68 objects and 25 KB a turn. Of the objects 28 are drawn lines and 11 what says where they stand, which
# is kept of the newest KEPT_LINES lines; 9 lie in the stores' memories of the newest events and messages; the rest
# is what was said. All but that ends at a limit, after a few thousand turns.
OBJECTS_A_TURN = 110
KILOBYTES_A_TURN = 60


class Held(NamedTuple):
    """What the process holds."""

    tasks: int
    threads: int
    descriptors: int
    timers: int
    widgets: int
    objects: int
    kilobytes: int


async def held(at: Stage) -> Held:
    await at.settled()
    for view in at.app.chat.query(TranscriptView):
        view.notify_style_update()  # what was painted is forgotten: it is kept up to a limit, and counted by itself
    return counted(at)


def counted(at: Stage) -> Held:
    gc.collect()
    nodes = [at.app, at.app.chat, *at.app.chat.walk_children()]
    return Held(
        tasks=len(asyncio.all_tasks()),
        threads=threading.active_count(),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        timers=sum(len(node._timers) for node in nodes),  # pyright: ignore[reportPrivateUsage]  # tests look inside
        widgets=len(nodes),
        objects=len(gc.get_objects()),
        kilobytes=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024,
    )


def answer(request: ChatRequest) -> Answer:
    kind = request.messages.rpartition(b"question ")[2]
    if b"stop" in kind:
        return [*says("The Elbe begins in")[:-1], asyncio.Event()]
    if b"fail" in kind:
        return breaks("The Elbe begins", ServerError("out of memory", status=500, phase="token"))
    return says(ANSWER, thinking="rivers, then" if b"think" in kind else "")


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110  # what is waited for is of many parts, and none has an event
            await asyncio.sleep(0.001)


async def turn(at: Stage, number: int) -> None:
    """Let one turn, or one command, come and go; sometimes in the other channel than before."""
    chat, kind = at.app.chat, KINDS[number % len(KINDS)]
    at.model.requests.clear()  # each holds a whole prompt
    if number % SWITCH == 0:
        chat.action_channel("chat" if chat.channel == "task" else "task")
    command = kind == "command"
    text = COMMANDS[number // len(KINDS) % len(COMMANDS)] if command else f"question {number}: {kind}"
    before, prompt = len(at.talk.transcript.settled), chat.query_one(Prompt)
    prompt.post_message(Prompt.Submitted(prompt, text, command, pasted=False))
    if kind == "stop":
        await soon(lambda: at.talk.transcript.pace is not None and at.talk.transcript.pace.pieces > 0)
        at.outbox.cancel()
    await soon(lambda: len(at.talk.transcript.settled) > before and not at.talk.busy)


@pytest.mark.parametrize(
    ("early", "late"),
    [(100, 500), pytest.param(500, 2_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
async def test_hundreds_of_turns_leave_nothing_but_their_messages(tmp_path: Path, early: int, late: int) -> None:
    async with stage(tmp_path, model=ScriptedTransport(answer)) as at:
        for number in range(early):
            await turn(at, number)
        before = await held(at)
        for number in range(early, late):
            await turn(at, number)
        views = list(at.app.chat.query(TranscriptView))
        # What may be kept of drawing has its limits; there is no public way to see it.
        assert all(len(view._strips) <= KEPT_STRIPS for view in views)  # pyright: ignore[reportPrivateUsage]  # as said
        assert all(view._log.kept_lines <= KEPT_LINES for view in views)  # pyright: ignore[reportPrivateUsage]  # as said
        after = await held(at)
    more = Held(*(now - then for now, then in zip(after, before, strict=True)))
    assert max(more[: Held._fields.index("widgets")]) <= SLACK, (before, after)
    assert more.widgets == 0
    assert more.objects <= OBJECTS_A_TURN * (late - early)
    assert more.kilobytes <= KILOBYTES_A_TURN * (late - early)
