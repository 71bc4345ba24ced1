"""Right edits, garbled as small models garble them: each kind with the edits that it fits."""

import html
import json
import random
import re
import unicodedata
from collections.abc import Callable

from rune.tools.edits import Edit
from tests.tools.right_edits import Case, Right, right_edits, said, seeded, sources

CURLY = {"'": "\u2019", '"': "\u201d"}


def _common(right: Right) -> str:
    both = [line for line in (*right.old, *right.new) if line.strip()]
    margin = both[0][: len(both[0]) - len(both[0].lstrip())]
    while not all(line.startswith(margin) for line in both):
        margin = margin[:-1]
    return margin


def dedented(right: Right, _: random.Random) -> Edit:
    margin = len(_common(right))
    return right.of(lambda lines: [line[margin:] for line in lines])


def deeper(right: Right, rng: random.Random) -> Edit:
    margin = rng.choice(("  ", "    "))
    return right.of(lambda lines: [margin + line if line.strip() else line for line in lines])


def halved(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [line[(len(line) - len(line.lstrip(" "))) // 2 :] for line in lines])


def blanks_for_tabs(right: Right, rng: random.Random) -> Edit:
    wide = rng.choice((2, 4, 8))
    return right.of(lambda lines: [re.sub(r"^\t+", lambda tabs: " " * wide * len(tabs[0]), line) for line in lines])


def tabs_for_blanks(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [re.sub(r"^(?: {4})+", lambda found: "\t" * (len(found[0]) // 4), x) for x in lines])


def trailing_blanks(right: Right, rng: random.Random) -> Edit:
    return right.of(lambda lines: [line.rstrip() + " " * rng.randint(1, 3) for line in lines])


def trailing_lost(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [line.rstrip() for line in lines])


def numbered(right: Right, rng: random.Random) -> Edit:
    form = rng.choice(("{}: {}", "{:>5}| {}", "{:>4}\t{}", "{}|{}", "{:>6}\u2192{}", "{} | {}"))
    return right.of(lambda lines: [form.format(n, line) for n, line in enumerate(lines, right.first + 1)])


def numbered_search(right: Right, rng: random.Random) -> Edit:
    return Edit(numbered(right, rng).search, "\n".join(right.new))


def fenced(right: Right, rng: random.Random) -> Edit:
    fence, language = rng.choice(("```", "~~~")), rng.choice(("", "python", "text"))
    end = rng.choice(("", "\n"))
    return right.of_text(lambda text: f"{fence}{language}\n{text}\n{fence}{end}")


def crlf(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: text.replace("\n", "\r\n") + "\r\n")


def no_blank_lines(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [line for line in lines if line.strip()])


def two_blank_lines(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [part for line in lines for part in ([line] if line.strip() else [line, line])])


def blank_between(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: text.replace("\n", "\n\n"))


def curly(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: text.translate(str.maketrans(CURLY)))


def straight(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: text.translate(str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")))


def decomposed(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: unicodedata.normalize("NFD", text))


def hard_blanks(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [re.sub(r"(?<=\S) (?=\S)", "\u00a0", line) for line in lines])


def html_escaped(right: Right, rng: random.Random) -> Edit:
    quote = rng.random() < 0.5
    return right.of_text(lambda text: html.escape(text, quote=quote))


def escaped_line_ends(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: text.replace("\n", "\\n").replace("\t", "\\t"))


def escaped_twice(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: json.dumps(text, ensure_ascii=False)[1:-1])


def end_missing(right: Right, _: random.Random) -> Edit:
    return Edit("\n".join(right.old) + "\n", "\n".join(right.new))


def end_added(right: Right, _: random.Random) -> Edit:
    return Edit("\n".join(right.old), "\n".join(right.new) + "\n")


def ends_doubled(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: f"{text}\n\n\n")


def blanks_round(right: Right, _: random.Random) -> Edit:
    return right.of_text(lambda text: f"\n\n{text}\n \n")


def first_indent_lost(right: Right, _: random.Random) -> Edit:
    return Edit("\n".join(right.old).lstrip(), "\n".join(right.new))


def stripped(right: Right, _: random.Random) -> Edit:
    return right.of_text(str.strip)


def elided(right: Right, rng: random.Random) -> Edit:
    """Write a marker for the lines in the middle, which both have."""
    head = 0
    while right.old[head] == right.new[head]:
        head += 1
    comment = rng.choice(("...", "# ...", "# ... existing code ...", "// ... rest of the code ...", "\u2026"))
    indent = right.old[1][: len(right.old[1]) - len(right.old[1].lstrip())]
    keep = head + 1
    return Edit(
        "\n".join([*right.old[:keep], indent + comment, right.old[-1]]),
        "\n".join([*right.new[:keep], indent + comment, right.new[-1]]),
    )


def inner_blanks(right: Right, _: random.Random) -> Edit:
    return right.of(lambda lines: [re.sub(r"(?<=[\w,;)]) (?=\S)", "  ", line) for line in lines])


def numbered_in_fence(right: Right, rng: random.Random) -> Edit:
    edit = numbered(right, rng)
    return Edit(f"```\n{edit.search}\n```", f"```\n{edit.replace}\n```")


def dedented_with_blanks(right: Right, rng: random.Random) -> Edit:
    edit = dedented(right, rng)
    return Edit(*("\n".join(line + "  " for line in text.split("\n")) for text in (edit.search, edit.replace)))


def numbered_and_dedented(right: Right, rng: random.Random) -> Edit:
    margin = len(_common(right))
    return right.of(lambda lines: [f"{n}: {line[margin:]}" for n, line in enumerate(lines, right.first + 1)])


Garble = Callable[[Right, random.Random], Edit]


def _indented(right: Right) -> bool:
    return bool(_common(right)) and len(right.old) > 1


def _tabs(right: Right) -> bool:
    return any(line.startswith("\t") for line in right.old)


def _fours(right: Right) -> bool:
    return _indented(right) and all(len(x) - len(x.lstrip(" ")) in {0, 4, 8, 12} for x in (*right.old, *right.new))


def _even(right: Right) -> bool:
    return any(x.startswith("    ") for x in right.old) and _fours(right)


def _one_change_at_head(right: Right) -> bool:
    same = len(right.old) == len(right.new) >= 5
    changed = [n for n, (a, b) in enumerate(zip(right.old, right.new, strict=False)) if a != b]
    middle = right.old[changed[0] + 1 : -1] if same and changed else []
    if not same or max(changed) > 1 or len([line for line in middle if line.strip()]) < 2:
        return False
    depth = len(right.old[-1]) - len(right.old[-1].lstrip())
    inside = all(len(x) - len(x.lstrip()) >= depth for x in middle if x.strip())
    # One end only, or it would have to be refused.
    return inside and said(right.text).count(said(right.old[-1])[0]) == 1


def _has(pattern: str) -> Callable[[Right], bool]:
    wanted = re.compile(pattern)
    return lambda right: wanted.search("\n".join(right.old)) is not None


def _gap_kept(right: Right) -> bool:
    """Blank lines are in it, and none beside a line that is put in or taken out: what is lost there is not known."""
    if "" not in right.old or len(right.old) != len(right.new):
        return False
    return right.old.count("") == right.new.count("")


def _no_line_more(right: Right) -> bool:
    """No line is put in: how the file would have it set cannot be known from a garbled edit."""
    return len(right.new) <= len(right.old)


def _plain_ends(right: Right) -> bool:
    return all(line == line.rstrip() for line in right.old) or _no_line_more(right)


def _ends_in_blanks(right: Right) -> bool:
    return any(line != line.rstrip() for line in right.old[:-1]) and _no_line_more(right)


def _no_escapes(right: Right) -> bool:
    return len(right.old) > 1 and "\\" not in "\n".join(right.old)


KINDS: dict[str, tuple[Garble, Callable[[Right], bool], int]] = {
    "dedented": (dedented, _indented, 2),
    "indented further": (deeper, _indented, 2),
    "half the indentation": (halved, _even, 2),
    "blanks for tabs": (blanks_for_tabs, _tabs, 1),
    "tabs for blanks": (tabs_for_blanks, _fours, 2),
    "blanks at line ends": (trailing_blanks, _plain_ends, 1),
    "blanks at line ends lost": (trailing_lost, _ends_in_blanks, 2),
    "line numbers": (numbered, lambda _: True, 1),
    "line numbers in the search": (numbered_search, lambda _: True, 2),
    "code fence": (fenced, lambda r: "```" not in "".join(r.old), 1),
    "CRLF": (crlf, lambda _: True, 2),
    "blank lines lost": (no_blank_lines, _gap_kept, 3),
    "blank lines doubled": (two_blank_lines, _gap_kept, 3),
    "blank line after each": (blank_between, lambda r: len(r.old) == len(r.new), 2),
    "curly quotes": (curly, _has("['\"]"), 1),
    "straight quotes": (straight, lambda r: any(x in "\u2019\u201c" for x in "".join(r.old)) and _no_line_more(r), 1),
    "decomposed letters": (decomposed, _has("[éüï]"), 1),
    "no-break blanks": (hard_blanks, _has(r"\S \S"), 1),
    "doubled blanks": (inner_blanks, _has(r"[\w,;)] \S"), 1),
    "HTML escapes": (html_escaped, _has("[<>]"), 1),
    "escaped line ends": (escaped_line_ends, _no_escapes, 2),
    "escaped twice": (escaped_twice, _has('["\\\\]'), 2),
    "line end missing": (end_missing, lambda r: r.new[-1].strip() != "", 1),
    "line end added": (end_added, lambda _: True, 1),
    "line ends doubled": (ends_doubled, lambda _: True, 1),
    "blank lines round it": (blanks_round, lambda _: True, 1),
    "first indentation lost": (first_indent_lost, _indented, 2),
    "stripped": (stripped, _indented, 2),
    "ellipsis": (elided, _one_change_at_head, 5),
    "numbers in a fence": (numbered_in_fence, lambda r: "```" not in "".join(r.old), 2),
    "dedented, blanks at ends": (dedented_with_blanks, lambda r: _indented(r) and _plain_ends(r), 2),
    "numbers, dedented": (numbered_and_dedented, _indented, 2),
}


def garbled(seed: int, each: int) -> list[Case]:
    """Return up to `each` cases of every kind, spread over the sources that the kind fits."""
    cases: list[Case] = []
    for number, (kind, (garble, fits, least)) in enumerate(KINDS.items()):
        rng = seeded(seed * 1_000 + number)
        streams = {name: right_edits(text, rng, least, 8, fits) for name, text in sources().items()}
        made = 0
        while streams and made < each:
            for name in tuple(streams):
                right = next(streams[name], None)
                if right is None:
                    del streams[name]
                    continue
                edit = garble(right, rng)
                if edit != right.of_text(str) and made < each:
                    cases.append(Case(kind, name, right.text, (edit,), right.result))
                    made += 1
    return cases


def garbled_together(seed: int, count: int) -> list[Case]:
    """Return cases of two edits, garbled in different ways, in one file."""
    rng = seeded(seed)
    cases: list[Case] = []
    texts = sources()
    while len(cases) < count:
        name = rng.choice(sorted(texts))
        stream = right_edits(texts[name], rng, 1, 4)
        one, other = next(stream), next(stream)
        if one.last >= other.first - 1:
            continue
        lines = texts[name].split("\n")
        result = [*lines[: one.first], *one.new, *lines[one.last + 1 : other.first], *other.new]
        expected = "\n".join([*result, *lines[other.last + 1 :]])
        edits = (numbered(other, rng), trailing_blanks(one, rng))
        cases.append(Case("two edits", name, texts[name], edits, expected))
    return cases
