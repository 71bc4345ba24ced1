"""The same request gives the same bytes, within the budget, whatever must leave."""

from pathlib import Path

from rune.canaries.claim import alone, expect
from rune.canaries.prompts import a_broker, a_request, long_history

CLAIM = "a prompt stays within its budget, keeps what is mandatory, and is the same each time"


async def check(folder: Path) -> None:
    """Assemble a conversation that is larger than the window, twice."""
    del folder
    request = a_request(text="name three rivers", history=long_history(turns=200), window=4096)
    capsule, trace = a_broker().assemble(request)
    again, _ = a_broker().assemble(request)
    expect(capsule.messages == again.messages, "the same request gave other bytes")
    expect(capsule.estimated <= trace.input_budget, f"{capsule.estimated} tokens in a budget of {trace.input_budget}")
    expect("name three rivers" in capsule.messages.decode(), "the person's message is not in the prompt")
    expect(bool(trace.archived_now), "nothing left the prompt although history is over its budget")
    dropped = {message for block in trace.dropped for message in block.message_ids}
    expect(set(trace.archived_now) <= dropped, "messages left the prompt and the trace does not name them")


if __name__ == "__main__":
    alone(CLAIM, check)
