from rune.context.contributors.persona import PersonaContributor
from tests.context.talk import Writer, request_for

REQUEST = request_for(Writer().user("hi"))


def test_the_persona_says_who_it_is_in_few_words_and_cannot_leave() -> None:
    (block,) = PersonaContributor().contribute(REQUEST)
    assert (block.name, block.priority, block.evictable, block.placement) == ("persona", 100, False, "prefix")
    assert block.content.startswith("You are Rune")
    # Four characters a token hold for English prose, the only thing that stands here.
    assert len(block.content) / 4 < 250


def test_the_persons_own_persona_takes_its_place() -> None:
    (block,) = PersonaContributor("You are Ada.\n").contribute(REQUEST)
    assert (block.content, block.source) == ("You are Ada.", "persona.md")


def test_an_empty_persona_is_none_of_ones_own() -> None:
    assert PersonaContributor(" \n").contribute(REQUEST) == PersonaContributor().contribute(REQUEST)
