"""A desk and its conversations as a screen drives them, on the real engine with a scripted model."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from rune.errors import ServerError
from rune.models.scripted import Answers, Pause, breaks, says
from rune.records.turns import StopReason
from rune.tui.app_start import AppStart
from rune.tui.desk import Desk
from rune.tui.outbox import Outbox
from rune.tui.talk import Talk
from rune.tui.transcript_state import Answer, CommandOutput, Ending, Said, Told, Transcript
from tests.turn.rig import Rig, rig, until

SLOW = [Pause(30.0), *says("late")]


class Stand:
    """A talk on a rig, and what it told its screen."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.changes = 0
        self.ends = 0
        start = AppStart(folder=str(rig.folder))
        self.desk = Desk(rig.services.surface, start, changed=self._changed, ended=self._ended)

    @property
    def talk(self) -> Talk:
        return self.desk.talk

    @property
    def outbox(self) -> Outbox:
        return self.desk.outbox

    def _changed(self, talk: Talk) -> None:
        del talk
        self.changes += 1

    def _ended(self, talk: Talk) -> None:
        del talk
        self.ends += 1

    async def idle(self, turns: int) -> None:
        await until(lambda: self.ends >= turns and not self.talk.busy)


@asynccontextmanager
async def stand(tmp_path: Path, answers: Answers) -> AsyncGenerator[Stand]:
    async with rig(tmp_path / "home", answers) as made:
        standing = Stand(made)
        try:
            yield standing
        finally:
            await standing.desk.close({})


def texts(transcript: Transcript) -> list[str]:
    return [entry.text for entry in transcript.entries if isinstance(entry, Said | Answer)]


async def test_what_is_said_is_shown_and_answered(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("The Rhine.")]) as at:
        at.outbox.say("name a river")
        await at.idle(1)
        assert texts(at.talk.transcript) == ["name a river", "The Rhine."]
        assert at.talk.conversation_id is not None
        assert at.talk.model is not None
        assert at.talk.model.name == "scripted"


async def test_what_is_said_meanwhile_waits_and_is_sent_in_order(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("one"), says("two"), says("three")]) as at:
        for text in ("first", "second", "third"):
            at.outbox.say(text)
        assert [message.text for message in at.outbox.waiting] == ["first", "second", "third"]
        await at.idle(3)
        assert texts(at.talk.transcript) == ["first", "one", "second", "two", "third", "three"]


async def test_what_waits_can_be_taken_back(tmp_path: Path) -> None:
    async with stand(tmp_path, [SLOW]) as at:
        at.outbox.say("first")
        await until(lambda: bool(at.rig.model.requests))
        at.outbox.say("second")
        assert at.outbox.take_back() == "second"
        assert at.outbox.take_back() is None
        at.outbox.cancel()
        await at.idle(1)
        assert texts(at.talk.transcript) == ["first"]


async def test_stopping_works_before_the_turn_has_an_id(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("never")]) as at:
        at.outbox.say("first")
        await until(lambda: at.talk.busy)
        assert at.outbox.cancel()
        await at.idle(1)
        assert "never" not in texts(at.talk.transcript)
        assert [message.text for message in at.outbox.waiting] in ([], ["first"])


async def test_after_a_turn_that_was_stopped_what_waits_is_held_until_the_person_goes_on(tmp_path: Path) -> None:
    async with stand(tmp_path, [SLOW, says("two")]) as at:
        at.outbox.say("first")
        await until(lambda: bool(at.rig.model.requests))
        at.outbox.say("second")
        at.outbox.cancel()
        await at.idle(1)
        assert at.outbox.held
        assert [message.text for message in at.outbox.waiting] == ["second"]
        at.outbox.go_on()
        await at.idle(2)
        assert texts(at.talk.transcript)[-2:] == ["second", "two"]


async def test_a_model_that_dies_leaves_what_came_and_says_why(tmp_path: Path) -> None:
    async with stand(tmp_path, [breaks("The Rh", ServerError("it died", status=0, phase="token"))]) as at:
        at.outbox.say("name a river")
        await at.idle(1)
        answer, ending = at.talk.transcript.settled[-2:]
        assert isinstance(answer, Answer)
        assert (answer.text, answer.complete) == ("The Rh", False)
        assert isinstance(ending, Ending)
        assert ending.reason in (StopReason.INCOMPLETE, StopReason.FAILED)
        assert "it died" in ending.text


async def test_a_conversation_that_is_open_elsewhere_can_be_read_and_the_message_is_kept(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("one")]) as first:
        closed = await first.say("name a river")
        async with stand(tmp_path, [says("two")]) as at:
            await at.talk.open(closed.conversation_id)
            assert texts(at.talk.transcript) == ["name a river", "one"]
            assert at.talk.holder is not None
            assert _told(at.talk) == []  # the row above the prompt says it
            at.outbox.say("again")
            await at.idle(1)
            assert [message.text for message in at.outbox.waiting] == ["again"]
            assert at.outbox.held


async def test_a_command_shows_what_it_says_and_a_new_conversation_is_gone_to(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("one")]) as at:
        at.outbox.say("name a river")
        await at.idle(1)
        before = at.talk.conversation_id
        await at.desk.command("/new")
        assert at.talk.conversation_id != before
        assert texts(at.talk.transcript) == []
        await at.desk.command("/health")
        last = at.talk.transcript.settled[-1]
        assert isinstance(last, CommandOutput)
        assert "healthy" in last.text


async def test_a_command_that_cannot_be_run_says_so(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("one")]) as at:
        assert await at.desk.command("/halth") is None
        last = at.talk.transcript.settled[-1]
        assert isinstance(last, CommandOutput)
        assert not last.ok
        assert "/health" in last.text


async def test_going_elsewhere_while_a_turn_runs_is_refused(tmp_path: Path) -> None:
    async with stand(tmp_path, [SLOW]) as at:
        at.outbox.say("first")
        await until(lambda: bool(at.rig.model.requests))
        assert await at.desk.command("/new") is None
        at.outbox.cancel()
        await at.idle(1)


async def test_a_conversation_that_is_left_can_be_opened_by_another_process(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("one"), says("two")]) as at:
        at.outbox.say("first")
        await at.idle(1)
        left = at.talk.conversation_id
        assert left is not None
        await at.desk.command("/new")
        assert await at.rig.services.surface.views.holder(left) is None
        await at.desk.command(f"/resume {left}")
        assert texts(at.talk.transcript) == ["first", "one"]


async def test_ten_thousand_deltas_change_the_screen_few_times(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("word " * 10_000)]) as at:
        at.outbox.say("first")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await at.idle(1)
        assert at.changes <= (loop.time() - began) * 60 + 10
        assert texts(at.talk.transcript)[-1] == "word " * 10_000


def _told(talk: Talk) -> list[str]:
    return [entry.text for entry in talk.transcript.entries if isinstance(entry, Told)]


async def test_thinking_that_is_chosen_while_the_first_message_is_on_its_way_goes_with_the_next(tmp_path: Path) -> None:
    async with stand(tmp_path, [says("one"), says("two")]) as at:
        at.outbox.say("first")
        await until(lambda: at.talk.busy)
        assert at.talk.conversation_id is None
        at.talk.requested_thinking = "off"
        await at.idle(1)
        assert at.talk.thinking == "off"
        at.outbox.say("second")
        await at.idle(2)
        assert [request.think for request in at.rig.model.requests] == [None, "off"]
        assert (at.talk.requested_thinking, at.talk.thinking) == (None, "off")
