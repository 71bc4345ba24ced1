"""todo: the model's own checklist, which the person sees."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import InvalidArgumentsError
from rune.records.tools import ChecklistState
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "todo"
MOST_ITEMS: Final = 50
LONGEST_ITEM: Final = 200

_DESCRIPTION: Final = (
    "Show the person your checklist, always all of it in order. Use it for work of three steps or more."
)


class _Item(Arguments, frozen=True, kw_only=True):
    text: Annotated[str, Meta(examples=["run the tests"])]
    state: ChecklistState = "open"


class _Arguments(Arguments, frozen=True, kw_only=True):
    items: list[_Item]


class Todo:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "session"  # it changes only what Rune shows

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the list."""
        del place
        items = _items(arguments)
        return Plan(effect=_summary(items), state=tuple(items))

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Hand the list on."""
        del place, watch
        items: tuple[tuple[str, ChecklistState], ...] = plan.state
        left = [text for text, state in items if state != "done"]
        next_one = next((text for text, state in items if state == "doing"), left[0] if left else "")
        text = f"{plan.effect}. Next: {next_one}" if next_one else f"{plan.effect}."
        return Done(text=text, summary=plan.effect, checklist=items)


def _items(arguments: Mapping[str, Any]) -> list[tuple[str, ChecklistState]]:
    given = arguments_of(_Arguments, arguments, NAME)
    if len(given.items) > MOST_ITEMS:  # not in the schema, which stands in every prompt
        raise InvalidArgumentsError(f"{NAME}: at most {MOST_ITEMS} steps, not {len(given.items)}")
    items: list[tuple[str, ChecklistState]] = []
    for number, item in enumerate(given.items, start=1):
        text = " ".join(item.text.split())
        if not text:
            raise InvalidArgumentsError(f"{NAME}: item {number} has no text")
        items.append((text if len(text) <= LONGEST_ITEM else f"{text[: LONGEST_ITEM - 1]}…", item.state))
    return items


def items_of(arguments: Mapping[str, Any]) -> list[tuple[str, ChecklistState]]:
    """Return the list that a stored call gave; empty for one that was not taken."""
    try:
        return _items(arguments)
    except InvalidArgumentsError:
        return []  # the model was told so then


def _summary(items: list[tuple[str, ChecklistState]]) -> str:
    done = sum(state == "done" for _, state in items)
    return f"{done} of {len(items)} steps done" if items else "the checklist is empty"
