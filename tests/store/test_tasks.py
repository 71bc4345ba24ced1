"""Tasks move by rule only, and are found as the last event left them."""

import asyncio
import itertools
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rune.errors import IllegalTaskTransitionError, NotFoundError
from rune.records.tasks import AMENDABLE, LEGAL_TRANSITIONS, TaskStateRecord, TaskStatus
from rune.store.tasks import TaskStateRepository
from tests.store.builders import CONVERSATION, a_task, an_id
from tests.store.spine import Unhurried, a_memory_store, a_spine, events

OTHER = an_id("cnv", 2)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


async def test_a_task_is_created_amended_and_moved(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        task = await spine.tasks.create("Rivers", CONVERSATION, "llama3.2")
        assert task.status is TaskStatus.CREATED
        spine.clock.advance(1)
        await spine.tasks.transition(task.id, TaskStatus.RUNNING)
        amended = await spine.tasks.amend(task.id, "Rivers of Europe")
        moved = await spine.tasks.transition(task.id, TaskStatus.OPEN, an_id("trn", 1))
        assert (amended.id, amended.title, amended.status) == (task.id, "Rivers of Europe", TaskStatus.RUNNING)
        assert (moved.title, moved.outcome_ref) == ("Rivers of Europe", an_id("trn", 1))
        assert moved.created_at == task.created_at < moved.updated_at
        assert await spine.tasks.get(task.id) == moved
        kinds = [envelope.event_type for _, envelope in spine.store.replay(CONVERSATION)]
        assert kinds == ["task.created", "task.transition", "task.amended", "task.transition"]


@pytest.mark.parametrize("current", TaskStatus)
async def test_only_the_edges_of_the_table_are_taken(current: TaskStatus, views: Path) -> None:
    async with a_spine(views) as spine:
        task = a_task(1, status=current)
        for wanted in TaskStatus:
            if wanted in LEGAL_TRANSITIONS[current]:
                assert spine.tasks.draft_transition(task, wanted).event_type == "task.transition"
                continue
            with pytest.raises(IllegalTaskTransitionError) as refused:
                spine.tasks.draft_transition(task, wanted)
            assert (refused.value.current, refused.value.wanted) == (current.value, wanted.value)
            assert refused.value.legal == tuple(each.value for each in LEGAL_TRANSITIONS[current])


async def test_a_refused_transition_leaves_no_event(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        task = await spine.tasks.create("Rivers", CONVERSATION)
        with pytest.raises(IllegalTaskTransitionError):
            await spine.tasks.transition(task.id, TaskStatus.COMPLETED)
        assert len(list(spine.store.replay())) == 1
        with pytest.raises(NotFoundError):
            await spine.tasks.transition(an_id("tsk", 99), TaskStatus.RUNNING)


async def test_of_two_transitions_at_once_the_second_sees_the_first(views: Path) -> None:
    async with a_spine(views, Unhurried(a_memory_store())) as spine:
        await spine.ledger.adopt(CONVERSATION)
        task = await spine.tasks.create("Rivers", CONVERSATION)
        results = await asyncio.gather(
            *(spine.tasks.transition(task.id, TaskStatus.CANCELLED) for _ in range(5)), return_exceptions=True
        )
        assert [type(result) for result in results] == [TaskStateRecord] + [IllegalTaskTransitionError] * 4


async def test_the_slot_order_of_a_tasks_events_makes_no_difference(tmp_path: Path) -> None:
    story = events(
        ("task.created", a_task(1)),
        ("task.created", a_task(2)),
        ("task.transition", a_task(1, status=TaskStatus.RUNNING)),
        ("task.transition", a_task(1, status=TaskStatus.OPEN)),
        ("task.transition", a_task(2, status=TaskStatus.CANCELLED)),
        partition=CONVERSATION,
    )
    for number, order in enumerate(itertools.permutations(story)):
        if number % 17:
            continue
        store = a_memory_store()
        await store.append_many(order)
        async with a_spine(tmp_path / f"{number}.db", store) as spine:
            assert (await spine.tasks.get(an_id("tsk", 1))).status is TaskStatus.OPEN
            assert await spine.tasks.get_active(CONVERSATION) == a_task(1, status=TaskStatus.OPEN)
            assert await spine.tasks.latest(CONVERSATION) == a_task(2, status=TaskStatus.CANCELLED)


class PlainTasks:
    """What the repository must be equal to, in a few lists."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskStateRecord] = {}

    def newest(self, conversation_id: str | None) -> list[TaskStateRecord]:
        return [task for task in reversed(self.tasks.values()) if conversation_id in (None, task.conversation_id)]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from((CONVERSATION, OTHER)), st.text(max_size=5)),
        st.tuples(st.just("amend"), st.integers(0, 5), st.text(max_size=5)),
        st.tuples(st.just("transition"), st.integers(0, 5), st.sampled_from(TaskStatus)),
        st.tuples(st.just("reopen"), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS)
def test_any_sequence_of_operations_leaves_what_a_plain_model_leaves(
    operations: list[tuple[str, object, object]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(follow(Path(folder) / "views-1.db", operations))


async def operate(tasks: TaskStateRepository, model: PlainTasks, name: str, first: object, second: object) -> None:
    """Do one operation on both; what the model forbids must be refused."""
    if name == "create":
        made = await tasks.create(str(second), str(first))
        model.tasks[made.id] = made
        return
    if name == "reopen" or not model.tasks:
        return
    assert isinstance(first, int)
    current = list(model.tasks.values())[first % len(model.tasks)]
    if name == "amend":
        model.tasks[current.id] = msgspec.structs.replace(current, title=str(second))
        assert await tasks.amend(current.id, str(second)) == model.tasks[current.id]
        return
    wanted = TaskStatus(str(second))
    if wanted in LEGAL_TRANSITIONS[current.status]:
        model.tasks[current.id] = msgspec.structs.replace(current, status=wanted)
        assert await tasks.transition(current.id, wanted) == model.tasks[current.id]
    else:
        with pytest.raises(IllegalTaskTransitionError):
            await tasks.transition(current.id, wanted)


async def follow(views: Path, operations: list[tuple[str, object, object]]) -> None:
    store, model = a_memory_store(), PlainTasks()
    async with a_spine(views, store) as spine:
        for conversation in (CONVERSATION, OTHER):
            await spine.ledger.adopt(conversation)
        for name, first, second in operations:
            await operate(spine.tasks, model, name, first, second)
            if name == "reopen":
                # Everything is dropped and read from the journal again.
                spine.engine.rebuild()
        for conversation in (CONVERSATION, OTHER, None):
            newest = model.newest(conversation)
            assert await spine.tasks.latest(conversation) == next(iter(newest), None)
            assert await spine.tasks.list_open(conversation) == [t for t in newest if LEGAL_TRANSITIONS[t.status]]
        for conversation in (CONVERSATION, OTHER):
            active = [task for task in model.newest(conversation) if task.status in AMENDABLE]
            assert await spine.tasks.get_active(conversation) == next(iter(active), None)
        for task_id, task in model.tasks.items():
            assert await spine.tasks.get(task_id) == task
