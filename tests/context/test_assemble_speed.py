"""A prompt from a conversation of 10,000 messages (quality.md, assemble): counts, and a ratio to the least work."""

import hashlib
import time
from collections.abc import Callable

import msgspec

from rune.context.blocks import AssemblyRequest
from tests.context.talk import Writer, broker_of, estimate, request_for

MESSAGES = 10_000


def best_of_five(work: Callable[[], object]) -> float:
    """Return seconds of this thread's own CPU time: other work on the machine does not count."""
    seconds: list[float] = []
    for _ in range(5):
        started = time.thread_time()
        work()
        seconds.append(time.thread_time() - started)
    return min(seconds)


def long_request(writer: Writer, *, window: int) -> AssemblyRequest:
    pairs = range(MESSAGES // 2)
    history = [
        message
        for number in pairs
        for message in (writer.user(f"question {number} " + "x" * 60), writer.answer(f"answer {number} " + "y" * 100))
    ]
    return request_for(writer.user("and now?"), history=history, window=window)


def test_a_second_prompt_measures_only_what_is_new() -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return estimate(text)

    writer = Writer()
    broker = broker_of(count=count)
    request = long_request(writer, window=1_000_000)
    capsule, _ = broker.assemble(request)
    texts.clear()
    history = [*request.history, request.message, writer.answer("Then this.")]
    broker.assemble(
        msgspec.structs.replace(
            request, message=writer.user("And then?"), history=history, last_messages=capsule.messages
        )
    )
    assert texts == ["And then?", "Then this."]


def test_a_prompt_of_ten_thousand_messages_costs_little_more_than_joining_and_hashing_it() -> None:
    broker = broker_of()
    request = long_request(Writer(), window=1_000_000)
    capsule, _ = broker.assemble(request)
    request = msgspec.structs.replace(request, frozen=capsule.frozen, last_messages=capsule.messages)
    objects = [bytes(part) for part in capsule.messages.split(b"},{")]
    assert len(objects) == MESSAGES + 2

    floor = best_of_five(lambda: hashlib.sha256(b",".join(list(objects))).hexdigest())
    spent = best_of_five(lambda: broker.assemble(request))
    assert spent <= 2 * 6 * floor, f"{spent * 1000:.1f} ms, and the floor is {floor * 1000:.1f} ms"
