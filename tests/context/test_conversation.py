"""Whole conversations: what was sent stays as sent."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.context.blocks import ProjectFile
from rune.context.render import extends
from tests.context.talk import READ_FILE, Conversation, Failures, Giver, block, broker_of, sent


def breaks(talk: Conversation) -> list[str | None]:
    return [trace.prefix_break for _, trace in talk.requests]


def test_twenty_turns_reuse_every_byte() -> None:
    talk = Conversation(broker_of())
    for number in range(20):
        talk.turn(f"question {number}", f"answer {number}")
    assert [trace.prefix_reuse for _, trace in talk.requests] == [None, *[1.0] * 19]
    assert breaks(talk) == [None] * 20
    assert len({capsule.frozen for capsule, _ in talk.requests}) == 1


def test_a_broken_off_answer_and_one_that_never_came_break_nothing() -> None:
    talk = Conversation(broker_of())
    talk.ask("one")
    talk.ask("two")
    talk.history.append(talk.writer.answer("The riv", complete=False))
    talk.ask("three")
    talk.history.append(talk.writer.answer("", thinking="hm", complete=False))
    talk.ask("four")
    assert breaks(talk) == [None] * 4
    contents = [message["content"] for message in sent(talk.requests[-1][0])[1:]]
    assert contents == ["one", "two", "The riv\n[cut off]", "three", "four"]


def test_history_is_trimmed_once_and_then_stays_as_it_is_for_many_turns() -> None:
    talk = Conversation(broker_of(), window=8192)
    traces = [talk.turn(f"question {number} " + "x" * 300, "y" * 600) for number in range(60)]
    trimmed = [number for number, trace in enumerate(traces) if trace.archived_now]
    assert len(trimmed) >= 2
    assert min(after - before for before, after in itertools.pairwise(trimmed)) >= 5
    for number, trace in enumerate(traces):
        if number in trimmed:
            assert trace.prefix_break == "history trimmed"
            assert trace.prefix_reuse is not None
            assert trace.prefix_reuse < 1.0
            (out,) = trace.dropped
            assert (out.name, out.reason, out.message_ids) == ("history", "history_trimmed", trace.archived_now)
        else:
            assert (trace.prefix_break, trace.dropped) == (None, ())
            assert trace.prefix_reuse in {None, 1.0}
    assert len(talk.archived) == sum(len(trace.archived_now) for trace in traces)
    assert not talk.archived & {each.message_id for each in traces[-1].recipe.history}


def test_trimming_leaves_half_of_historys_budget_and_the_newest() -> None:
    talk = Conversation(broker_of(), window=8192)
    while not (trace := talk.turn("x" * 300, "y" * 600)).archived_now:
        pass
    other = sum(tokens for name, tokens in trace.per_block_tokens.items() if name != "history")
    allowance = trace.input_budget - other - trace.input_budget // 10
    group = 100 + 200 + 16
    assert allowance / 2 - group < trace.per_block_tokens["history"] <= allowance / 2
    kept = [each.message_id for each in trace.recipe.history]
    assert kept == [message.id for message in talk.history[:-1]][-len(kept) :]


def test_rounds_of_a_turn_that_trimmed_do_not_trim_or_break_again() -> None:
    talk = Conversation(broker_of(), window=8192)
    while not talk.ask("x" * 300, rounds=[talk.writer.round("look", ["y" * 600])]).archived_now:
        pass
    (_, first), (_, second) = talk.requests[-2:]
    assert (first.prefix_break, second.prefix_break) == ("history trimmed", None)
    assert (second.archived_now, second.prefix_reuse) == ((), 1.0)
    assert second.dropped == first.dropped


@pytest.mark.parametrize("window", [2048, 4096, 8192, 16384, 65536, 262144])
def test_a_long_conversation_works_in_every_window(window: int) -> None:
    talk = Conversation(broker_of(), window=window)
    talk.tools = [READ_FILE]
    for number in range(30):
        talk.turn(f"{number} " + "x" * 120, "y" * 240, rounds=[talk.writer.round("look", ["z" * 90])])
    for capsule, trace in talk.requests:
        assert capsule.estimated <= trace.input_budget
        assert (trace.prefix_break is None) == (trace.prefix_reuse in {None, 1.0})
    assert (window < 16384) == bool(talk.archived)


def test_an_edited_project_file_is_one_traced_break() -> None:
    talk = Conversation(broker_of())
    talk.project = [ProjectFile(path="AGENTS.md", text="Use tabs.")]
    talk.turn("one")
    talk.turn("two")
    talk.project = [ProjectFile(path="AGENTS.md", text="Use blanks.")]
    changed = talk.turn("three")
    talk.turn("four")
    assert breaks(talk) == [None, None, "project changed", None]
    assert changed.prefix_reuse is not None
    assert changed.prefix_reuse < 1.0
    assert "Use blanks." in sent(talk.requests[-1][0])[0]["content"]


def test_several_changes_are_named_together() -> None:
    persona = Giver("persona", block("persona", "You are Rune.", evictable=False, placement="prefix"))
    talk = Conversation(broker_of(persona))
    talk.turn("one")
    persona.given = (block("persona", "You are another.", evictable=False, placement="prefix"),)
    talk.tools = [READ_FILE]
    assert talk.turn("two").prefix_break == "persona changed, tools changed"


def test_a_new_tool_breaks_the_prefix_though_the_messages_are_the_same() -> None:
    # Templates put the tools at the top of the prompt.
    talk = Conversation(broker_of(Giver("persona", block("persona", "You are Rune.", placement="prefix"))))
    talk.turn("one")
    talk.tools = [READ_FILE]
    trace = talk.turn("two")
    assert (trace.prefix_break, trace.prefix_reuse) == ("tools changed", 1.0)


def test_where_a_block_came_from_is_not_sent_and_breaks_nothing() -> None:
    persona = Giver("persona", block("persona", "You are Rune.", placement="prefix"))
    talk = Conversation(broker_of(persona))
    talk.turn("one")
    frozen = talk.frozen
    persona.given = (msgspec.structs.replace(persona.given[0], source="elsewhere", provenance="file"),)
    assert talk.turn("two").prefix_break is None
    assert talk.frozen is frozen


@pytest.mark.parametrize("broken", [(RuntimeError("no disk"),), ("not a block",)])
def test_a_prefix_contributor_that_fails_later_keeps_its_frozen_block(broken: Any) -> None:
    failures = Failures()
    persona = Giver("persona", block("persona", "You are Rune.", evictable=False, placement="prefix"))
    project = Giver("project", block("project", "Use tabs.", placement="prefix"))
    talk = Conversation(broker_of(persona, project, failures=failures))
    talk.turn("one")
    whole = persona.given, project.given
    persona.given = project.given = broken
    trace = talk.turn("two")
    assert trace.degraded == ("persona", "project")
    assert (trace.prefix_break, trace.prefix_reuse) == (None, 1.0)
    persona.given, project.given = whole
    assert (talk.turn("three").prefix_break, failures.names) == (None, ["persona", "project"])


def test_a_block_that_left_for_a_large_message_does_not_come_and_go() -> None:
    talk = Conversation(broker_of(), window=8192)
    talk.project = [ProjectFile(path="AGENTS.md", text="Use tabs. " + "p" * 3000)]
    talk.turn("one")
    large = talk.turn("x" * 14_400)
    assert large.prefix_break == "project changed"
    assert [each.name for each in large.dropped] == ["project"]
    later = [talk.turn("short") for _ in range(3)]
    assert [(each.prefix_break or "").replace("history trimmed", "") for each in later] == [""] * 3
    assert all("project" in [out.name for out in each.dropped] for each in later)
    # When something else breaks the prefix, trying again costs nothing.
    talk.tools = [READ_FILE]
    trace = talk.turn("short")
    assert (trace.prefix_break or "").startswith("tools changed")
    assert "project" in trace.per_block_tokens


def test_a_block_that_was_left_out_returns_with_a_larger_window() -> None:
    talk = Conversation(broker_of(), window=8192)
    talk.project = [ProjectFile(path="AGENTS.md", text="p" * 3000)]
    talk.turn("x" * 14_400)
    assert "project" not in talk.turn("short").per_block_tokens
    talk.window = 16384
    assert talk.turn("short").prefix_break == "project changed"


def test_what_was_recalled_stays_with_its_message() -> None:
    memory = Giver("memory", block("memory", "It is called Rex."))
    talk = Conversation(broker_of(memory))
    assert talk.turn("What is it called?").tail == "It is called Rex."
    memory.given = (block("memory", "It is three years old."),)
    talk.turn("How old is it?")
    assert breaks(talk) == [None, None]
    contents = [message["content"] for message in sent(talk.requests[-1][0])]
    assert ["Rex" in content for content in contents] == [True, False, False]
    assert ["three" in content for content in contents] == [False, False, True]


def test_another_dialect_is_a_traced_break_only_where_it_writes_otherwise() -> None:
    talk = Conversation(broker_of())
    talk.tools = [READ_FILE]
    talk.turn("one")
    talk.dialect = "openai"
    assert talk.turn("two").prefix_break is None
    talk.turn("three", rounds=[talk.writer.round("look", ["a"])])
    talk.dialect = "ollama"
    assert talk.turn("four").prefix_break == "dialect changed"


def test_messages_that_vanish_from_history_are_a_traced_break() -> None:
    talk = Conversation(broker_of())
    talk.turn("one")
    talk.turn("two")
    del talk.history[:2]
    assert talk.turn("three").prefix_break == "history changed"


def test_a_later_process_goes_on_without_the_last_bytes() -> None:
    talk = Conversation(broker_of())
    talk.turn("one")
    before = talk.last
    talk.broker, talk.last = broker_of(), b""
    trace = talk.turn("two")
    assert (trace.prefix_reuse, trace.prefix_break) == (None, None)
    assert extends(talk.last, before)


def test_the_first_prefix_is_the_one_that_the_first_turn_sends() -> None:
    talk = Conversation(broker_of())
    talk.tools = [READ_FILE]
    talk.project = [ProjectFile(path="AGENTS.md", text="Use tabs.")]
    first = talk.broker.collect_prefix(talk.request(talk.writer.user("x" * 60_000)))
    talk.frozen = first
    talk.turn("one")
    assert talk.frozen is first
    assert breaks(talk) == [None]


STEP = st.fixed_dictionaries(
    {
        "ask": st.text(max_size=30),
        "size": st.sampled_from([0, 10, 600, 4000]),
        "answer": st.text(max_size=30),
        "rounds": st.lists(st.lists(st.text(max_size=20), min_size=1, max_size=3), max_size=2),
        "end": st.sampled_from(["answered", "cut off", "nothing"]),
        "project": st.sampled_from(["", "Use tabs.", "Use blanks."]),
    }
)


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(STEP, min_size=2, max_size=12),
    window=st.sampled_from([4096, 8192, 65536]),
    dialect=st.sampled_from(["ollama", "openai", "constrained"]),
    restart=st.integers(1, 12),
)
def test_every_request_extends_the_last_but_for_traced_breaks(
    steps: list[dict[str, Any]], window: int, dialect: Any, restart: int
) -> None:
    talk = Conversation(broker_of(), window=window, dialect=dialect)
    talk.tools = [READ_FILE]
    for number, step in enumerate(steps):
        talk.project = [ProjectFile(path="AGENTS.md", text=step["project"])] if step["project"] else []
        if number == restart:
            talk.broker = broker_of()
        rounds = [talk.writer.round("look", results) for results in step["rounds"]]
        talk.ask(step["ask"] + "x" * step["size"], rounds=rounds)
        if step["end"] != "nothing":
            talk.history.append(talk.writer.answer(step["answer"], complete=step["end"] == "answered"))
    last = b""
    for capsule, trace in talk.requests:
        assert isinstance(json.loads(capsule.messages), list)
        if trace.prefix_break is None:
            assert extends(capsule.messages, last)
            assert trace.prefix_reuse == (1.0 if last else None)
        else:
            assert trace.prefix_break in {"project changed", "history trimmed", "project changed, history trimmed"}
        last = capsule.messages
