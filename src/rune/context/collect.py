"""The broker's first step: ask every contributor once and believe none of them."""

from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from rune.context.blocks import AssemblyRequest, ContributionBlock, Contributor
from rune.text.storable import is_storable

RecordFailure = Callable[[str, BaseException], None]

# Names of rows in a trace that the broker fills by itself.
RESERVED_NAMES = frozenset({"history", "rounds", "template", "user"})


class MalformedContributionError(ValueError):
    """A contributor returned something that is not a sequence of sound blocks under its own name."""


class Collected(msgspec.Struct, frozen=True):
    """Blocks by contributor, in order of registration; `failed` are the names that gave none."""

    blocks: dict[str, tuple[ContributionBlock, ...]]
    failed: tuple[str, ...]


def check_names(contributors: Sequence[Contributor]) -> None:
    """Raise ValueError for an empty, a repeated or a reserved name."""
    names = [contributor.name for contributor in contributors]
    if unusable := [name for name in names if not name or name in RESERVED_NAMES or names.count(name) > 1]:
        raise ValueError(f"contributors cannot be named {sorted(set(unusable))}")


def collect(contributors: Sequence[Contributor], request: AssemblyRequest, record_failure: RecordFailure) -> Collected:
    """Ask each contributor once. One that raises or returns something malformed is recorded under its own
    name (T1) and gives nothing; the others are asked all the same.
    """
    blocks: dict[str, tuple[ContributionBlock, ...]] = {}
    failed: list[str] = []
    for contributor in contributors:
        try:
            blocks[contributor.name] = _checked(contributor.name, contributor.contribute(request))
        except Exception as error:  # noqa: BLE001 - whatever a contributor raises is a T1 failure, and recorded
            failed.append(contributor.name)
            record_failure(contributor.name, error)
    return Collected(blocks, tuple(failed))


def _checked(name: str, returned: object) -> tuple[ContributionBlock, ...]:
    if not isinstance(returned, (list, tuple)):
        raise MalformedContributionError(f"{name} returned a {type(returned).__name__}, not a list of blocks")
    return tuple(_checked_block(name, block) for block in cast("Sequence[object]", returned))


def _checked_block(name: str, block: object) -> ContributionBlock:
    if not isinstance(block, ContributionBlock):
        raise MalformedContributionError(f"{name} returned a {type(block).__name__}, not a block")
    try:
        # A struct does not look at its values when it is made.
        msgspec.convert(msgspec.structs.asdict(block), type=ContributionBlock)
    except msgspec.ValidationError as error:
        raise MalformedContributionError(f"{name} returned a malformed block: {error}") from error
    if block.name != name:
        raise MalformedContributionError(f"{name} returned a block named {block.name!r}")
    if block.placement not in {"prefix", "tail"}:
        raise MalformedContributionError(f"{name} wants the place {block.placement!r}, which is for messages")
    if not block.content or not is_storable(block.content):
        what = "a lone surrogate in its" if block.content else "no"
        raise MalformedContributionError(f"{name} returned a block with {what} content")
    return block
