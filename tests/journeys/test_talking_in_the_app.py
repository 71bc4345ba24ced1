"""A person talks with Rune in the app: what they see at each step."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import ServerError
from rune.models.ollama.transport import OllamaTransport
from rune.models.scripted import Pause, ScriptedTransport, breaks, says
from rune.models.transport import ChatRequest, Progress
from tests.tui.stage import Stage, stage

SLOW = [Pause(60.0), *says("late")]
RIVERS = "The **Rhine**, and:\n\n- Elbe\n- Oder\n\n```python\nriver = 'Danube'\n```\n"


async def asked(at: Stage, many: int = 1) -> None:
    """Wait until the model was asked."""
    await at.until(lambda: len(at.model.requests) >= many, "the model's turn")


async def test_a_message_is_answered_and_both_stay_on_the_screen(tmp_path: Path) -> None:
    async with stage(tmp_path, [says(RIVERS, thinking="let me think about rivers")]) as at:
        await at.say("name three rivers")
        await at.until_shown("you    name three rivers", "▸ thought, 5 words", "- Elbe", "river = 'Danube'")
        await at.idle()
        assert "**" not in at.text()
        assert "scripted · local" in at.text()


async def test_thinking_opens_and_folds(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.", thinking="a long river in Europe")]) as at:
        await at.say("name a river")
        await at.until_shown("▸ thought")
        await at.idle()
        await at.pilot.press("ctrl+t")
        await at.until_shown("▾", "a long river in Europe")
        await at.pilot.press("ctrl+t")
        await at.until_gone("a long river in Europe")


async def test_the_state_of_the_turn_is_told(tmp_path: Path) -> None:
    gate = asyncio.Event()
    answer = [Progress("reading", 0, 3210), gate, *says("one two three four five six", delay=0.001)]
    async with stage(tmp_path, [answer]) as at:
        await at.say("name a river")
        await at.until_shown("reading 3,210 tokens", "esc stops")
        gate.set()
        await at.idle()
        await at.until_gone("esc stops")


@pytest.mark.parametrize("where", ["before the first token", "in mid-answer", "while thinking"])
async def test_esc_stops_the_turn_and_keeps_what_came(tmp_path: Path, where: str) -> None:
    answers = {
        "before the first token": [Progress("loading", 0, None), Pause(60.0)],
        "in mid-answer": [*says("The Rhine flows")[:-1], Pause(60.0)],
        "while thinking": [*says("x", thinking="hmm, rivers")[:2], Pause(60.0)],
    }
    seen = {"before the first token": "loading", "in mid-answer": "The Rhine", "while thinking": "thinking"}[where]
    async with stage(tmp_path, [answers[where], says("The Elbe.")]) as at:
        await at.say("name a river")
        await at.until_shown(seen)
        await at.pilot.press("escape")
        await at.idle()
        await at.until_shown("cancelled")
        assert where != "in mid-answer" or "The Rhine" in at.text()
        await at.say("another")
        await at.until_shown("The Elbe.")


async def test_what_is_typed_meanwhile_waits_is_taken_back_or_sent(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with stage(tmp_path, [[gate, *says("The Rhine.")], says("The Elbe.")]) as at:
        await at.say("name a river")
        await asked(at)
        await at.say("and a second one")
        await at.until_shown("waiting", "and a second one", "esc takes back")
        await at.pilot.press("escape")
        await at.until_shown("> and a second one")
        assert at.talk.busy
        await at.pilot.press("enter")
        await at.until_shown("waiting")
        gate.set()
        await at.until_shown("The Rhine.", "The Elbe.")
        await at.idle()
        assert len(at.model.requests) == 2


async def test_a_server_that_dies_in_mid_answer_leaves_what_came_and_says_so(tmp_path: Path) -> None:
    broken = breaks("The Rhine is", ServerError("out of memory", status=0, phase="token"))
    async with stage(tmp_path, [broken, says("The Elbe.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine is", "failed in mid-answer", "✖ model")
        await at.say("again")
        await at.until_shown("The Elbe.")


async def test_without_any_model_a_person_is_told_what_to_do_and_the_message_is_kept(tmp_path: Path) -> None:
    nobody = OllamaTransport("http://127.0.0.1:1")
    async with stage(tmp_path, transports=[nobody]) as at:
        await at.until_shown("no model")
        await at.say("name a river")
        await at.until_shown("you    name a river", "Ollama")
        await at.idle()


async def test_after_leaving_everything_is_there_again(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        app = at.app
    (line,) = app.goodbye
    identity = line.split()[-1]
    async with stage(tmp_path, [says("The Elbe.")], resume=identity) as at:
        await at.until_shown("name a river", "The Rhine.")
        await at.say("another")
        await at.until_shown("The Elbe.")
        await at.idle()
        assert b"name a river" in at.model.requests[-1].messages


async def test_carrying_on_opens_the_newest_conversation_of_the_folder(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
    async with stage(tmp_path, carry_on=True) as at:
        await at.until_shown("The Rhine.")
    async with stage(tmp_path, folder=tmp_path / "elsewhere", carry_on=True) as at:
        await at.until_shown("nothing to continue")


async def test_a_second_rune_leaves_the_first_ones_conversation_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine."), says("The Elbe.")]) as first:
        await first.say("name a river")
        await first.until_shown("The Rhine.")
        await first.idle()
        identity = first.talk.conversation_id
        async with stage(tmp_path, [says("The Oder.")], resume=identity) as second:
            await second.until_shown("open in process", "The Rhine.")
            await second.say("mine now")
            await second.until_shown("waiting", "mine now")
            assert second.model.requests == []
            await second.say("/new")
            await second.pilot.press("enter")
            await second.until_shown("The Oder.")
        await first.say("go on")
        await first.until_shown("The Elbe.")


async def test_the_two_channels_are_two_conversations(tmp_path: Path) -> None:
    def answer(request: ChatRequest) -> list[object]:
        return list(says("for the chat" if b"chatting" in request.messages else "for the task"))

    async with stage(tmp_path, answer) as at:  # pyright: ignore[reportArgumentType]  # steps, spelled as objects
        await at.say("working")
        await at.until_shown("for the task")
        await at.idle()
        await at.pilot.press("f4")
        await at.until_gone("for the task")
        await at.say("chatting")
        await at.until_shown("for the chat")
        await at.idle()
        await at.pilot.press("f3")
        await at.until_shown("for the task")
        await at.until_gone("for the chat")


async def test_in_the_chat_a_message_can_be_passed_to_the_task(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("understood")]) as at:
        await at.pilot.press("f4")
        await at.say("> use decimals")
        await at.until_shown("passed on to the task: use decimals")
        await at.pilot.press("f3")
        await at.until_shown("you    use decimals", "understood")


async def test_new_begins_again_and_resume_goes_back(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        await at.say("/new")
        await at.until_gone("The Rhine.")
        await at.say("/resume")
        await at.until_shown("Conversations", "name a river")
        await at.type("name")
        await at.pilot.press("enter")
        await at.until_shown("The Rhine.")


async def test_the_picker_changes_the_model_of_the_next_turn(tmp_path: Path) -> None:
    model = ScriptedTransport(
        [says("The Rhine."), says("The Elbe.")],
        models=[info(name) for name in ("small:1b", "large:8b")],
    )
    async with stage(tmp_path, model=model) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        await at.pilot.press("ctrl+l")
        await at.until_shown("Models", "large:8b")
        await at.type("large")
        await at.pilot.press("enter")
        await at.until_shown("large:8b · local")
        await at.say("another")
        await at.until_shown("The Elbe.")
        await at.idle()
        assert [request.model for request in at.model.requests] == ["small:1b", "large:8b"]


def info(name: str):  # noqa: ANN201  # a ModelInfo, which tests elsewhere build too
    from rune.models.transport import ModelInfo

    return ModelInfo(
        name=name, provider="scripted", capabilities=frozenset({"chat"}), context_length=8192, digest=f"sha256:{name}"
    )


@pytest.mark.parametrize(
    ("line", "shows"),
    [
        ("/help", "/trust"),
        ("/health", "healthy"),
        ("/context", "window"),
        ("/trace", "prompt"),
        ("/done", "done: name a river"),
        ("/theme", "rune-light"),
        ("/trust", "no file here"),
        ("/hepl", "Did you mean /help?"),
        ("/copy", "copied 1 line"),
    ],
)
async def test_every_command_answers(tmp_path: Path, line: str, shows: str) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        await at.say(line)
        await at.until_shown(shows)


async def test_copying_gives_the_answer_as_it_was_written(tmp_path: Path) -> None:
    async with stage(tmp_path, [says(RIVERS)]) as at:
        await at.say("name three rivers")
        await at.until_shown("Danube")
        await at.idle()
        await at.pilot.press("ctrl+y")
        await at.until(lambda: at.app.clipboard == RIVERS, "the copy")
        await at.pilot.press("f5")
        await at.until(lambda: at.app.clipboard.strip() == "river = 'Danube'", "the code by its key")
        at.app.copy_to_clipboard("")
        await at.say("/copy code")
        await at.until(lambda: at.app.clipboard == "river = 'Danube'", "the code")


async def test_a_theme_is_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await at.say("/theme rune-light")
        await at.until_shown("theme rune-light")
        assert at.app.theme == "rune-light"
        await at.until(lambda: at.surface.preferences.theme == "rune-light", "the kept theme")
    async with stage(tmp_path) as at:
        await at.until(lambda: at.app.theme == "rune-light", "the theme")


async def test_what_is_typed_before_anything_is_there_is_not_lost(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")], opened=False) as at:
        await at.say("name a river")
        await at.until_shown("The Rhine.")


async def test_what_was_unsent_when_rune_was_killed_is_offered_again(tmp_path: Path) -> None:
    async with stage(tmp_path, [SLOW]) as at:
        await at.say("name a river")
        await asked(at)
        await at.say("waiting words")
        await at.type("half a sen")
        drafts = tmp_path / "home" / "state" / "drafts"
        await at.until(lambda: any(b"half a sen" in path.read_bytes() for path in drafts.glob("*.json")), "the draft")
        kept = {path: path.read_bytes() for path in drafts.glob("*.json")}
    for path in drafts.glob("*.json"):
        path.unlink()
    for path, content in kept.items():  # as after a kill: nobody was there to remove it
        path.write_bytes(content)
        path.chmod(0o600)
    async with stage(tmp_path, [says("The Elbe.")]) as at:
        await at.until_shown("unsent from before", "and 1 more")
        await at.pilot.press("up")
        await at.until(lambda: at.app.chat.prompts()["task"] == "waiting words", "the first")
        await at.pilot.press("ctrl+u", "up")
        await at.until(lambda: at.app.chat.prompts()["task"] == "half a sen", "the second")
        await at.until_gone("unsent from before")
        assert at.model.requests == []


async def test_ctrl_c_clears_and_twice_leaves(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        await at.type("never mind")
        await at.pilot.press("ctrl+c")
        await at.until_gone("never mind")
        await at.pilot.press("ctrl+c")
        await at.until_shown("ctrl+c again leaves")
        await at.pilot.press("ctrl+c")
        await at.until(lambda: not at.app.is_running, "the end")


async def test_a_home_that_cannot_be_used_ends_the_app_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("model: [")
    async with stage(tmp_path, opened=False) as at:
        await at.until(lambda: at.app.failure is not None, "the failure")
        assert "config.yaml" in str(at.app.failure)


async def test_a_project_asks_once_whether_its_files_may_instruct(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Answer in rhymes.")
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.until_shown("AGENTS.md would instruct", "f2")
        await at.say("name a river")
        await at.until_shown("The Rhine.")
        await at.idle()
        assert b"rhymes" not in at.model.requests[0].messages
        assert at.text().count("not read") == 1
        await at.pilot.press("f2")
        await at.until_shown("Answer in rhymes.", "Trust")
        await at.pilot.pause(0.4)  # answers count only once they could be read
        await at.pilot.press("right", "enter")
        await at.until_gone("Answer in rhymes.")
        await at.until_gone("would instruct")
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await at.until_shown("scripted answers")
        assert "would instruct" not in at.text()
        (folder / "AGENTS.md").write_text("Answer in prose.")
    async with stage(tmp_path, [says("The Elbe.")]) as at:
        await at.until_shown("would instruct")
