"""How a tool is offered: as few words as a model needs, out of typed arguments."""

from typing import Annotated, Any

import pytest
from msgspec import Meta

from rune.errors import InvalidArgumentsError
from rune.tools.schema import Arguments, arguments_of, schema_of


class Part(Arguments, frozen=True, kw_only=True):
    """One of several."""

    title: Annotated[str, Meta(min_length=1, examples=["a"])]
    required: bool = False


class Whole(Arguments, frozen=True, kw_only=True):
    """All of it."""

    parts: Annotated[list[Part], Meta(min_length=1, description="What there is.")]
    limit: Annotated[int, Meta(ge=1, le=9)] = 3


def test_an_offer_has_no_references_no_titles_and_no_bounds_that_are_checked_anyway() -> None:
    assert schema_of("do", "Do it.", Whole).parameters == {
        "type": "object",
        "properties": {
            "parts": {
                "type": "array",
                "description": "What there is.",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string", "examples": ["a"]},
                        "required": {"type": "boolean", "default": False},
                    },
                    "required": ["title"],
                },
            },
            "limit": {"type": "integer", "default": 3},
        },
        "required": ["parts"],
    }


def test_arguments_are_typed_and_what_does_not_fit_is_named() -> None:
    given = arguments_of(Whole, {"parts": [{"title": "x"}]}, "do")
    assert (given.parts[0].title, given.limit) == ("x", 3)
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({}, "parts"),
        ({"parts": []}, "parts"),
        ({"parts": [{"title": ""}]}, "title"),
        ({"parts": [{"title": "x"}], "limit": 10}, "limit"),
        ({"parts": [{"title": "x"}], "more": 1}, "more"),
    ]
    for wrong, named in wrongs:
        with pytest.raises(InvalidArgumentsError, match=rf"do: .*{named}"):
            arguments_of(Whole, wrong, "do")
