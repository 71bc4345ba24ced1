"""A prompt that waits with its turn comes back byte for byte, and what was said in it can be looked for."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.blocks import Capsule, ProjectFile
from rune.context.kept_prompt import decode_capsule, encode_capsule
from rune.errors import InvalidRecordError
from rune.text.sought import Sought
from tests.context.talk import READ_FILE, Writer, broker_of, request_for


def a_prompt(text: str = "name a river", project: str = "Use tabs.") -> Capsule:
    writer = Writer()
    history = [writer.user("My dog is called Rex."), writer.answer("A fine name.")]
    files = [ProjectFile(path="AGENTS.md", text=project)]
    request = request_for(writer.user(text), history=history, tools=[READ_FILE], project=files)
    return broker_of().assemble(request)[0]


def same(one: Capsule, two: Capsule) -> bool:
    return msgspec.to_builtins(one) == msgspec.to_builtins(two)


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_comes_back_byte_for_byte(text: str, project: str) -> None:
    prompt = a_prompt(text.encode("utf-8", "replace").decode(), project.encode("utf-8", "replace").decode())
    kept = encode_capsule(prompt)
    back = decode_capsule(kept)
    assert same(back, prompt)
    assert (back.messages, back.tools, dict(back.trace.blobs)) == (
        prompt.messages,
        prompt.tools,
        dict(prompt.trace.blobs),
    )
    assert encode_capsule(back) == kept


def test_what_comes_back_can_be_gone_on_with() -> None:
    writer, prompt = Writer(), a_prompt()
    rounds = [writer.answer("The Elbe.")]
    broker = broker_of()
    assert same(broker.extend(decode_capsule(encode_capsule(prompt)), rounds)[0], broker.extend(prompt, rounds)[0])


@pytest.mark.parametrize(
    "words", ["buy the old mill", 'first "line"\nand the second\tone', "c:\\mill\\price", "Größe: 12 €, 🌊 und mehr"]
)
def test_what_was_said_is_found_in_its_bytes(words: str) -> None:
    kept = encode_capsule(a_prompt(words))
    assert Sought([words]).within(kept)
    assert Sought(["My dog is called Rex."]).within(kept)
    assert Sought([words]).within(encode_capsule(a_prompt(project=f"Know that: {words}")))


@pytest.mark.parametrize("broken", [b"", b"{}", b"{}\n", b"not json\n", b"[" * 100_000])
def test_what_is_no_prompt_is_told(broken: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        decode_capsule(broken)


@given(st.integers(0, 10_000))
def test_one_that_was_cut_is_told(at: int) -> None:
    kept = encode_capsule(a_prompt())
    for other in (kept[: at % len(kept)], kept + b"x"):
        with pytest.raises(InvalidRecordError):
            decode_capsule(other)
