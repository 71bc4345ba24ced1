"""Edits that must be refused: of a place that is there twice, of lines that are not there, or with parts that do not
fit together.
"""

import random
import textwrap
from collections.abc import Callable

from rune.tools.edits import Edit
from tests.tools.garbler import Garble, deeper, hard_blanks, numbered, trailing_blanks
from tests.tools.right_edits import WORD, Case, Right, renamed, right_edits, seeded, sources


def refusable(seed: int, each: int) -> list[Case]:
    cases: list[Case] = []
    for number, (kind, make) in enumerate(_REFUSABLE.items()):
        rng = seeded(seed * 1_000 + number)
        names = sorted(sources())
        for turn in range(each):
            name = names[turn % len(names)]
            text = sources()[name]
            right = next(right_edits(text, rng, 2, 6, _two_words))
            text, edits = make(right, rng)
            cases.append(Case(kind, name, text, edits, None))
    return cases


def _two_words(right: Right) -> bool:
    return all(len(WORD.findall(line)) > 1 for line in (right.old[0], right.old[-1]))


def _ambiguous(garble: Garble, margin: str = "") -> Callable[[Right, random.Random], tuple[str, tuple[Edit, ...]]]:
    """Put the lines of the edit into the text a second time, indented by `margin` more, and garble the edit."""

    def make(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
        again = textwrap.indent("\n".join(right.old), margin)
        return f"{right.text}{again}\n", (garble(right, rng),)

    return make


def _exact_twice(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    block = "\n".join(right.old)
    return f"{right.text}{block}\n", (Edit(block, "\n".join(right.new)),)


def _other_word(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
    old = list(right.old)
    at = rng.choice([n for n, line in enumerate(old) if WORD.search(line)])
    old[at] = renamed(old[at], rng) + "Absent"
    return right.text, (Edit("\n".join(old), "\n".join([*old, "further"])),)


def _other_order(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    old = [line for line in right.old if line.strip()]
    old = [*old[1:], old[0] + "!"]
    return right.text, (Edit("\n".join(old), "nothing of it"),)


def _line_left_out(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
    solid = [line for line in right.old if line.strip()]
    old = [solid[0], f"between {rng.random()}", *solid[1:]]
    return right.text, (Edit("\n".join(old), "nothing of it"),)


def _second_missing(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
    return right.text, (right.of_text(str), Edit(f"absent {rng.random()}\n  words", "further"))


def _overlapping(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    return right.text, (right.of_text(str), Edit(right.old[-1] + "\n", "further\n"))


def _two_ends(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    head, end = "\n".join(right.old), "the end of it"
    text = f"{head}\nbetween\n{end}\nmore\n{end}\n"
    return text, (Edit(f"{head}\n...\n{end}", f"{head} now\n...\n{end}"),)


def _ellipsis_in_one(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    search = f"{right.old[0]}\n# ... existing code ...\n{right.old[-1]}"
    return right.text, (Edit(search, "\n".join(right.new) + "\nmore"),)


def _code_left_out(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    return right.text, (Edit("\n".join(right.old), f"{right.new[0]} and\n# ... rest of the code ..."),)


def _applied_before(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
    return right.result, (trailing_blanks(right, rng),)


def _empty(right: Right, _: random.Random) -> tuple[str, tuple[Edit, ...]]:
    return right.text, (Edit("", "\n".join(right.new)),)


def _same(right: Right, rng: random.Random) -> tuple[str, tuple[Edit, ...]]:
    search = trailing_blanks(right, rng).search
    return right.text, (Edit(search, search),)


_REFUSABLE: dict[str, Callable[[Right, random.Random], tuple[str, tuple[Edit, ...]]]] = {
    "there twice": _exact_twice,
    "there twice, both further in": _ambiguous(deeper, "      "),
    "there twice, numbered": _ambiguous(numbered),
    "there twice, fenced": _ambiguous(lambda right, _: right.of_text(lambda text: f"~~~\n{text}\n~~~")),
    "there twice, no-break blanks": _ambiguous(hard_blanks, "      "),
    "a word is not there": _other_word,
    "other order": _other_order,
    "a line too many": _line_left_out,
    "second is not there": _second_missing,
    "overlapping": _overlapping,
    "ellipsis with two ends": _two_ends,
    "ellipsis in the search only": _ellipsis_in_one,
    "code left out": _code_left_out,
    "carried out before": _applied_before,
    "empty search": _empty,
    "changes nothing": _same,
}
