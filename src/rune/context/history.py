"""Earlier messages: which of them may be sent, how they belong together, and which leave.

The unit is the round: one assistant message with its calls and all their results. A turn group is a
user message and its rounds. A round is never split: in nothing sent does a call stand without its
result or a result without its call (context.md, History, rounds, compaction).

Not sent at all: system records (the prefix is the only system message), answers with neither text nor
calls, calls that never got a result (their answer's text stays) and results of no call before them.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import is_

import msgspec

from rune.context.measure import Measure, RenderedMessage
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import ToolCall
from rune.records.traces import Dialect


class TurnGroup(msgspec.Struct, gc=False):
    """A user message and its rounds. `record` and `rendered` are where it starts in the layout's lists."""

    record: int
    rendered: int
    tokens: int = 0


class Layout(msgspec.Struct, frozen=True):
    """History in order: the records that have not left, what of them is sent, and the turn groups.
    Not changed once it is laid out.
    """

    records: Sequence[ConversationMessageRecord]
    rendered: list[RenderedMessage]
    groups: list[TurnGroup]

    @property
    def tokens(self) -> int:
        """Return the tokens of all that is sent."""
        return sum(group.tokens for group in self.groups)

    def without(self, leaving: Collection[int]) -> "Layout":
        """Return the layout without the groups of these numbers."""
        if not leaving:
            return self
        kept = Layout([], [], [])
        records = list[ConversationMessageRecord]()
        for number, group in enumerate(self.groups):
            if number not in leaving:
                kept.groups.append(TurnGroup(len(records), len(kept.rendered), group.tokens))
                records += self._records_of(number)
                end = self.groups[number + 1].rendered if number + 1 < len(self.groups) else len(self.rendered)
                kept.rendered.extend(self.rendered[group.rendered : end])
        return msgspec.structs.replace(kept, records=records)

    def ids(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the message ids of these groups in order, whether or not each was sent."""
        return tuple(record.id for number in sorted(numbers) for record in self._records_of(number))

    def _records_of(self, number: int) -> Sequence[ConversationMessageRecord]:
        end = self.groups[number + 1].record if number + 1 < len(self.groups) else len(self.records)
        return self.records[self.groups[number].record : end]


class Layouts:
    """Lays histories out. The last layout of each dialect is kept: when a history has only grown since,
    all but its newest group is taken from there.
    """

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._last: dict[Dialect, Layout] = {}

    def of(self, history: Sequence[ConversationMessageRecord], archived: frozenset[str], dialect: Dialect) -> Layout:
        """Render what may be sent of a history, oldest first. `archived` ids are left out for good.

        Messages before the first one of a user are a group of their own.
        """
        records = [record for record in history if record.id not in archived] if archived else list(history)
        layout, start = Layout(records, [], []), 0
        last = self._last.get(dialect)
        if last is not None and last.groups and _starts_with(records, last.records):
            newest = last.groups[-1]
            layout, start = Layout(records, last.rendered[: newest.rendered], last.groups[:-1]), newest.record
        self._grow(layout, start, dialect)
        self._last[dialect] = layout
        return layout

    def _grow(self, layout: Layout, start: int, dialect: Dialect) -> None:
        """Add the groups of the records from `start` on."""
        records, rendered, groups = layout.records, layout.rendered, layout.groups
        group: TurnGroup | None = None
        for position in range(start, len(records)):
            record = records[position]
            if group is None or record.role == "user":
                group = TurnGroup(position, len(rendered))
                groups.append(group)
            for part in _sent_for(records, position):
                message = self._measure.message(part, dialect)
                rendered.append(message)
                group.tokens += message.tokens


def leaving(layout: Layout, allowance: int) -> frozenset[int]:
    """Return the numbers of the turn groups that leave so that the rest fits `allowance` tokens.

    None while all fit. Else those that are too large even alone, which would push out everything and then
    leave all the same; then the oldest, down to half of the allowance, so that the next turns need not
    trim again. The newest group that fits stays: without it the model has lost what was just said.
    """
    tokens = layout.tokens
    if tokens <= allowance:
        return frozenset()
    gone = {number for number, group in enumerate(layout.groups) if group.tokens > allowance}
    rest = [number for number in range(len(layout.groups)) if number not in gone]
    tokens -= sum(layout.groups[number].tokens for number in gone)
    for number in rest:
        if tokens <= allowance // 2 or (number == rest[-1] and tokens <= allowance):
            break
        tokens -= layout.groups[number].tokens
        gone.add(number)
    return frozenset(gone)


def rounds_of(
    messages: Sequence[ConversationMessageRecord], dialect: Dialect, measure: Measure
) -> list[RenderedMessage]:
    """Render rounds that are added within a turn: each assistant message with the results of its calls.

    Raises ValueError for another role, and for a call or a result that stands alone: both would be bugs.
    """
    rendered: list[RenderedMessage] = []
    for position, record in enumerate(messages):
        if record.role == "assistant":
            results = _results(messages, position + 1)
            _check_round(record, results)
            rendered.extend(measure.message(part, dialect) for part in _round(record, results))
        elif record.role != "tool":
            raise ValueError(f"message {record.id} of role {record.role!r} cannot be part of a round")
        elif position == 0:
            raise ValueError(f"tool result {record.id} stands before any call")
    return rendered


def _check_round(answer: ConversationMessageRecord, results: Sequence[ConversationMessageRecord]) -> None:
    calls = [call.id for call in answer.tool_calls]
    answered = [result.tool_call_id for result in results]
    if sorted(calls) != sorted(answered) or len(set(calls)) != len(calls):
        raise ValueError(f"message {answer.id} has calls {calls} and results of {answered}: each call needs one result")


def _starts_with(records: Sequence[ConversationMessageRecord], earlier: Sequence[ConversationMessageRecord]) -> bool:
    # The very same records: one that is merely equal may be written differently (1 == True).
    return len(earlier) <= len(records) and all(map(is_, records, earlier))


def _sent_for(records: Sequence[ConversationMessageRecord], position: int) -> Sequence[ConversationMessageRecord]:
    """Return what is sent for the record there; a tool's result is sent with the call before it."""
    record = records[position]
    if record.role == "user":
        return (record,)
    if record.role != "assistant":
        return ()
    return _round(record, _results(records, position + 1) if record.tool_calls else ())


def _results(messages: Sequence[ConversationMessageRecord], start: int) -> list[ConversationMessageRecord]:
    """Return the tool messages that stand directly from `start` on."""
    results: list[ConversationMessageRecord] = []
    for position in range(start, len(messages)):
        if messages[position].role != "tool":
            break
        results.append(messages[position])
    return results


def _round(
    answer: ConversationMessageRecord, results: Sequence[ConversationMessageRecord]
) -> Sequence[ConversationMessageRecord]:
    """Return what may be sent of a round: an answer with the calls that have a result, and those results."""
    if not answer.tool_calls:
        return () if _is_blank(answer.content) else (answer,)
    by_call: dict[str, ConversationMessageRecord] = {}
    for result in results:
        by_call.setdefault(result.tool_call_id, result)
    calls: dict[str, ToolCall] = {}
    for call in answer.tool_calls:
        if call.id in by_call:
            # Of calls that share an id only the first can have the result.
            calls.setdefault(call.id, call)
    if not calls and _is_blank(answer.content):
        return ()
    if len(calls) < len(answer.tool_calls):
        answer = msgspec.structs.replace(answer, tool_calls=tuple(calls.values()))
    return (answer, *(result for call_id, result in by_call.items() if call_id in calls))


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
