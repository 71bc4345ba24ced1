import msgspec

from rune.context.measure import Measure
from rune.records.tools import ToolCall
from tests.context.talk import Writer, estimate


class Counting:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> int:
        self.texts.append(text)
        return estimate(text)


def test_a_message_is_measured_once_also_when_it_is_read_from_disk_again() -> None:
    counting = Counting()
    measure, message = Measure(counting), Writer().user("hi")
    first = measure.message(message, "ollama")
    again = msgspec.json.decode(msgspec.json.encode(message), type=type(message))
    assert measure.message(message, "ollama") is first
    assert measure.message(again, "ollama") is first
    assert counting.texts == ["hi"]


def test_another_record_of_the_same_id_is_rendered_anew() -> None:
    measure, message = Measure(estimate), Writer().user("hi")
    measure.message(message, "ollama")
    other = measure.message(msgspec.structs.replace(message, tail="It is called Rex."), "ollama")
    assert b"Rex" in other.data


def test_arguments_that_are_equal_but_written_differently_are_rendered_anew() -> None:
    measure = Measure(estimate)
    message = Writer().message("assistant", "", calls=[ToolCall(id="a", name="t", arguments={"n": 1})])
    other = msgspec.structs.replace(message, tool_calls=(ToolCall(id="a", name="t", arguments={"n": True}),))
    assert message == other
    assert measure.message(message, "ollama").data != measure.message(other, "ollama").data


def test_text_is_measured_as_the_model_reads_it() -> None:
    counting, writer = Counting(), Writer()
    Measure(counting).message(writer.user('"\n"' * 10 + "\ud800"), "ollama")
    Measure(counting).message(writer.round("look", ["a"], thinking="hm")[0], "ollama")
    assert counting.texts == ['"\n"' * 10 + "\ufffd", 'look\nhm\nread_file {"path":"0.py"}']


def test_each_message_and_each_call_costs_what_the_template_adds() -> None:
    writer = Writer()
    measure = Measure(lambda _: 0)
    assert measure.message(writer.user("hi"), "ollama").tokens == 8
    assert measure.message(writer.round("look", ["a", "b"])[0], "ollama").tokens == 8 + 2 * 16


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    counting, writer = Counting(), Writer()
    measure = Measure(counting, limit=4000)
    messages = [writer.user(f"{number} " + "x" * 900) for number in range(8)]
    for message in messages:
        measure.message(message, "ollama")
    counting.texts.clear()
    for message in (messages[-1], messages[0]):
        measure.message(message, "ollama")
    assert counting.texts == [messages[0].content]


def test_one_huge_message_does_not_push_out_all_others() -> None:
    counting, writer = Counting(), Writer()
    measure = Measure(counting, limit=4000)
    small = writer.user("hi")
    measure.message(small, "ollama")
    measure.message(writer.user("x" * 10_000), "ollama")
    counting.texts.clear()
    measure.message(small, "ollama")
    assert counting.texts == []
