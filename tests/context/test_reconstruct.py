from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.context.blocks import ProjectFile
from rune.context.reconstruct import rebuild_messages
from rune.context.render import evidence_id
from rune.records.messages import ConversationMessageRecord
from rune.records.traces import PromptRecipe, RecipeBlock
from tests.context.talk import READ_FILE, Conversation, Giver, block, broker_of


def stored(talk: Conversation) -> dict[str, ConversationMessageRecord]:
    """Return the conversation's records as they come back from the journal: with sorted keys."""
    return {
        message.id: msgspec.json.decode(msgspec.json.encode(message, order="sorted"), type=ConversationMessageRecord)
        for message in talk.history
    }


def played(dialect: Any = "ollama") -> Conversation:
    talk = Conversation(broker_of(), dialect=dialect)
    talk.tools = [READ_FILE]
    talk.project = [ProjectFile(path="AGENTS.md", text="Use tabs.")]
    talk.turn("one", rounds=[talk.writer.round("look", ["a", "b"])])
    talk.turn("two")
    return talk


@settings(deadline=None, max_examples=40)
@given(
    turns=st.lists(
        st.tuples(
            st.text(max_size=20),
            st.sampled_from([0, 2000]),
            st.lists(st.lists(st.text(max_size=20), min_size=1, max_size=3), max_size=2),
            st.text(max_size=20),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    recalled=st.text(st.characters(codec="utf-8"), min_size=1, max_size=30),
    dialect=st.sampled_from(["ollama", "openai", "constrained"]),
)
def test_every_request_of_any_conversation_is_rebuilt_byte_for_byte(
    turns: list[tuple[str, int, list[list[str]], str, bool]], recalled: str, dialect: Any
) -> None:
    persona = Giver("persona", block("persona", "You are Rune.", evictable=False, placement="prefix"))
    talk = Conversation(broker_of(persona, Giver("memory", block("memory", recalled))), dialect=dialect, window=4096)
    talk.tools = [READ_FILE]
    for text, size, results, answer, complete in turns:
        talk.ask(text + "x" * size, rounds=[talk.writer.round("", each) for each in results])
        talk.history.append(talk.writer.answer(answer, complete=complete))
    messages = stored(talk)
    for capsule, trace in talk.requests:
        rebuilt = rebuild_messages(trace.recipe, trace.blobs, messages)
        assert rebuilt.problems == ()
        assert rebuilt.matches
        assert (rebuilt.messages, rebuilt.tools) == (capsule.messages, capsule.tools)


def test_a_recipe_that_was_stored_rebuilds_the_same() -> None:
    talk = played()
    capsule, trace = talk.requests[-1]
    recipe = msgspec.json.decode(msgspec.json.encode(trace.recipe), type=PromptRecipe)
    assert rebuild_messages(recipe, trace.blobs, stored(talk)).messages == capsule.messages


def test_a_tail_that_its_record_does_not_carry_is_taken_from_the_evidence() -> None:
    talk = Conversation(broker_of(Giver("memory", block("memory", "Rex."), block("memory", "Three years."))))
    talk.ask("one", rounds=[talk.writer.round("look", ["a"])])
    bare = {message.id: msgspec.structs.replace(message, tail="") for message in talk.history}
    for capsule, trace in talk.requests:
        assert rebuild_messages(trace.recipe, trace.blobs, bare).messages == capsule.messages


def test_without_tools_none_are_rebuilt() -> None:
    talk = Conversation(broker_of())
    talk.turn("one")
    assert rebuild_messages(talk.requests[0][1].recipe, talk.requests[0][1].blobs, stored(talk)).tools == b"[]"


@pytest.mark.parametrize("dialect", ["ollama", "openai"])
def test_whatever_is_missing_or_changed_is_named_and_never_matches(dialect: Any) -> None:
    talk = played(dialect)
    _, trace = talk.requests[-1]
    messages = stored(talk)
    victim = trace.recipe.history[0].message_id
    persona = trace.recipe.blocks[0].blob
    without_message = {name: message for name, message in messages.items() if name != victim}
    changed = {**messages, victim: msgspec.structs.replace(messages[victim], content="another")}
    without_blob = {name: content for name, content in trace.blobs.items() if name != persona}
    cases = [
        (trace.recipe, trace.blobs, without_message, f"message {victim} is missing"),
        (trace.recipe, trace.blobs, changed, f"message {victim} is not rendered as it was sent"),
        (trace.recipe, without_blob, messages, "the content of block 'persona' is missing"),
        (trace.recipe, {**trace.blobs, persona: b"You are evil."}, messages, "the content of block 'persona' is not"),
        (trace.recipe, {**trace.blobs, trace.recipe.tools: b"[1]"}, messages, "the content of the tools is not"),
        (msgspec.structs.replace(trace.recipe, messages_hash="sha256:0"), trace.blobs, messages, "have another hash"),
    ]
    for recipe, blobs, records, problem in cases:
        rebuilt = rebuild_messages(recipe, blobs, records)
        assert not rebuilt.matches
        assert problem in " ".join(rebuilt.problems)


def test_the_schema_that_held_the_answer_is_rebuilt_too_and_missed() -> None:
    talk = played()
    trace = talk.requests[-1][1]
    schema = b'{"type":"object"}'
    name = evidence_id(schema)
    recipe = msgspec.structs.replace(trace.recipe, format=name)
    whole = rebuild_messages(recipe, {**trace.blobs, name: schema}, stored(talk))
    assert (whole.format, whole.matches, whole.problems) == (schema, True, ())
    assert rebuild_messages(trace.recipe, trace.blobs, stored(talk)).format == b""
    for blobs, erased, problem in (
        (trace.blobs, set[str](), "the content of the schema of the answer is missing"),
        (trace.blobs, {name}, "the content of the schema of the answer was erased"),
        ({**trace.blobs, name: b"{}"}, set[str](), "the content of the schema of the answer is not what it was"),
    ):
        spoilt = rebuild_messages(recipe, blobs, stored(talk), erased)
        assert not spoilt.matches
        assert problem in " ".join(spoilt.problems)


def test_the_prompt_of_a_side_call_is_the_bytes_that_were_kept_and_nothing_else() -> None:
    sent = b'[{"role":"system","content":"Name it."}]'
    name = evidence_id(sent)
    block = RecipeBlock(name="side_call", placement="body", tokens=9, blob=name)
    recipe = PromptRecipe(
        dialect="openai",
        prefix="",
        blocks=(block,),
        history=(),
        tools="",
        messages_hash=name,
        messages_bytes=len(sent),
        prompt_tokens_estimated=9,
    )
    rebuilt = rebuild_messages(recipe, {name: sent}, {})
    assert (rebuilt.messages, rebuilt.tools, rebuilt.matches, rebuilt.problems) == (sent, b"[]", True, ())
    cases: list[tuple[dict[str, bytes], set[str], str]] = [
        ({}, set(), "the content of block 'side_call' is missing"),
        ({}, {name}, "the content of block 'side_call' was erased"),
        ({name: b"[]"}, set(), "the content of block 'side_call' is not what it was"),
    ]
    for blobs, erased, problem in cases:
        spoilt = rebuild_messages(recipe, blobs, {}, erased)
        assert not spoilt.matches
        assert problem in " ".join(spoilt.problems)
