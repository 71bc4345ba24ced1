"""One place decides what the model sees: collect, measure, admit, render (context.md, ContextBroker).

The broker is a function from a request to bytes. All it keeps between two requests is a memory of
renderings, which never changes an answer.
"""

from collections.abc import Callable, Sequence
from typing import Final, get_args

import msgspec

from rune.context.admission import Admitted, admit, check_fits, merged
from rune.context.blocks import AssemblyRequest, Capsule, ContextTrace, Contributor, FrozenPrefix
from rune.context.budget import Budget, budget_of
from rune.context.collect import Collected, RecordFailure, check_names, collect
from rune.context.history import Layouts, rounds_of
from rune.context.measure import Measure, RenderedMessage
from rune.context.prefix import NO_TOOLS, Prefix, admit_prefix, changes, encode_prefix, measured_prefix
from rune.context.render import array_json, evidence_id, extends, grown, prefix_reuse, system_json, system_text
from rune.errors import ContextOverflowError
from rune.records.messages import ConversationMessageRecord
from rune.records.traces import BlockPlacement, Dialect, PromptRecipe, RecipeBlock

_DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)


class ContextBroker:
    """Builds every prompt of a conversation. `estimate` gives the tokens of a text and must not
    undercount; `record_failure` is told the name of a contributor that failed (T1) and its error.
    """

    def __init__(
        self, contributors: Sequence[Contributor], estimate: Callable[[str], int], record_failure: RecordFailure
    ) -> None:
        check_names(contributors)
        self._contributors = tuple(contributors)
        self._measure = Measure(estimate)
        self._layouts = Layouts(self._measure)
        self._record_failure = record_failure

    def collect_prefix(self, request: AssemblyRequest) -> FrozenPrefix:
        """Return the prefix with which a conversation starts, whatever its first message is.

        Raises WindowTooSmallError, and ContextOverflowError when mandatory blocks alone do not fit.
        """
        budget = budget_of(request.window)
        request = _offered(request, budget)
        wanted = self._wanted(request, self._collect(request))
        check_fits(wanted.mandatory_rows(), budget)
        return admit_prefix(wanted, request, budget, budget.input).freeze(None, budget.window)

    def assemble(self, request: AssemblyRequest) -> tuple[Capsule, ContextTrace]:
        """Build the prompt of a turn. The same request gives the same bytes.

        When the capsule's `frozen` is not the request's, the new one has to be kept. Raises
        WindowTooSmallError, and ContextOverflowError when mandatory blocks do not fit: nothing is cut.
        """
        budget = budget_of(request.window)
        request = _offered(request, budget)
        collected = self._collect(request)
        admitted = admit(request, collected, self._wanted(request, collected), budget, self._measure, self._layouts)
        frozen = admitted.prefix.freeze(request.frozen, budget.window)
        messages = _array(frozen, [*admitted.layout.rendered, admitted.message])
        estimated = sum(admitted.per_block.values())
        recipe, blobs = _recipe(request.dialect, frozen, admitted, messages, estimated)
        trace = ContextTrace(
            recipe=recipe,
            blobs=blobs,
            window=budget.window,
            input_budget=budget.input,
            per_block_tokens=admitted.per_block,
            dropped=admitted.dropped,
            archived_now=admitted.archived_now,
            prefix_reuse=prefix_reuse(messages, request.last_messages),
            prefix_break=self._break(request, admitted, frozen, messages),
            degraded=collected.failed,
            tail=admitted.message.record.tail,
        )
        tools = frozen.tools.encode()
        return Capsule(messages=messages, tools=tools, estimated=estimated, frozen=frozen, trace=trace), trace

    def extend(
        self, capsule: Capsule, round_messages: Sequence[ConversationMessageRecord]
    ) -> tuple[Capsule, ContextTrace]:
        """Add rounds of the running turn: assistant messages, each with the results of all its calls.

        Nothing is collected again and all bytes that were sent stay. Raises ContextOverflowError when
        the sum no longer fits, ValueError when a call or a result stands alone.
        """
        before = capsule.trace
        rounds = rounds_of(round_messages, before.recipe.dialect, self._measure)
        tokens = sum(message.tokens for message in rounds)
        per_block = merged([*before.per_block_tokens.items(), ("rounds", tokens)])
        estimated = capsule.estimated + tokens
        if estimated > before.input_budget:
            raise ContextOverflowError(
                blocks=tuple(per_block.items()), budget=before.input_budget, window=before.window
            )
        messages = grown(capsule.messages, [message.data for message in rounds])
        recipe = msgspec.structs.replace(
            before.recipe,
            history=(*before.recipe.history, *(message.recipe for message in rounds)),
            messages_hash=evidence_id(messages),
            messages_bytes=len(messages),
            prompt_tokens_estimated=estimated,
        )
        trace = msgspec.structs.replace(
            before,
            recipe=recipe,
            per_block_tokens=per_block,
            archived_now=(),
            prefix_reuse=prefix_reuse(messages, capsule.messages),
            prefix_break=None,
        )
        return msgspec.structs.replace(capsule, messages=messages, estimated=estimated, trace=trace), trace

    def _collect(self, request: AssemblyRequest) -> Collected:
        return collect(self._contributors, request, self._record_failure)

    def _wanted(self, request: AssemblyRequest, collected: Collected) -> Prefix:
        return measured_prefix(self._contributors, collected, request, self._measure.text)

    def _break(self, request: AssemblyRequest, admitted: Admitted, frozen: FrozenPrefix, messages: bytes) -> str | None:
        reasons: list[str] = []
        if request.frozen is not None:
            reasons += [f"{name} changed" for name in changes(request.frozen, admitted.prefix)]
        if admitted.archived_now:
            reasons.append("history trimmed")
        if not reasons and not extends(messages, request.last_messages):
            # Nothing that the broker decided: the same messages are written, or chosen, differently.
            as_others = (
                self._written(request, admitted, frozen, each) for each in _DIALECTS if each != request.dialect
            )
            same = any(extends(written, request.last_messages) for written in as_others)
            reasons.append("dialect changed" if same else "history changed")
        return ", ".join(reasons) or None

    def _written(self, request: AssemblyRequest, admitted: Admitted, frozen: FrozenPrefix, dialect: Dialect) -> bytes:
        layout = self._layouts.of(request.history, request.archived, dialect)
        return _array(frozen, [*layout.rendered, self._measure.message(admitted.message.record, dialect)])


def _offered(request: AssemblyRequest, budget: Budget) -> AssemblyRequest:
    if budget.tools or not request.tools:
        return request
    return msgspec.structs.replace(request, tools=())


def _array(frozen: FrozenPrefix, messages: Sequence[RenderedMessage]) -> bytes:
    system = [system_json(system_text(block.content for block in frozen.blocks))] if frozen.blocks else []
    return array_json(system + [message.data for message in messages])


def _recipe(
    dialect: Dialect, frozen: FrozenPrefix, admitted: Admitted, messages: bytes, estimated: int
) -> tuple[PromptRecipe, dict[str, bytes]]:
    blobs: dict[str, bytes] = {}

    def kept(content: bytes) -> str:
        name = evidence_id(content)
        blobs[name] = content
        return name

    def block(name: str, placement: BlockPlacement, tokens: int, content: str) -> RecipeBlock:
        return RecipeBlock(name=name, placement=placement, tokens=tokens, blob=kept(content.encode()))

    recipe = PromptRecipe(
        dialect=dialect,
        prefix=kept(encode_prefix(frozen)),
        blocks=(
            *(block(each.block.name, "prefix", each.tokens, each.block.content) for each in admitted.prefix.blocks),
            *(block(each.block.name, "tail", each.tokens, each.block.content) for each in admitted.tail),
        ),
        history=tuple([each.recipe for each in admitted.layout.rendered] + [admitted.message.recipe]),
        tools="" if frozen.tools == NO_TOOLS else kept(frozen.tools.encode()),
        messages_hash=evidence_id(messages),
        messages_bytes=len(messages),
        prompt_tokens_estimated=estimated,
    )
    return recipe, blobs
