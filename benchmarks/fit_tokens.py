"""Fit the weights of the token estimate, and say what they reach (docs/decisions/token-estimate.md).

    python benchmarks/fit_tokens.py [MORE.json ...]

The corpus is tests/data/tokens: even chunks are fitted, odd ones are held out. MORE.json is a list of
`{"kind": ..., "text": ..., "large": N, "small": N}`, N being the true count of the worst tokenizer of
that profile; of each kind every second entry is held out. Needs scipy, which the project does not.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scipy.optimize import linprog

from rune.text.tokens import WEIGHTS, Profile, features

DATA = Path(__file__).parent.parent / "tests" / "data" / "tokens"
ENGLISH_AND_CODE = frozenset({"english", "markdown", "python", "javascript", "go", "c", "diff"})
UNDERCOUNT, ENGLISH_EXCESS, AIM = 40.0, 3.0, 1.03

# Hundredths, lowest and highest. Where the corpus is thin or two classes always come together, a fit would move all
# into one of them; these keep each within reason. A script that has no class of its own counts by its bytes.
BOUNDS: dict[str, tuple[float, float]] = {
    "word": (100, 400), "letter": (25, 100), "foreign": (50, 420), "capital": (60, 400), "digit": (100, 200),
    "blob": (100, 200), "lines": (60, 300), "mark": (30, 200), "mark_next": (20, 200), "mark_again": (10, 100),
    "lines_again": (5, 100), "spaces_again": (4, 100), "box_next": (60, 300), "wide": (60, 200),
    "typographic": (60, 250), "symbol": (100, 300), "joiner": (100, 300), "cjk": (60, 300), "kana": (40, 300),
    "thai": (40, 300), "emoji": (100, 400), "two_bytes": (200, 200), "three_bytes": (300, 300),
    "four_bytes": (400, 400), "control": (100, 100),
}  # fmt: skip
# Left is never cheaper than right, so that appending a character never lowers a count.
AT_LEAST = (
    ("word", "capital"), ("capital", "space"), ("capital", "letter"), ("capital_again", "letter"), ("spaces", "space"),
    ("spaces", "control"), ("blob", "digit"), ("mark", "mark_next"), ("mark", "mark_again"), ("box", "box_next"),
    ("box", "box_again"), ("three_bytes", "cjk"),
)  # fmt: skip


class Chunk(NamedTuple):
    """A piece of text and the tokens that the worst tokenizer of each profile makes of it."""

    kind: str
    text: str
    true: dict[Profile, int]
    held_out: bool


def corpus(more: Sequence[Path]) -> list[Chunk]:
    """Return the committed chunks and those of the files."""
    measured = json.loads((DATA / "counts.json").read_text(encoding="utf-8"))
    size, profiles = measured["chunk"], list(measured["tokenizers"].values())
    chunks: list[Chunk] = []
    for kind, rows in measured["counts"].items():
        text = (DATA / f"{kind}.txt").read_text(encoding="utf-8")
        for number, counts in enumerate(rows):
            true: dict[Profile, int] = {"large": 0, "small": 0}
            for profile, count in zip(profiles, counts, strict=True):
                true[profile] = max(true[profile], count)
            chunks.append(Chunk(kind, text[number * size : (number + 1) * size], true, number % 2 == 1))
    seen: Counter[str] = Counter()
    for path in more:
        for row in json.loads(path.read_text(encoding="utf-8")):
            true = {"large": row["large"], "small": row["small"]}
            chunks.append(Chunk(row["kind"], row["text"], true, seen[row["kind"]] % 2 == 1))
            seen[row["kind"]] += 1
    return chunks


def fit(chunks: Sequence[Chunk], profile: Profile) -> dict[str, int]:
    """Return the weights that cost least: a linear programme over weights, shortfalls and excesses.

    A kind of text counts by the root of its number of chunks; an excess on English and code counts three times.
    """
    names = list(WEIGHTS[profile])
    size = Counter(chunk.kind for chunk in chunks)
    width = len(names) + 2 * len(chunks)
    cost, equal, aims = [1e-3] * len(names) + [0.0] * (2 * len(chunks)), list[list[float]](), list[float]()
    for number, chunk in enumerate(chunks):
        counts, row = features(chunk.text), [0.0] * width
        row[: len(names)] = [counts[name] / chunk.true[profile] for name in names]
        short, over = len(names) + number, len(names) + len(chunks) + number
        row[short], row[over] = 1.0, -1.0
        share = size[chunk.kind] ** -0.5
        cost[short] = UNDERCOUNT * share
        cost[over] = (ENGLISH_EXCESS if chunk.kind in ENGLISH_AND_CODE else 1.0) * share
        equal.append(row)
        aims.append(AIM)
    ordered: list[list[float]] = []
    for larger, smaller in AT_LEAST:
        row = [0.0] * width
        row[names.index(larger)], row[names.index(smaller)] = -1.0, 1.0
        ordered.append(row)
    limits = [tuple(edge / 100 for edge in BOUNDS.get(name, (2, 500))) for name in names]
    limits += [(0.0, math.inf)] * (2 * len(chunks))
    zeros = [0.0] * len(ordered)
    found = linprog(cost, A_ub=ordered, b_ub=zeros, A_eq=equal, b_eq=aims, bounds=limits, method="highs")
    if not found.success:
        raise RuntimeError(found.message)
    hundredths = [round(value * 100) for value in found.x[: len(names)]]
    return {name: 5 * round(value / 5) if value > 10 else value for name, value in zip(names, hundredths, strict=True)}


def report(title: str, chunks: Sequence[Chunk], weights: dict[str, int], profile: Profile) -> None:
    """Print what the weights reach on these chunks."""
    ratios: list[tuple[float, str]] = []
    for chunk in chunks:
        count = math.ceil(sum(weights[name] * amount for name, amount in features(chunk.text).items()) / 100)
        bound = len(chunk.text.encode("utf-8", "surrogatepass")) + 1
        ratios.append((min(count, bound) / chunk.true[profile], chunk.kind))
    plain = [ratio for ratio, kind in ratios if kind in ENGLISH_AND_CODE]
    low = sum(ratio < 0.9 for ratio, _ in ratios)
    print(
        f"{profile:<6} {title:<9} {len(ratios):>4} chunks, {low} under by over 10 %, worst {1 - min(ratios)[0]:.1%}"
        f" ({min(ratios)[1]}), mean {sum(ratio for ratio, _ in ratios) / len(ratios):.2f},"
        f" English and code mean {sum(plain) / len(plain):.2f} max {max(plain):.2f}"
    )


def main(arguments: Sequence[str]) -> None:
    """Fit both profiles and print the tables that belong into rune/text/tokens.py."""
    chunks = corpus([Path(argument) for argument in arguments])
    profiles: tuple[Profile, ...] = ("large", "small")
    for profile in profiles:
        weights = fit([chunk for chunk in chunks if not chunk.held_out], profile)
        for title, held_out in (("fitted", False), ("held out", True)):
            report(title, [chunk for chunk in chunks if chunk.held_out == held_out], weights, profile)
        print(json.dumps({profile: weights}))


if __name__ == "__main__":
    main(sys.argv[1:])
