import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rune.context.blocks import Capsule, ContextTrace, ContributionBlock, ProjectFile
from rune.context.broker import ContextBroker
from rune.context.budget import budget_of
from rune.context.render import evidence_id
from rune.errors import ContextOverflowError, WindowTooSmallError
from rune.records.traces import BlockPlacement, Dialect
from tests.context.talk import READ_FILE, Failures, Giver, Writer, block, broker_of, estimate, request_for, sent

DIALECTS: tuple[Dialect, ...] = ("ollama", "openai", "constrained")


def checked(capsule: Capsule, trace: ContextTrace) -> None:
    """Hold a prompt against everything that its trace says of it."""
    assert trace is capsule.trace
    assert trace.recipe.messages_hash == evidence_id(capsule.messages)
    assert trace.recipe.messages_bytes == len(capsule.messages)
    assert trace.recipe.prompt_tokens_estimated == capsule.estimated == sum(trace.per_block_tokens.values())
    assert capsule.estimated <= trace.input_budget
    assert all(evidence_id(content) == name for name, content in trace.blobs.items())
    assert {each.blob for each in trace.recipe.blocks} | {trace.recipe.prefix} <= set(trace.blobs)
    assert sum(estimate(str(message["content"])) for message in sent(capsule)) <= capsule.estimated


def test_a_prompt_is_one_system_message_then_history_then_the_message() -> None:
    writer = Writer()
    history = [writer.user("My dog is called Rex."), writer.answer("A fine name.")]
    project = [ProjectFile(path="AGENTS.md", text="Use tabs.")]
    request = request_for(writer.user("What is he called?"), history=history, tools=[READ_FILE], project=project)
    capsule, trace = broker_of().assemble(request)
    messages = sent(capsule)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("You are Rune")
    assert messages[0]["content"].index("How to use tools") < messages[0]["content"].index("Use tabs.")
    assert messages[-1]["content"] == "What is he called?"
    assert json.loads(capsule.tools)[0]["function"]["name"] == "read_file"
    assert list(trace.per_block_tokens) == ["persona", "tools", "project", "history", "user", "template"]
    assert (trace.prefix_reuse, trace.prefix_break, trace.dropped, trace.degraded) == (None, None, (), ())
    checked(capsule, trace)


@pytest.mark.parametrize("window", [2048, 3072, 4095])
def test_in_a_small_window_no_tools_are_offered_and_a_talk_is_possible(window: int) -> None:
    capsule, trace = broker_of().assemble(request_for(Writer().user("hi"), tools=[READ_FILE], window=window))
    assert capsule.tools == b"[]"
    assert trace.recipe.tools == ""
    assert "How to use tools" not in sent(capsule)[0]["content"]
    checked(capsule, trace)


def test_a_window_under_1024_is_refused_before_anything_is_collected() -> None:
    failures = Failures()
    broker = broker_of(Giver("memory", RuntimeError()), failures=failures)
    for build in (broker.assemble, broker.collect_prefix):
        with pytest.raises(WindowTooSmallError):
            build(request_for(Writer().user("hi"), window=1000))
    assert failures.seen == []


def test_a_message_larger_than_the_budget_is_refused_with_all_numbers() -> None:
    message = Writer().user("x" * 60_000)
    with pytest.raises(ContextOverflowError) as caught:
        broker_of().assemble(request_for(message, tools=[READ_FILE]))
    error = caught.value
    rows = dict(error.blocks)
    assert rows["user"] == estimate(message.content) + 8
    assert {"persona", "tools", "user", "template"} == set(rows)
    assert (error.budget, error.window, error.total) == (5735, 8192, sum(rows.values()))
    assert error.total > error.budget
    for number in (f"{error.total:,}", f"{rows['user']:,}", "5,735", "8,192"):
        assert number in error.message


def test_an_optional_block_never_makes_a_prompt_overflow() -> None:
    writer = Writer()
    history = [writer.user("y" * 3000), writer.answer("z" * 3000)]
    project = [ProjectFile(path="AGENTS.md", text="p" * 3000)]
    _, short = broker_of().assemble(request_for(writer.user("")))
    room = short.input_budget - sum(short.per_block_tokens.values())
    request = request_for(writer.user("x" * 3 * room), history=history, project=project)
    capsule, trace = broker_of().assemble(request)
    assert capsule.estimated == trace.input_budget
    assert [each.name for each in trace.dropped] == ["project", "history"]
    assert [each.reason for each in trace.dropped] == ["over_budget", "history_trimmed"]
    assert trace.archived_now == tuple(message.id for message in history)
    assert [message["role"] for message in sent(capsule)] == ["system", "user"]
    checked(capsule, trace)


def test_higher_priority_enters_first_and_the_later_registered_at_a_tie() -> None:
    # A tenth of the budget of 8192 is 573 tokens: room for one block of 400, with its marks, not for two.
    text = "t" * 1200
    for priorities, kept in ((60, 50), "first"), ((50, 60), "second"), ((50, 50), "second"):
        givers = [
            Giver(name, block(name, f"{name} {text}", priority=priority))
            for name, priority in zip(("first", "second"), priorities, strict=True)
        ]
        capsule, trace = broker_of(*givers).assemble(request_for(Writer().user("hi")))
        assert sent(capsule)[-1]["content"].startswith(f"<recalled>\n{kept} ")
        (out,) = trace.dropped
        assert (out.name, out.reason) == ({"first": "second", "second": "first"}[kept], "over_budget")
        assert out.tokens == estimate(f"{out.name} {text}") + 16


def test_what_is_recalled_is_at_most_a_tenth_of_the_budget() -> None:
    givers = [Giver(f"m{index}", block(f"m{index}", "t" * 600)) for index in range(8)]
    _, trace = broker_of(*givers).assemble(request_for(Writer().user("hi")))
    tail = sum(tokens for name, tokens in trace.per_block_tokens.items() if name.startswith("m"))
    assert 0 < tail <= 573
    assert len(trace.dropped) == 6


def test_a_message_that_carries_its_tail_is_sent_with_that_one() -> None:
    message = Writer().user("hi", tail="It is called Rex.")
    capsule, trace = broker_of(Giver("memory", block("memory", "It is called Max."))).assemble(request_for(message))
    assert sent(capsule)[-1]["content"] == "<recalled>\nIt is called Rex.\n</recalled>\n\nhi"
    assert trace.tail == "It is called Rex."
    assert "memory" not in trace.per_block_tokens


def test_a_project_file_too_large_leaves_and_the_others_stay() -> None:
    project = [ProjectFile(path="AGENTS.md", text="Use tabs."), ProjectFile(path="lib/AGENTS.md", text="x" * 9000)]
    capsule, trace = broker_of().assemble(request_for(Writer().user("hi"), project=project))
    assert "Use tabs." in sent(capsule)[0]["content"]
    assert [(each.name, each.reason) for each in trace.dropped] == [("project", "over_budget")]


def test_of_project_files_that_do_not_all_fit_the_innermost_enters() -> None:
    project = [ProjectFile(path=path, text=path * 300) for path in ("outer/AGENTS.md", "outer/inner/AGENTS.md")]
    capsule, trace = broker_of().assemble(request_for(Writer().user("hi"), project=project))
    assert "from the file outer/inner/AGENTS.md" in sent(capsule)[0]["content"]
    assert "from the file outer/AGENTS.md" not in sent(capsule)[0]["content"]
    assert [each.name for each in trace.dropped] == ["project"]


def test_when_every_contributor_fails_the_message_alone_is_sent() -> None:
    capsule, trace = broker_of(Giver("persona", OSError()), Giver("tools", OSError())).assemble(
        request_for(Writer().user("hi"))
    )
    assert [message["role"] for message in sent(capsule)] == ["user"]
    assert trace.degraded == ("persona", "tools")
    checked(capsule, trace)


def test_rounds_are_added_and_every_sent_byte_stays() -> None:
    writer = Writer()
    broker = broker_of()
    first, _ = broker.assemble(request_for(writer.user("fix it"), tools=[READ_FILE]))
    second, trace = broker.extend(first, writer.round("look", ["a", "b"]))
    third, again = broker.extend(second, writer.round("", ["c"]))
    assert third.messages.startswith(second.messages[:-1])
    assert second.messages.startswith(first.messages[:-1])
    assert [message["role"] for message in sent(third)] == [
        "system",
        "user",
        *("assistant", "tool", "tool"),
        "assistant",
        "tool",
    ]
    for capsule, each in ((second, trace), (third, again)):
        checked(capsule, each)
        assert (each.prefix_reuse, each.prefix_break, each.archived_now) == (1.0, None, ())
    assert again.per_block_tokens["rounds"] > trace.per_block_tokens["rounds"]
    assert third.tools == first.tools


def test_rounds_over_the_budget_are_refused_with_all_numbers_and_change_nothing() -> None:
    writer = Writer()
    broker = broker_of()
    capsule, _ = broker.assemble(request_for(writer.user("fix it"), tools=[READ_FILE]))
    before = capsule.messages
    with pytest.raises(ContextOverflowError) as caught:
        broker.extend(capsule, writer.round("look", ["x" * 30_000]))
    assert dict(caught.value.blocks)["rounds"] > 10_000
    assert caught.value.total == sum(tokens for _, tokens in caught.value.blocks) > caught.value.budget
    assert capsule.messages == before
    broker.extend(capsule, writer.round("look", ["short"]))


def test_a_capsule_can_be_kept_and_goes_on_in_another_process() -> None:
    writer = Writer()
    capsule, _ = broker_of().assemble(request_for(writer.user("fix it"), tools=[READ_FILE]))
    stored = msgspec.json.decode(msgspec.json.encode(capsule), type=Capsule)
    assert stored == capsule
    more = writer.round("look", ["a"])
    assert broker_of().extend(stored, more)[0].messages == broker_of().extend(capsule, more)[0].messages


def test_huge_and_odd_messages_in_history_leave_as_a_whole() -> None:
    writer = Writer()
    history = [writer.user("\U0001f600" * 100_000), writer.answer("\ud800"), writer.user("short"), writer.answer("ok")]
    capsule, trace = broker_of().assemble(request_for(writer.user("and?"), history=history))
    assert [message["content"] for message in sent(capsule)[1:]] == ["short", "ok", "and?"]
    assert trace.archived_now == (history[0].id, history[1].id)
    checked(capsule, trace)


BLOCKS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 3000), st.booleans(), st.sampled_from(["prefix", "tail"])), max_size=6
)


@settings(deadline=None)
@given(
    shapes=BLOCKS,
    window=st.sampled_from([1024, 2048, 4096, 8192, 32768, 262144]),
    message=st.integers(0, 9000),
    history=st.lists(st.integers(0, 4000), max_size=12),
    dialect=st.sampled_from(DIALECTS),
)
def test_admission_never_exceeds_the_budget_keeps_what_must_be_there_and_repeats_itself(
    shapes: list[tuple[int, int, bool, BlockPlacement]],
    window: int,
    message: int,
    history: list[int],
    dialect: Dialect,
) -> None:
    writer = Writer()
    blocks: list[ContributionBlock] = [
        block(f"b{index}", f"<b{index}>" + "t" * size, priority=priority, evictable=evictable, placement=placement)
        for index, (priority, size, evictable, placement) in enumerate(shapes)
    ]
    request = request_for(
        writer.user("m" * message),
        history=[(writer.user, writer.answer)[index % 2]("h" * size + "h") for index, size in enumerate(history)],
        window=window,
        dialect=dialect,
    )

    def assemble() -> tuple[Capsule, ContextTrace]:
        return ContextBroker([Giver(each.name, each) for each in blocks], estimate, Failures()).assemble(request)

    try:
        capsule, trace = assemble()
    except ContextOverflowError as error:
        assert error.total > error.budget == budget_of(window).input
        assert {each.name for each in blocks if not each.evictable} | {"user", "template"} == dict(error.blocks).keys()
        return
    checked(capsule, trace)
    dropped = [each.name for each in trace.dropped]
    text = capsule.messages.decode()
    for each in blocks:
        assert (f"<{each.name}>" in text) != (each.name in dropped)
        assert each.evictable or each.name not in dropped
        assert (each.name in trace.per_block_tokens) != (each.name in dropped)
    gone = set(trace.archived_now)
    assert [each.message_id for each in trace.recipe.history] == [
        each.id for each in (*request.history, request.message) if each.id not in gone
    ]
    assert assemble() == (capsule, trace)


HASH_SEED_SCRIPT = """
import hashlib, sys
from rune.context.blocks import ProjectFile
from tests.context.talk import READ_FILE, Conversation, broker_of
talk = Conversation(broker_of(), window=4096)
talk.tools = [READ_FILE]
talk.project = [ProjectFile(path="AGENTS.md", text="Use tabs.")]
for number in range(12):
    talk.turn(f"question {number} " + "x" * 300, "y" * 900, rounds=[talk.writer.round("look", ["a" * 90, "b"])])
whole = hashlib.sha256()
for capsule, trace in talk.requests:
    whole.update(capsule.messages + capsule.tools + repr((trace.per_block_tokens, trace.dropped)).encode())
sys.stdout.write(whole.hexdigest())
"""


def test_the_bytes_are_the_same_under_every_hash_seed() -> None:
    root = Path(__file__).parents[2]

    def digest(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", HASH_SEED_SCRIPT],
            env=environment,
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    digests = {digest(seed) for seed in ("0", "1", "2")}
    assert len(digests) == 1
    assert len(digests.pop()) == 64
