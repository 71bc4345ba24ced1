"""A prompt that a server cut in silence ends its turn, and what its calls cost is kept however they end."""

from pathlib import Path

import pytest

from rune.errors import ContextTruncatedError, EmptyOutputError
from rune.models.scripted import ScriptedTransport, Step, breaks, says
from rune.models.transport import Capability, Completed, ModelInfo
from rune.models.truncation import truncated
from rune.records.turns import StopReason
from rune.records.usage import Usage
from rune.turn.events import Notice
from tests.turn.rig import closing, rig
from tests.turn.test_action_protocols import ANSWER, READ, large
from tests.turn.tools import Offered

ABLE: frozenset[Capability] = frozenset({"chat", "tools"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def counted(text: str, prompt: int | None, cached: int | None = 0) -> list[Step]:
    """Return an answer whose server counted the prompt so."""
    return [*says(text)[:-1], Completed("stop", Usage(calls=1, prompt_tokens=prompt, cached_tokens=cached))]


def model(name: str, window: int = 8192) -> ModelInfo:
    return ModelInfo(
        name=name, provider="scripted", capabilities=ABLE, context_length=window, digest=name, parameters="14B"
    )


async def test_a_prompt_that_only_grew_and_was_read_with_fewer_tokens_ends_the_turn(home: Path) -> None:
    answers = [counted("The Danube.", 1000), counted("The", 500), counted("The Elbe.", 1050)]
    async with rig(home, answers) as it:
        first = await it.say()
        cut = await it.say("another", first.conversation_id)
        said = (await it.services.surface.views.transcript(first.conversation_id))[-1]
        trace = await it.services.surface.views.trace(cut.trace_id)
        after = await it.say("one more", first.conversation_id)
    assert (cut.stop_reason, cut.answer, cut.complete) == (StopReason.CONTEXT_EXHAUSTED, "The", False)
    assert cut.error_type == "ContextTruncatedError"
    assert f"about {trace.prompt_tokens_estimated:,} tokens were sent, 500 were read" in cut.error
    assert "new conversation" in cut.hint
    assert (said.content, said.complete) == ("The", False)
    assert cut.usage is not None
    assert (cut.usage.prompt_tokens, trace.prompt_tokens_served) == (500, 500)
    # What was learned of the last whole prompt still holds.
    assert after.stop_reason is StopReason.ANSWERED


async def test_another_model_is_watched_anew(home: Path) -> None:
    """The first is known to count cached tokens too; of the second nothing is known, so that fewer prove nothing."""
    answers = [counted("The Danube.", 1000), counted("The Elbe.", 900, None), counted("The Rhine.", 400, None)]
    both = ScriptedTransport(answers, models=[model("one"), model("two")])
    async with rig(home, (), model=both) as it:
        first = await it.say()
        await it.operator.choose_model(first.conversation_id, "two")
        for text in ("another", "one more"):
            closed = await it.say(text, first.conversation_id)
            assert (closed.model, closed.stop_reason) == ("two", StopReason.ANSWERED)


async def test_a_second_try_is_another_prompt_and_both_calls_are_paid(home: Path) -> None:
    leaked = counted('{"name": "read_file", "arguments": {}}', 1000)
    async with rig(home, (), model=large(leaked, counted(ANSWER, 400)), tools=[Offered(READ)]) as it:
        closed = await it.say()
        trace = await it.services.surface.views.trace(closed.trace_id)
    assert (closed.stop_reason, closed.answer) == (StopReason.ANSWERED, "The Danube.")
    assert closed.usage is not None
    assert (closed.usage.calls, closed.usage.prompt_tokens) == (2, 1400)
    assert trace.prompt_tokens_served == 1400


async def test_a_cut_prompt_is_told_where_its_call_cannot_be_used_and_is_not_tried_again(home: Path) -> None:
    answers = counted("The Danube.", 1000), counted('{"name": "read_file", "arguments": {}}', 300), says(ANSWER)
    async with rig(home, (), model=large(*answers), tools=[Offered(READ)]) as it:
        first = await it.say()
        cut = await it.say("another", first.conversation_id)
        assert len(it.model.requests) == 2
    assert (cut.stop_reason, cut.error_type) == (StopReason.CONTEXT_EXHAUSTED, "ContextTruncatedError")


async def test_where_the_prompt_was_cut_the_window_in_force_is_asked_for_and_holds_from_then_on(home: Path) -> None:
    error = truncated(estimated=9000, served=2000, window=8192)
    served = ScriptedTransport([breaks("The", error), says("The Rhine.")], models=[model("one")], window=2048)
    async with rig(home, (), model=served) as it:
        events = await it.turn()
        (notice,) = [event for event in events if isinstance(event, Notice)]
        await it.say("another", closing(events).conversation_id)
        assert [request.options.num_ctx for request in it.model.requests] == [8192, 2048]
    cut = closing(events)
    assert (cut.stop_reason, cut.answer, cut.complete) == (StopReason.CONTEXT_EXHAUSTED, "The", False)
    assert cut.usage == Usage(calls=1, prompt_tokens=2000)
    assert "window of 2,048 tokens instead of 8,192" in notice.text


async def test_a_prompt_that_was_refused_cost_nothing(home: Path) -> None:
    refused = ContextTruncatedError("the prompt is 9000 tokens", estimated=8000, served=9000, window=8192)
    async with rig(home, [[refused]]) as it:
        closed = await it.say()
    assert (closed.stop_reason, closed.usage) == (StopReason.CONTEXT_EXHAUSTED, Usage())


async def test_what_was_generated_and_swallowed_is_paid_too(home: Path) -> None:
    async with rig(home, [[EmptyOutputError(generated=9)]]) as it:
        closed = await it.say()
    assert closed.usage == Usage(calls=1, output_tokens=9)


@pytest.mark.parametrize(("words", "read", "cut"), [(2600, 2000, True), (3, 60, False), (2600, None, False)])
async def test_a_window_that_turns_out_smaller_says_whether_the_answer_rests_on_part_of_its_prompt(
    home: Path, words: int, read: int | None, cut: bool
) -> None:
    served = ScriptedTransport([counted("The Danube.", read)], models=[model("one")], window=2048)
    async with rig(home, (), model=served) as it:
        events = await it.turn("river " * words)
    (notice,) = [event for event in events if isinstance(event, Notice)]
    closed = closing(events)
    assert (closed.stop_reason, closed.complete) == (StopReason.ANSWERED, True)
    assert notice.tier == 1
    assert "window of 2,048 tokens instead of 8,192" in notice.text
    sent = it.model.requests[0].estimated
    said = f"The prompt of this answer was most likely cut: about {sent:,} tokens were sent, 2,000 were read"
    assert (said in notice.text, "cut" in notice.text) == (cut, cut)
