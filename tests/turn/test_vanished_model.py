"""A model that goes away while a conversation is on: said with what to do, never another one in silence."""

from pathlib import Path

from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.records.turns import StopReason
from tests.surface.test_views import CHATS
from tests.turn.rig import rig


class Removing(ScriptedTransport):
    """A server from which models are removed while it runs."""

    def __init__(self, *names: str) -> None:
        super().__init__(lambda _: says("yes"))
        self.names = list(names)

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(name=name, provider="ollama", capabilities=CHATS, context_length=8192) for name in self.names]

    async def describe(self, model: str) -> ModelInfo:
        return next(info for info in await self.models() if info.name == model)

    async def window_in_force(self, model: str) -> int | None:
        del model
        return None


async def test_the_next_turn_fails_with_the_way_to_the_picker_and_nothing_is_asked(tmp_path: Path) -> None:
    server = Removing("qwen3:4b", "llama3:8b")
    async with rig(tmp_path / "home", [], model=server) as it:
        said = await it.say("one")
        assert said.model == "qwen3:4b"
        server.names.remove("qwen3:4b")
        gone = await it.say("two", said.conversation_id)
        assert (gone.stop_reason, gone.error_type) == (StopReason.FAILED, "ModelNotFoundError")
        assert gone.error == "this conversation's model 'qwen3:4b' is not there any more"
        assert "ctrl+l or /model NAME" in gone.hint
        assert "llama3:8b" in gone.hint
        assert [request.model for request in server.requests] == ["qwen3:4b"]


async def test_who_chooses_another_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    server = Removing("qwen3:4b", "llama3:8b")
    async with rig(tmp_path / "home", [], model=server) as it:
        said = await it.say("one")
        server.names.remove("qwen3:4b")
        await it.say("two", said.conversation_id)
        await it.operator.choose_model(said.conversation_id, "llama3:8b")
        went_on = await it.say("three", said.conversation_id)
        assert (went_on.stop_reason, went_on.model) == (StopReason.ANSWERED, "llama3:8b")
        assert b"one" in server.requests[-1].messages


async def test_a_model_that_is_there_again_answers_again(tmp_path: Path) -> None:
    server = Removing("qwen3:4b", "llama3:8b")
    async with rig(tmp_path / "home", [], model=server) as it:
        said = await it.say("one")
        server.names.remove("qwen3:4b")
        await it.say("two", said.conversation_id)
        server.names.insert(0, "qwen3:4b")
        assert (await it.say("three", said.conversation_id)).model == "qwen3:4b"
