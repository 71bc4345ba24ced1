"""What is said when models come and go, and when one leaves the machine, on models that a test has come and go."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rune.models.scripted import Answers, ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.tui.transcript_state import Told
from tests.tui.stage import Stage, said, stage

NEAR = ModelInfo(name="near:4b", provider="scripted", capabilities=frozenset({"chat"}), context_length=8192)
FAR = msgspec.structs.replace(NEAR, name="far:70b", remote=True)
OTHER = msgspec.structs.replace(NEAR, name="other:1b", size=1)


class Shelf(ScriptedTransport):
    """A server whose models come and go as a test likes."""

    def __init__(self, *infos: ModelInfo, answers: Answers = lambda _: says("yes")) -> None:
        super().__init__(answers, models=infos)
        self.shown: Sequence[ModelInfo] = infos

    async def models(self) -> list[ModelInfo]:
        return list(self.shown)

    async def describe(self, model: str) -> ModelInfo:
        return next(info for info in self.shown if info.name == model)


async def shelved(at: Stage, shelf: Shelf, *infos: ModelInfo) -> None:
    """Have these be there from now on, and seen."""
    shelf.shown = infos
    at.surface.models.look_soon()


def told(at: Stage) -> list[str]:
    return [entry.text for entry in at.talk.transcript.entries if isinstance(entry, Told)]


def remote_allowed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("model:\n  local_only: false\n")


async def test_what_is_there_from_the_beginning_is_no_news(tmp_path: Path) -> None:
    async with stage(tmp_path, model=Shelf(NEAR)) as at:
        await at.until_shown("near:4b answers, on this machine")
        await at.settled()
        assert told(at) == []


async def test_another_model_for_what_has_not_begun_is_said(tmp_path: Path) -> None:
    shelf = Shelf(NEAR, OTHER)
    async with stage(tmp_path, model=shelf) as at:
        await at.until(lambda: at.talk.model is not None and bool(at.talk.model.name))
        assert at.talk.model is not None
        first = at.talk.model.name
        (second,) = (info for info in shelf.shown if info.name != first)
        await shelved(at, shelf, second)
        await at.until_shown(f"{second.name} · local")
        await at.until(lambda: bool(told(at)), "the news")
        assert told(at) == [f"{first} is not there any more; {second.name} answers from the next message on"]


async def test_a_model_that_leaves_the_machine_says_so_when_it_comes(tmp_path: Path) -> None:
    remote_allowed(tmp_path)
    shelf = Shelf()
    async with stage(tmp_path, model=shelf) as at:
        await at.until_shown("no model")
        await shelved(at, shelf, FAR)
        await at.until_shown("far:70b · remote", "remote: what you send leaves this machine")


async def test_the_first_message_to_a_remote_model_says_so_once_a_conversation(tmp_path: Path) -> None:
    remote_allowed(tmp_path)
    notice = "far:70b is remote: what you write in this conversation leaves this machine"
    async with stage(tmp_path, model=Shelf(FAR)) as at:
        identity = await said(at, "one", "yes")
        await at.say("two")
        await at.until(lambda: len(at.talk.transcript.entries) == 5, "the second answer")
        assert told(at) == [notice]
        await at.say("/new")
        await at.until(lambda: at.talk.conversation_id != identity)
        await at.say("three")
        await at.until_shown("yes")
        await at.idle()
        assert told(at) == [notice]
    async with stage(tmp_path, model=Shelf(FAR), resume=identity) as at:
        await at.say("four")
        await at.until(lambda: len(at.talk.transcript.entries) == 6, "the answer")
        await at.idle()
        assert told(at) == []


async def test_while_a_turn_runs_nothing_is_said_and_the_header_is_right_afterwards(tmp_path: Path) -> None:
    gate = asyncio.Event()
    shelf = Shelf(NEAR, OTHER, answers=lambda _: [gate, *says("yes")])
    async with stage(tmp_path, model=shelf) as at:
        await at.say("hello")
        await at.until(lambda: bool(shelf.requests), "the call")
        answering = shelf.requests[0].model
        await shelved(at, shelf, *(info for info in shelf.shown if info.name != answering))
        await at.until(lambda: at.talk.stale_model, "that it is noticed")
        assert at.shows(f"{answering} · local")
        gate.set()
        await at.idle()
        await at.until_shown("no model")


async def test_what_is_chosen_stays_chosen_whatever_comes(tmp_path: Path) -> None:
    shelf = Shelf(OTHER)
    async with stage(tmp_path, model=shelf) as at:
        await at.until_shown("other:1b · local")
        await at.say("/model other:1b")
        await at.until_shown("other:1b answers from the first message on")
        await shelved(at, shelf, NEAR, OTHER)
        await at.until(lambda: len(shelf.shown) == 2)
        await at.settled()
        assert at.shows("other:1b · local")
        assert told(at) == []
