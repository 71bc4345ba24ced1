from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rune.context.blocks import AssemblyRequest, ContributionBlock
from rune.context.collect import MalformedContributionError, collect
from tests.context.talk import Failures, Giver, Writer, block, broker_of, request_for, sent

REQUEST = request_for(Writer().user("hi"))
GOOD = block("bad", "text")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("text", id="a string"),
        pytest.param(None, id="nothing at all"),
        pytest.param((each for each in ()), id="a generator"),
        pytest.param(["text"], id="a list of strings"),
        pytest.param([GOOD, None], id="one good block and one that is none"),
        pytest.param([msgspec.structs.replace(GOOD, name="")], id="an empty name"),
        pytest.param([msgspec.structs.replace(GOOD, name="persona")], id="the name of another"),
        pytest.param([msgspec.structs.replace(GOOD, content="")], id="no content"),
        pytest.param([msgspec.structs.replace(GOOD, content=b"text")], id="bytes"),
        pytest.param([msgspec.structs.replace(GOOD, content="a\ud800b")], id="a lone surrogate"),
        pytest.param([msgspec.structs.replace(GOOD, priority="high")], id="a priority that is no number"),
        pytest.param([msgspec.structs.replace(GOOD, placement="body")], id="the place of history"),
        pytest.param([msgspec.structs.replace(GOOD, placement="last")], id="the place of the person's message"),
        pytest.param([msgspec.structs.replace(GOOD, placement="top")], id="a place that there is not"),
        pytest.param([msgspec.structs.replace(GOOD, provenance="rumour")], id="an unknown provenance"),
        pytest.param([msgspec.structs.replace(GOOD, evictable=1)], id="a number for a truth value"),
    ],
)
def test_what_is_malformed_is_a_failure_under_the_contributors_own_name(given: Any) -> None:
    failures, bad = Failures(), Giver("bad")
    bad.given = given
    collected = collect([bad, Giver("good", block("good", "text"))], REQUEST, failures)
    assert collected.failed == ("bad",)
    assert failures.names == ["bad"]
    assert isinstance(failures.seen[0][1], MalformedContributionError)
    assert list(collected.blocks) == ["good"]


def test_one_that_raises_is_listed_and_the_turn_goes_on() -> None:
    failures, error = Failures(), RuntimeError("no database")
    broker = broker_of(Giver("memory", error), Giver("mode", block("mode", "Be brief.")), failures=failures)
    capsule, trace = broker.assemble(REQUEST)
    assert failures.seen == [("memory", error)]
    assert trace.degraded == ("memory",)
    assert "Be brief." in sent(capsule)[-1]["content"]


class Cancelled(BaseException):
    pass


def test_a_cancellation_is_not_a_failure_of_the_contributor() -> None:
    failures = Failures()
    with pytest.raises(Cancelled):
        collect([Giver("memory", Cancelled())], REQUEST, failures)
    assert failures.seen == []


class Counter:
    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self._asked = name, asked

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        del request
        self._asked.append(self.name)
        return ()


def test_each_is_asked_once_in_order_of_registration() -> None:
    asked: list[str] = []
    broker_of(*(Counter(name, asked) for name in ("c", "a", "b"))).assemble(REQUEST)
    assert asked == ["c", "a", "b"]


@pytest.mark.parametrize("names", [("",), ("a", "a"), ("history",), ("user",), ("template",), ("rounds",)])
def test_a_name_that_cannot_be_told_apart_is_refused_at_once(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be named"):
        broker_of(*(Giver(name) for name in names))
