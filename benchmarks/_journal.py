"""A journal as months of use leave it, for measurements: real events, made durable without waiting for the disk."""

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rune.bootstrap.core import open_engine
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.paths import Home, prepare, resolve_home
from rune.records.events import Event
from rune.records.messages import ConversationMessageRecord, ConversationRecord, Role
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.traces import InferenceTraceRecord, PromptRecipe, RecipeBlock, RecipeMessage
from rune.records.turns import StopReason, TurnRecord
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.projections import ProjectionEngine

MOMENT = "2026-11-30T14:00:00.123Z"
EVENTS_A_TURN = 8
_GROUP = 1000
_CLOCK = SystemClock()
_IDS = UlidSource(_CLOCK)


class Speaker:
    """Says things of a usual length: a vocabulary in which few words are common and most are rare.

    `the` and `river` stand in about every second message.
    """

    def __init__(self, seed: int = 7, words: int = 20_000) -> None:
        self._random = random.Random(seed)  # noqa: S311  # words, nothing secret
        syllables = [a + b for a in "bdfgklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
        drawn = (("".join(self._random.choices(syllables, k=self._random.randint(1, 4)))) for _ in itertools.count())
        self.words = list(itertools.islice(dict.fromkeys(itertools.islice(drawn, words * 2)), words))
        self._weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(len(self.words))))

    def text(self, words: int) -> str:
        """Return about so many words in sentences, now and then with a name out of code."""
        said = self._random.choices(self.words, cum_weights=self._weights, k=words)
        for place in range(0, words, 40):
            said[place] = f"{said[place]}_{said[-1]}.py:{self._random.randint(1, 900)}"
        if self._random.random() < 0.5:
            said[words // 2] = "the river"
        return " ".join(said) + "."


def usual_messages() -> Iterator[Event]:
    """Give user messages of one conversation without end, each of the same usual length."""
    conversation, task, turn = (_IDS.new_id(kind) for kind in ("cnv", "tsk", "trn"))
    for pseq in itertools.count(1):
        body = ConversationMessageRecord(
            id=_IDS.new_id("msg"),
            ts=MOMENT,
            role="user",
            content="Name three rivers and say of each where it rises and into what it flows. " * 4,
            conversation_id=conversation,
            task_id=task,
            turn_id=turn,
            token_estimate=80,
            provenance="owner",
        )
        yield Event(
            event_id=_IDS.new_id("evt"),
            event_type="user.message",
            partition_key=conversation,
            actor_id="owner",
            timestamp=MOMENT,
            body=body,
            pseq=pseq,
        )


def conversation_events(
    messages: int, speaker: Speaker, *, folder: str = "/home/project", words: tuple[int, int] = (25, 120)
) -> Iterator[Event]:
    """Give the events of one conversation of that many messages, EVENTS_A_TURN for every two of them.

    `words` are those of a question and of an answer.
    """
    conversation = _IDS.new_id("cnv")
    places = itertools.count(1)

    def event(event_type: str, body: Record) -> Event:
        return Event(
            event_id=_IDS.new_id("evt"),
            event_type=event_type,
            partition_key=conversation,
            actor_id="owner" if event_type == "user.message" else "rune",
            timestamp=MOMENT,
            body=body,
            pseq=next(places),
        )

    yield event("conversation.created", _conversation(conversation, folder, speaker.text(6)))
    task, said = _IDS.new_id("tsk"), list[str]()
    for number in range(messages // 2):
        turn = _IDS.new_id("trn")
        record = partial(_task, task, conversation)
        say = partial(_message, conversation, task, turn)
        question, answer = say("user", speaker.text(words[0])), say("assistant", speaker.text(words[1]))
        yield event("turn.started", _turn(turn, conversation, task, question.id, None))
        yield event("user.message", question)
        yield event("task.created" if number == 0 else "task.amended", record(TaskStatus.CREATED))
        yield event("task.transition", record(TaskStatus.RUNNING))
        yield event("response.generated", answer)
        yield event("turn.finished", _turn(turn, conversation, task, question.id, StopReason.ANSWERED))
        yield event("task.transition", record(TaskStatus.OPEN))
        said = [*said, question.id, answer.id][-40:]
        yield event("inference.traced", _trace(turn, task, conversation, said))


def messages_alone(count: int, speaker: Speaker, *, in_each: int = 100) -> Iterator[Event]:
    """Give conversations in which nothing but messages is: as many as one wants to search through."""
    for _ in range(count // in_each):
        yield from (
            event
            for event in conversation_events(in_each, speaker)
            if event.event_type in {"conversation.created", "user.message", "response.generated"}
        )


async def a_home(root: Path, events: Iterator[Event]) -> Home:
    """Write a journal of these events below `root`; returns the home."""
    home = resolve_home({"RUNE_HOME": str(root)})
    prepare(home)
    store = await asyncio.to_thread(
        DurableEventStore.open,
        home.journal,
        clock=_CLOCK,
        ids=_IDS,
        device_id=_IDS.new_id("dev"),
        evidence=EvidenceStore(home.evidence, _CLOCK),
        sync=_no_sync,
    )
    while group := list(itertools.islice(events, _GROUP)):
        await store.append_many(group)
    await store.close()
    return home


def store_of(home: Home) -> DurableEventStore:
    """Return the journal of a home, opened for reading only."""
    evidence = EvidenceStore(home.evidence, _CLOCK)
    return DurableEventStore.open(
        home.journal, clock=_CLOCK, ids=_IDS, device_id=_IDS.new_id("dev"), evidence=evidence, read_only=True
    )


def views_of(home: Home) -> ProjectionEngine:
    """Return the product's views of a home's journal."""
    return open_engine(home, store_of(home), EvidenceStore(home.evidence, _CLOCK), _refuse, None)


def _refuse(error: Exception) -> None:
    raise error


def _no_sync(descriptor: int) -> None:
    """Leave it to the system when this is written: what is measured is read anyway."""


def _conversation(conversation: str, folder: str, title: str) -> ConversationRecord:
    return ConversationRecord(
        id=conversation, channel="task", folder=folder, title=title, model="llama3.2", created_at=MOMENT
    )


def _message(conversation: str, task: str, turn: str, role: Role, content: str) -> ConversationMessageRecord:
    return ConversationMessageRecord(
        id=_IDS.new_id("msg"),
        ts=MOMENT,
        role=role,
        content=content,
        conversation_id=conversation,
        task_id=task,
        turn_id=turn,
        token_estimate=len(content) // 4,
        provenance="owner" if role == "user" else "model",
        model="" if role == "user" else "llama3.2",
    )


def _turn(turn: str, conversation: str, task: str, message: str, reason: StopReason | None) -> TurnRecord:
    return TurnRecord(
        id=turn, conversation_id=conversation, task_id=task, message_id=message, model="llama3.2", stop_reason=reason
    )


def _task(task: str, conversation: str, status: TaskStatus) -> TaskStateRecord:
    return TaskStateRecord(
        id=task,
        title="Rivers",
        status=status,
        conversation_id=conversation,
        parent_task_id=None,
        assigned_model="llama3.2",
        created_at=MOMENT,
        updated_at=MOMENT,
    )


def _trace(turn: str, task: str, conversation: str, said: Sequence[str]) -> InferenceTraceRecord:
    digest = "sha256:" + "b" * 64
    recipe = PromptRecipe(
        dialect="ollama",
        prefix=digest,
        blocks=(RecipeBlock(name="persona", placement="prefix", tokens=40, blob=digest),),
        history=tuple(RecipeMessage(message_id=message_id, rendering="c" * 64) for message_id in said),
        tools="",
        messages_hash="d" * 64,
        messages_bytes=4096,
        prompt_tokens_estimated=1300,
    )
    return InferenceTraceRecord(
        id=_IDS.new_id("trc"),
        kind="conversation",
        provider="ollama",
        model="llama3.2",
        remote=False,
        turn_id=turn,
        task_id=task,
        conversation_id=conversation,
        window=8192,
        num_ctx=8192,
        input_budget=6000,
        model_calls=1,
        prompt_tokens_estimated=1300,
        prompt_tokens_served=1200,
        cached_tokens=None,
        output_tokens=150,
        latency_ms=900,
        first_token_ms=300,
        model_time_ms=800,
        per_block_tokens={"persona": 40, "history": 1200},
        dropped_blocks=(),
        prefix_reuse=1.0,
        prefix_break=None,
        stop_reason="answered",
        success=True,
        requests=(recipe,),
    )
